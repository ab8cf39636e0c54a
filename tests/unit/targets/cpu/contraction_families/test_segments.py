"""Convolutions and contractions that read the parts of a concat where they lie: the reduction runs once over each."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from xdsl.dialects.builtin import f64
from xdsl.ir import BlockArgument, SSAValue

from fuseline.analysis.prologue import prologue
from fuseline.dispatch.view import DispatchView
from fuseline.targets.cpu.families.contraction.convolution import ConvolutionFamily
from fuseline.targets.cpu.families.contraction.family import ContractionFamily
from fuseline.targets.cpu.families.contraction.plan import ContractionPlan
from fuseline.targets.cpu.families.family import Family
from fuseline.targets.cpu.isa import machine
from tests.graphs.program import Program
from tests.kernels import Array, Runner, assert_close, plan_of, random

from .test_convolution import convolve, maps_of

CONVOLUTION, CONTRACTION = ConvolutionFamily(), ContractionFamily()


def check(
    family: Family, p: Program, result: object, arrays: Sequence[Array], expected: Array, lhs: str | None = "segments"
) -> Runner:
    """The kernel between guard pages and on the evaluator, which checks every access."""
    run = Runner(family, p.dispatch(result))  # pyright: ignore[reportArgumentType]
    assert lhs is None or run.plan.notes["lhs"] == lhs
    _same_judgement(run)
    for at_end in (True, False):
        assert_close(run(*arrays, at_end=at_end)[0], expected, least=1.0)
    return run


def _same_judgement(run: Runner) -> None:
    """What fusion is told of the operand is what the kernel does with it."""
    assert isinstance(run.plan, ContractionPlan)
    root = run.view.root_view
    assert root is not None
    position, view = root.inputs.index(run.plan.loops.lhs.value), run.view
    found = prologue(root, position, view.members, view.shapes, is_constant=lambda value: _is_constant(view, value))
    kinds: dict[str | None, str] = {"addressed": "linear", "segmented": "segments", None: "pulled"}
    kinds |= {"packed": "packed", "boxed": "boxed"}
    assert kinds[found.kind] == run.plan.notes["lhs"]


def _is_constant(view: DispatchView, value: SSAValue) -> bool:
    return isinstance(value, BlockArgument) and view.is_constant(value)


class ConcatConvolution:
    """A convolution of a padded concat of images along their channels, with bias and relu."""

    def __init__(
        self, image: tuple[int, int], parts: Sequence[int], oc: int, *, window: int = 3, pad: int = 1, stride: int = 1,
        value: float = 0.0,
        batch: int = 1, constant: bool = True,
    ) -> None:  # fmt: skip
        self.images = [(batch, *image, channels) for channels in parts]
        self.filter = (window, window, sum(parts), oc)
        self.stride, self.pad, self.value = stride, pad, value
        size = [(s + 2 * pad - window) // stride + 1 for s in image]
        self.out = (batch, *size, oc)
        self.constants = [len(parts), len(parts) + 1] if constant else []

    def check(self, lhs: str = "segments") -> Runner:
        p = Program(*self.images, self.filter, self.out[-1:], constants=self.constants)
        *images, filter_, bias = p.x
        x = p.concat(*images, axis=3)
        if self.pad:
            x = p.pad(x, [0, self.pad, self.pad, 0], [0, self.pad, self.pad, 0], self.value)
        y = p.multiply_add(x, filter_, p.zeros(*self.out), maps_of(2, (self.stride, self.stride), (1, 1)), "pppprrr")
        y = p.relu(p.bias(y, bias, 3))
        arrays = [random(shape, i) for i, shape in enumerate((*self.images, self.filter, self.out[-1:]))]
        *pieces, w, b = arrays
        around = [(0, 0), (self.pad, self.pad), (self.pad, self.pad), (0, 0)]
        padded = np.pad(np.concatenate(pieces, axis=3), around, constant_values=self.value)
        expected = np.maximum(convolve(padded, w, (self.stride, self.stride), (1, 1)) + b, 0)
        return check(CONVOLUTION, p, y, arrays, expected, lhs)


CASES = {
    "two parts": ConcatConvolution((9, 11), (8, 5), 20),
    "a dense block": ConcatConvolution((10, 7), (64, 32, 32, 32, 32), 32),
    "narrow parts": ConcatConvolution((6, 6), (1, 2, 3), 9),
    "no padding": ConcatConvolution((7, 9), (8, 16), 24, pad=0),
    "stride 2": ConcatConvolution((11, 13), (7, 9), 16, stride=2),
    "padding that is not zero": ConcatConvolution((6, 8), (4, 6), 11, value=1.5),
    "1x1": ConcatConvolution((6, 5), (16, 48), 40, window=1, pad=0),
    "batch": ConcatConvolution((5, 6), (8, 8), 16, batch=3),
    "filter known at run time": ConcatConvolution((8, 9), (12, 20), 24, constant=False),
    "five wide": ConcatConvolution((9, 9), (3, 4), 8, window=5, pad=2),
}


@pytest.mark.parametrize("name", CASES)
def test_convolutions_of_a_concat(name: str):
    CASES[name].check()


def test_every_access_lies_inside():
    """The evaluator checks each access against its buffer."""
    p = Program((1, 5, 6, 3), (1, 5, 6, 4), (3, 3, 7, 9), constants=[2])
    x = p.pad(p.concat(p.x[0], p.x[1], axis=3), [0, 1, 1, 0], [0, 1, 1, 0])
    run = Runner(
        CONVOLUTION, p.dispatch(p.multiply_add(x, p.x[2], p.zeros(1, 5, 6, 9), maps_of(2, (1, 1), (1, 1)), "pppprrr"))
    )
    a, b, w = (random(shape, i) for i, shape in enumerate(((1, 5, 6, 3), (1, 5, 6, 4), (3, 3, 7, 9))))
    padded = np.pad(np.concatenate([a, b], axis=3), [(0, 0), (1, 1), (1, 1), (0, 0)])
    assert_close(run.evaluated(a, b, w)[0], convolve(padded, w, (1, 1), (1, 1)))


@settings(max_examples=20, deadline=None)
@given(
    st.lists(st.integers(1, 20), min_size=2, max_size=5), st.integers(3, 14), st.integers(3, 14), st.integers(1, 40),
    st.integers(1, 3),
    st.integers(0, 2), st.integers(1, 2),
)  # fmt: skip
def test_any_shape(parts: list[int], h: int, w: int, oc: int, window: int, pad: int, stride: int):
    ConcatConvolution((h, w), parts, oc, window=window, pad=pad, stride=stride).check()


def test_nested_concats_and_a_part_that_is_padded_itself():
    p = Program((1, 6, 7, 4), (1, 6, 7, 3), (1, 4, 5, 6), (3, 3, 13, 17), constants=[3])
    inner = p.concat(p.x[1], p.pad(p.x[2], [0, 1, 1, 0], [0, 1, 1, 0]), axis=3)
    x = p.pad(p.concat(p.x[0], inner, axis=3), [0, 1, 1, 0], [0, 1, 1, 0])
    a, b, c, w = (
        random(shape, i) for i, shape in enumerate(((1, 6, 7, 4), (1, 6, 7, 3), (1, 4, 5, 6), (3, 3, 13, 17)))
    )
    border = [(0, 0), (1, 1), (1, 1), (0, 0)]
    whole = np.concatenate([a, b, np.pad(c, border)], axis=3)
    expected = convolve(np.pad(whole, border), w, (1, 1), (1, 1))
    check(
        CONVOLUTION,
        p,
        p.multiply_add(x, p.x[3], p.zeros(1, 6, 7, 17), maps_of(2, (1, 1), (1, 1)), "pppprrr"),
        [a, b, c, w],
        expected,
    )


def test_a_part_that_is_a_slice_of_channels():
    p = Program((1, 6, 7, 12), (1, 6, 7, 3), (3, 3, 8, 10), constants=[2])
    part = p.slice(p.x[0], [0, 0, 0, 4], [1, 6, 7, 5])
    x = p.pad(p.concat(p.x[1], part, axis=3), [0, 1, 1, 0], [0, 1, 1, 0])
    a, b, w = (random(shape, i) for i, shape in enumerate(((1, 6, 7, 12), (1, 6, 7, 3), (3, 3, 8, 10))))
    whole = np.pad(np.concatenate([b, a[..., 4:9]], axis=3), [(0, 0), (1, 1), (1, 1), (0, 0)])
    expected = convolve(whole, w, (1, 1), (1, 1))
    check(
        CONVOLUTION,
        p,
        p.multiply_add(x, p.x[2], p.zeros(1, 6, 7, 10), maps_of(2, (1, 1), (1, 1)), "pppprrr"),
        [a, b, w],
        expected,
    )


def test_a_slice_of_a_concat_reads_only_what_it_holds():
    """Channels 3 to 8 of two images of 5: the last two of one, the first four of the other."""
    p = Program((1, 4, 6, 5), (1, 4, 6, 5), (1, 1, 6, 8), constants=[2])
    x = p.slice(p.concat(p.x[0], p.x[1], axis=3), [0, 0, 0, 3], [1, 4, 6, 6])
    a, b, w = (random(shape, i) for i, shape in enumerate(((1, 4, 6, 5), (1, 4, 6, 5), (1, 1, 6, 8))))
    expected = convolve(np.concatenate([a, b], axis=3)[..., 3:9], w, (1, 1), (1, 1))
    run = check(
        CONVOLUTION,
        p,
        p.multiply_add(x, p.x[2], p.zeros(1, 4, 6, 8), maps_of(2, (1, 1), (1, 1)), "pppprrr"),
        [a, b, w],
        expected,
    )
    assert isinstance(run.plan, ContractionPlan)
    assert [(s.start, s.reduction[-1].extent) for s in run.plan.loops.segments] == [(0, 2), (2, 4)]


# contractions ---------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("constant", [True, False])
def test_rows_of_a_concat_along_the_reduction(constant: bool):
    p = Program((19, 30), (19, 7), (19, 12), (49, 37), constants=[3] if constant else [])
    a, b, c, w = (random(shape, i) for i, shape in enumerate(((19, 30), (19, 7), (19, 12), (49, 37))))
    expected = np.concatenate([a, b, c], axis=1).astype(np.float64) @ w
    check(CONTRACTION, p, p.matmul(p.concat(*p.x[:3], axis=1), p.x[3]), [a, b, c, w], expected)


def test_rows_of_doubles():
    p = Program((9, 5), (9, 6), (11, 21), constants=[2], element=f64)
    a, b, w = (random(shape, i, np.float64) for i, shape in enumerate(((9, 5), (9, 6), (11, 21))))
    check(CONTRACTION, p, p.matmul(p.concat(*p.x[:2], axis=1), p.x[2]), [a, b, w], np.concatenate([a, b], axis=1) @ w)


def test_a_convolution_by_1x1_of_a_reshaped_concat():
    """As a layout pass leaves it: images of pixels by channels, joined to rows."""
    p = Program((1, 4, 6, 16), (1, 4, 6, 8), (24, 20), constants=[2])
    rows = p.collapse(p.concat(p.x[0], p.x[1], axis=3), [[0, 1, 2], [3]])
    a, b, w = (random(shape, i) for i, shape in enumerate(((1, 4, 6, 16), (1, 4, 6, 8), (24, 20))))
    expected = np.concatenate([a, b], axis=3).reshape(24, 24).astype(np.float64) @ w
    run = check(CONTRACTION, p, p.matmul(rows, p.x[2]), [a, b, w], expected)
    assert isinstance(run.plan, ContractionPlan)
    assert len(run.plan.loops.rows) == 1


def test_a_concat_of_rows_of_unknown_number():
    p = Program(("n", 9), ("n", 6), (15, 33), constants=[2])
    run = Runner(CONTRACTION, p.dispatch(p.matmul(p.concat(p.x[0], p.x[1], axis=1), p.x[2])))
    assert run.plan.notes["lhs"] == "segments"
    for n in (1, 5, 23):
        a, b, w = random((n, 9), 1), random((n, 6), 2), random((15, 33), 3)
        assert_close(run(a, b, w, sizes={"n": n})[0], np.concatenate([a, b], axis=1).astype(np.float64) @ w)


def test_parts_of_unknown_length():
    """Old values and new ones, `[past, new]` along the reduction."""
    p = Program((6, "past"), (6, 3), ("past", 18), (3, 18))
    weights = p.concat(p.x[2], p.x[3], axis=0)
    run = Runner(CONTRACTION, p.dispatch(p.matmul(p.concat(p.x[0], p.x[1], axis=1), weights)))
    assert run.plan.notes["lhs"] == "segments"
    for past in (1, 4, 31):
        a, b, w, v = (random(shape, i) for i, shape in enumerate(((6, past), (6, 3), (past, 18), (3, 18))))
        expected = np.concatenate([a, b], axis=1).astype(np.float64) @ np.concatenate([w, v])
        assert_close(run(a, b, w, v, sizes={"past": past})[0], expected)


# what is not cut into segments ----------------------------------------------------------------------------------------


def test_a_concat_of_rows_is_no_segment():
    p = Program((5, 12), (7, 12), (12, 20), constants=[2])
    a, b, w = (random(shape, i) for i, shape in enumerate(((5, 12), (7, 12), (12, 20))))
    check(
        CONTRACTION,
        p,
        p.matmul(p.concat(p.x[0], p.x[1], axis=0), p.x[2]),
        [a, b, w],
        np.concatenate([a, b]).astype(np.float64) @ w,
        "packed",
    )


def test_padding_beside_a_concat_is_no_segment():
    """Channels that are padding belong to no part."""
    p = Program((5, 12), (5, 7), (22, 20), constants=[2])
    a, b, w = (random(shape, i) for i, shape in enumerate(((5, 12), (5, 7), (22, 20))))
    x = p.pad(p.concat(p.x[0], p.x[1], axis=1), [0, 1], [0, 2])
    expected = np.pad(np.concatenate([a, b], axis=1), [(0, 0), (1, 2)]).astype(np.float64) @ w
    check(CONTRACTION, p, p.matmul(x, p.x[2]), [a, b, w], expected, "packed")


def test_a_part_that_is_computed_is_evaluated_once_per_block():
    p = Program((5, 12), (5, 7), (19, 20), constants=[2])
    a, b, w = (random(shape, i) for i, shape in enumerate(((5, 12), (5, 7), (19, 20))))
    x = p.concat(p.x[0], p.relu(p.x[1]), axis=1)
    expected = np.concatenate([a, np.maximum(b, 0)], axis=1).astype(np.float64) @ w
    check(CONTRACTION, p, p.matmul(x, p.x[2]), [a, b, w], expected, "packed")


def test_pad_values_that_differ_between_parts_are_not_addressed():
    p = Program((1, 5, 6, 3), (1, 3, 4, 4), (3, 3, 7, 9), constants=[2])
    x = p.pad(p.concat(p.x[0], p.pad(p.x[1], [0, 1, 1, 0], [0, 1, 1, 0], 2.0), axis=3), [0, 1, 1, 0], [0, 1, 1, 0])
    view = p.dispatch(p.multiply_add(x, p.x[2], p.zeros(1, 5, 6, 9), maps_of(2, (1, 1), (1, 1)), "pppprrr"))
    assert plan_of(CONVOLUTION, view, machine()).notes["lhs"] == "boxed"


def test_more_parts_than_code_is_written_for():
    p = Program(*[(4, 2)] * 17, (34, 20), constants=[17])
    arrays = [random((4, 2), i) for i in range(17)]
    w = random((34, 20), 99)
    expected = np.concatenate(arrays, axis=1).astype(np.float64) @ w
    check(CONTRACTION, p, p.matmul(p.concat(*p.x[:17], axis=1), p.x[17]), [*arrays, w], expected, "packed")
