"""Poolings and depthwise convolutions that read the parts of a concat along the channels where they lie."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from fuseline.ir.build import dims_map
from fuseline.targets.cpu.families.family import Refusal
from fuseline.targets.cpu.families.window.family import WindowFamily
from fuseline.targets.cpu.isa import machine
from tests.graphs.program import Program
from tests.kernels import Array, Runner, assert_close, random

from .test_window import BODIES, image_map, taps

FAMILY = WindowFamily()


class ConcatWindow:
    """A window over a padded concat of images `[batch, h, w, parts[i]]`."""

    def __init__(
        self,
        image: tuple[int, int],
        parts: Sequence[int],
        *,
        window: int = 3,
        stride: int = 1,
        pad: int = 1,
        batch: int = 1,
    ) -> None:
        self.images = [(batch, *image, channels) for channels in parts]
        self.window, self.stride, self.pad = window, stride, pad
        self.channels = sum(parts)
        self.out = (batch, *((size + 2 * pad - window) // stride + 1 for size in image), self.channels)

    def arrays(self) -> list[Array]:
        return [random(shape, i) for i, shape in enumerate(self.images)]

    def padded(self, arrays: Sequence[Array], value: float) -> Array:
        border = [(0, 0), (self.pad, self.pad), (self.pad, self.pad), (0, 0)]
        return np.pad(np.concatenate(list(arrays), axis=3), border, constant_values=value)

    def image(self, p: Program, value: float):
        x = p.concat(*p.x[: len(self.images)], axis=3)
        return p.pad(x, [0, self.pad, self.pad, 0], [0, self.pad, self.pad, 0], value) if self.pad else x

    def check_pooling(self, name: str = "max", value: float | None = None, *, parts: int = 3) -> Runner:
        op, identity, combine = BODIES[name]
        border = identity if value is None else value
        p = Program(*self.images)
        maps = [image_map(2, self.stride, 1), dims_map(6, [4, 5]), dims_map(6, [0, 1, 2, 3])]
        kinds = ["parallel"] * 4 + ["reduction"] * 2
        operands = [self.image(p, border), p.empty(self.window, self.window)]
        y = p.emit.generic(
            operands, [p.zeros(*self.out, value=identity)], maps, kinds, lambda b: [b.op(op, b.args[2], b.args[0])]
        ).results[0]
        arrays = self.arrays()
        expected = np.full(self.out, identity)
        for tap in taps(self.padded(arrays, border), (self.window, self.window), self.stride, 1):
            expected = combine(expected, tap)
        return self._run(p.dispatch(y), arrays, expected, parts)

    def check_depthwise(self, *, constant: bool = True) -> Runner:
        p = Program(
            *self.images, (self.window, self.window, self.channels), constants=[len(self.images)] if constant else []
        )
        maps = [image_map(2, self.stride, 1), dims_map(6, [4, 5, 3]), dims_map(6, [0, 1, 2, 3])]
        y = p.relu(p.multiply_add(self.image(p, 0.0), p.x[-1], p.zeros(*self.out), maps, "pppprr"))
        arrays = self.arrays()
        w = random((self.window, self.window, self.channels), 9)
        seen = taps(self.padded(arrays, 0.0), (self.window, self.window), self.stride, 1)
        total = sum(t * f for t, f in zip(seen, w.reshape(-1, self.channels), strict=True))
        return self._run(p.dispatch(y), [*arrays, w], np.maximum(total, 0), 3)

    def _run(self, view: object, arrays: Sequence[Array], expected: Array, parts: int) -> Runner:
        run = Runner(FAMILY, view)  # pyright: ignore[reportArgumentType]
        assert run.plan.notes["image"] == "segments"
        for at_end in (True, False):
            assert_close(run(*arrays, at_end=at_end, parts=parts)[0], expected, least=1.0)
        return run


@pytest.mark.parametrize("name", BODIES)
@pytest.mark.parametrize("parts", [(64, 64), (8, 5), (3, 1, 17), (16, 32, 8, 9)])
def test_poolings_of_a_concat(name: str, parts: tuple[int, ...]):
    ConcatWindow((7, 9), parts).check_pooling(name)


def test_every_access_lies_inside():
    """The evaluator checks each access against its buffer."""
    case = ConcatWindow((4, 5), (9, 3))
    arrays = case.arrays()
    expected = np.full(case.out, -np.inf)
    for tap in taps(case.padded(arrays, -np.inf), (3, 3), 1, 1):
        expected = np.maximum(expected, tap)
    assert_close(case.check_pooling().evaluated(*arrays)[0], expected)


def test_padding_that_is_combined():
    ConcatWindow((5, 8), (9, 7)).check_pooling("max", 0.5)


def test_stride_2_without_padding():
    ConcatWindow((11, 12), (20, 12), stride=2, pad=0, batch=2).check_pooling()


@pytest.mark.parametrize("parts", [1, 2, 5, 50])
def test_any_share_of_the_panels(parts: int):
    """Workgroups begin and end within a part, and take panels of several."""
    ConcatWindow((40, 40), (70, 33, 50)).check_pooling(parts=parts)


@settings(max_examples=15, deadline=None)
@given(
    st.lists(st.integers(1, 30), min_size=2, max_size=4),
    st.integers(3, 12),
    st.integers(3, 12),
    st.integers(1, 3),
    st.integers(1, 2),
)
def test_any_shape(parts: list[int], h: int, w: int, window: int, stride: int):
    ConcatWindow((h, w), parts, window=window, stride=stride, pad=window // 2).check_pooling()


@pytest.mark.parametrize("constant", [True, False])
@pytest.mark.parametrize("parts", [(16, 24), (5, 9)])
def test_depthwise_convolutions_of_a_concat(parts: tuple[int, ...], constant: bool):
    """The filter is packed where its panels are those of the parts, else read as it lies."""
    run = ConcatWindow((6, 7), parts).check_depthwise(constant=constant)
    lanes = machine().lanes("f32")
    assert bool(run.plan.constant_layouts) == (constant and parts[0] % lanes == 0)


def test_a_sum_over_whole_images():
    p = Program((2, 5, 6, 12), (2, 5, 6, 21))
    x = p.concat(p.x[0], p.x[1], axis=3)
    op = BODIES["sum"][0]
    maps = [dims_map(4, [0, 2, 3, 1]), dims_map(4, [0, 1])]
    kinds = ["parallel", "parallel", "reduction", "reduction"]
    y = p.emit.generic([x], [p.zeros(2, 33)], maps, kinds, lambda b: [b.op(op, b.args[1], b.args[0])]).results[0]
    run = Runner(FAMILY, p.dispatch(y))
    assert run.plan.notes["image"] == "segments"
    a, b = random((2, 5, 6, 12), 1), random((2, 5, 6, 21), 2)
    assert_close(run(a, b)[0], np.concatenate([a, b], axis=3).astype(np.float64).sum(axis=(1, 2)))


def test_images_of_a_number_known_at_run_time():
    """The sizes of the parts are known; how many images there are is not."""
    p = Program(("n", 4, 5, 3), ("n", 4, 5, 7))
    x = p.concat(p.x[0], p.x[1], axis=3)
    maps = [dims_map(4, [0, 2, 3, 1]), dims_map(4, [0, 1])]
    kinds = ["parallel", "parallel", "reduction", "reduction"]
    y = p.emit.generic(
        [x], [p.zeros("n", 10)], maps, kinds, lambda b: [b.op(BODIES["sum"][0], b.args[1], b.args[0])]
    ).results[0]
    run = Runner(FAMILY, p.dispatch(y))
    for n in (1, 8):
        a, b = random((n, 4, 5, 3), 1), random((n, 4, 5, 7), 2)
        assert_close(run(a, b, sizes={"n": n})[0], np.concatenate([a, b], axis=3).astype(np.float64).sum(axis=(1, 2)))


def test_a_filter_whose_panels_reach_over_the_parts_and_that_lies_across_is_refused():
    """A constant filter `[channel, window]` would have to be packed, and its panels would not be those of the parts."""
    p = Program((1, 6, 7, 5), (1, 6, 7, 9), (14, 3, 3), constants=[2])
    maps = [image_map(2, 1, 1), dims_map(6, [3, 4, 5]), dims_map(6, [0, 1, 2, 3])]
    y = p.multiply_add(p.concat(p.x[0], p.x[1], axis=3), p.x[2], p.zeros(1, 4, 5, 14), maps, "pppprr")
    found = FAMILY.accepts(p.dispatch(y), machine())
    assert isinstance(found, Refusal)
    assert found.code == "filter-layout"


def test_a_concat_of_lines_is_refused():
    p = Program((1, 2, 7, 9), (1, 4, 7, 9))
    maps = [image_map(2, 1, 1), dims_map(6, [4, 5]), dims_map(6, [0, 1, 2, 3])]
    x, kinds = p.concat(p.x[0], p.x[1], axis=1), ["parallel"] * 4 + ["reduction"] * 2
    out = p.zeros(1, 4, 5, 9)
    y = p.emit.generic(
        [x, p.empty(3, 3)], [out], maps, kinds, lambda b: [b.op(BODIES["max"][0], b.args[2], b.args[0])]
    ).results[0]
    found = FAMILY.accepts(p.dispatch(y), machine())
    assert isinstance(found, Refusal)
    assert found.code == "image-computed"


def test_an_upsampled_image_is_refused():
    p = Program((1, 4, 5, 9))
    maps = [image_map(2, 1, 1), dims_map(6, [4, 5]), dims_map(6, [0, 1, 2, 3])]
    x, kinds = p.repeated(p.x[0], (1, 2, 2, 1)), ["parallel"] * 4 + ["reduction"] * 2
    out = p.zeros(1, 6, 8, 9)
    y = p.emit.generic(
        [x, p.empty(3, 3)], [out], maps, kinds, lambda b: [b.op(BODIES["max"][0], b.args[2], b.args[0])]
    ).results[0]
    found = FAMILY.accepts(p.dispatch(y), machine())
    assert isinstance(found, Refusal)
    assert found.code == "image-computed"
