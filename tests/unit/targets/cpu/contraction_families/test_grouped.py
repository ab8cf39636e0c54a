"""Convolutions in narrow groups against NumPy; every buffer ends at an unreadable page."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from xdsl.dialects import arith
from xdsl.ir.affine import AffineExpr, AffineMap

from fuseline.analysis.border_modes import BORDER_MODES, BorderMode
from fuseline.dispatch.view import DispatchView
from fuseline.ir.build import dims_map
from fuseline.ir.dim import evaluate
from fuseline.targets.cpu.families.window.family import WindowFamily
from fuseline.targets.cpu.isa import ISA_NAMES, machine
from fuseline.targets.cpu.kernel_ir.check_bounds import check_bounds
from fuseline.targets.target import Refusal
from tests.graphs.borders import bordered
from tests.graphs.program import Program
from tests.kernels import Array, Runner, assert_close, random

from .test_window import taps

AVX2 = machine("avx2")
dim = AffineExpr.dimension


class Case:
    """An image `[batch, *image, groups, inner]` and `outputs` per group, with padding, bias, residual and relu."""

    def __init__(
        self, image: Sequence[int], window: Sequence[int], groups: tuple[int, int, int], *, stride: int = 1,
        dilation: int = 1,
        pad: tuple[int, int] = (0, 0), batch: int = 1, value: float = 0.0, mode: BorderMode | None = None,
    ) -> None:  # fmt: skip
        self.rank, self.window, self.stride, self.dilation, self.padding, self.value = (
            len(image),
            tuple(window),
            stride,
            dilation,
            pad,
            value,
        )
        count, inner, outputs = groups
        self.image = (batch, *image, count, inner)
        self.mode: BorderMode | None = mode
        sizes = [(s + sum(pad) - (k - 1) * dilation - 1) // stride + 1 for s, k in zip(image, window, strict=True)]
        self.out = (batch, *sizes, count, outputs)
        self.filter = (*window, count, inner, outputs)

    def view(self, *, constant: bool = True) -> DispatchView:
        """Loops: batch, space, group, output | window, inner."""
        n = self.rank
        count, loops = n + 1, 2 * n + 4
        p = Program(self.image, self.filter, self.out[-2:], self.out, constants=[1, 2] if constant else [])
        low, high = ([0, *[side] * n, 0, 0] for side in self.padding)
        if self.mode is not None:
            x = bordered(p, p.x[0], low, high, self.mode)
        else:
            x = p.pad(p.x[0], low, high, self.value) if any(self.padding) else p.x[0]
        space = [dim(1 + i) * self.stride + dim(n + 3 + i) * self.dilation for i in range(n)]
        image = AffineMap(loops, 0, (dim(0), *space, dim(count), dim(loops - 1)))
        filter_ = dims_map(loops, [*range(n + 3, 2 * n + 3), count, loops - 1, count + 1])
        maps = [image, filter_, dims_map(loops, list(range(n + 3)))]
        y = p.multiply_add(x, p.x[1], p.zeros(*self.out), maps, "p" * (n + 3) + "r" * (n + 1))
        rank = n + 3
        bias = dims_map(rank, [rank - 2, rank - 1])
        ident = dims_map(rank, list(range(rank)))
        z = p.elementwise(
            [y, p.x[2]], p.empty(*self.out), lambda b: b.op(arith.AddfOp, b.args[0], b.args[1]), [ident, bias, ident]
        )
        return p.dispatch(p.relu(p.add(z, p.x[3])))

    def arrays(self) -> list[Array]:
        """Image, filter, bias, residual."""
        return [random(shape, seed) for seed, shape in enumerate((self.image, self.filter, self.out[-2:], self.out))]

    def expected(self, x: Array, w: Array, bias: Array, residual: Array) -> Array:
        low, high = self.padding
        amounts = [(0, 0), *[(low, high)] * self.rank, (0, 0), (0, 0)]
        padded = np.pad(x, amounts, mode=self.mode or "constant")
        filters = w.reshape(-1, *self.filter[-3:]).astype(np.float64)
        seen = taps(padded, self.window, self.stride, self.dilation)
        total = sum(np.einsum("...gc,gco->...go", t, f) for t, f in zip(seen, filters, strict=True))
        return np.maximum(total + bias + residual, 0)

    def check(self) -> None:
        run, arrays = Runner(WindowFamily(), self.view()), self.arrays()
        for at_end in (True, False):
            assert_close(run(*arrays, at_end=at_end)[0], self.expected(*arrays), least=1.0)


CASES = {
    "four per group": Case((9, 13), (3, 3), (6, 4, 4), pad=(1, 1)),
    "groups that end within a vector": Case((7, 8), (3, 3), (5, 4, 4), pad=(1, 1)),
    "two per group": Case((6, 7), (3, 3), (9, 2, 2), pad=(1, 1)),
    "a vector per group": Case((8, 15), (3, 3), (3, 8, 8), pad=(1, 1)),
    "two vectors per group": Case((4, 4), (3, 3), (16, 32, 16), pad=(1, 1)),
    "three vectors per two groups": Case((6, 9), (3, 3), (3, 12, 12), pad=(1, 1)),
    "three vectors per eight groups": Case((5, 6), (3, 3), (11, 3, 3), pad=(1, 1)),
    "more outputs than channels": Case((6, 6), (3, 3), (7, 2, 4), pad=(1, 1)),
    "more channels than outputs": Case((6, 6), (3, 3), (5, 8, 4), pad=(1, 1)),
    "one channel per group": Case((6, 6), (3, 3), (11, 1, 3), pad=(1, 1)),
    "stride 2": Case((11, 12), (3, 3), (5, 4, 4), pad=(1, 1), stride=2),
    "stride 2 padded at the end": Case((12, 12), (3, 3), (4, 4, 8), pad=(0, 1), stride=2),
    "dilated": Case((11, 11), (3, 3), (4, 4, 4), pad=(2, 2), dilation=2),
    "stride 2 dilated by 2": Case((12, 12), (3, 3), (4, 4, 4), pad=(2, 2), stride=2, dilation=2),
    "without padding": Case((9, 9), (5, 5), (4, 4, 4)),
    "stride 3 without padding": Case((13, 14), (2, 2), (4, 4, 4), stride=3),
    "wide padding": Case((3, 3), (3, 3), (4, 4, 4), pad=(4, 4)),
    "one dimension": Case((40,), (7,), (6, 4, 4), pad=(3, 3)),
    "one line": Case((1, 40), (1, 5), (6, 4, 4), pad=(0, 2)),
    "batch": Case((5, 5), (3, 3), (4, 4, 4), pad=(1, 1), batch=3),
    "many lines": Case((70, 60), (3, 3), (4, 4, 4), pad=(1, 1)),
}


@pytest.mark.parametrize("name", CASES)
def test_against_numpy(name: str):
    CASES[name].check()


BORDERED = {
    "all around": Case((9, 13), (3, 3), (6, 4, 4), pad=(1, 1)),
    "stride 2 at the end": Case((12, 12), (3, 3), (4, 4, 8), pad=(0, 1), stride=2),
    "stride 2 dilated by 2": Case((12, 12), (3, 3), (4, 4, 4), pad=(2, 2), stride=2, dilation=2),
    "as wide as the image": Case((5, 5), (3, 3), (4, 4, 4), pad=(4, 3)),
    "one dimension": Case((40,), (7,), (6, 4, 4), pad=(3, 5)),
    "many lines": Case((70, 60), (3, 3), (4, 4, 4), pad=(1, 1)),
}


@pytest.mark.parametrize("mode", BORDER_MODES)
@pytest.mark.parametrize("case", BORDERED.values(), ids=BORDERED)
def test_borders_are_copied_with_the_image(case: Case, mode: BorderMode):
    image, groups = case.image[1:-2], (*case.image[-2:], case.out[-1])
    steps = {"stride": case.stride, "dilation": case.dilation}
    Case(image, case.window, groups, pad=case.padding, mode=mode, **steps).check()


@settings(max_examples=20, deadline=None)
@given(
    st.tuples(st.integers(1, 9), st.integers(2, 14)), st.tuples(st.integers(1, 3), st.integers(2, 4)),
    st.tuples(st.integers(2, 9), st.integers(1, 4), st.sampled_from([2, 4, 8, 6])), st.integers(1, 3),
    st.integers(1, 2),
    st.tuples(st.integers(0, 2), st.integers(0, 2)),
)  # fmt: skip
def test_any_shape(
    image: tuple[int, int],
    window: tuple[int, int],
    groups: tuple[int, int, int],
    stride: int,
    dilation: int,
    pad: tuple[int, int],
):
    wide = [size + sum(pad) - (k - 1) * dilation for size, k in zip(image, window, strict=True)]
    if min(wide) < 1 or (wide[1] - 1) // stride == 0:
        return
    case = Case(image, window, groups, stride=stride, dilation=dilation, pad=pad)
    if not isinstance(WindowFamily().accepts(case.view(), machine()), Refusal):
        case.check()


REFUSED = {
    "uneven-groups": Case((6, 6), (3, 3), (16, 5, 5)),
    "long-groups": Case((6, 6), (3, 3), (4, 17, 4)),
    "spread-groups": Case((6, 6), (3, 3), (8, 5, 2)),
    "wide-groups": Case((6, 6), (3, 3), (3, 12, 24)),
    "scratch": Case((3, 3000), (3, 3), (4, 4, 4)),
    "padding": Case((6, 6), (3, 3), (4, 4, 4), pad=(1, 1), value=1.0),
    "no-window": Case((6, 6, 6), (3, 3, 3), (4, 4, 4)),
}


@pytest.mark.parametrize("code", REFUSED)
def test_refusals(code: str):
    found = WindowFamily().accepts(REFUSED[code].view(), AVX2)
    assert isinstance(found, Refusal) and found.code == code


def test_a_wide_window_is_refused():
    found = WindowFamily().accepts(Case((6, 16), (3, 10), (4, 4, 4)).view(), AVX2)
    assert isinstance(found, Refusal) and found.code == "no-window"


def test_a_plain_convolution_is_refused():
    p = Program((1, 6, 6, 4), (3, 3, 4, 8), constants=[1])
    image = AffineMap(7, 0, (dim(0), dim(1) + dim(4), dim(2) + dim(5), dim(6)))
    maps = [image, dims_map(7, [4, 5, 6, 3]), dims_map(7, [0, 1, 2, 3])]
    view = p.dispatch(p.multiply_add(p.x[0], p.x[1], p.zeros(1, 4, 4, 8), maps, "pppprrr"))
    found = WindowFamily().accepts(view, AVX2)
    assert isinstance(found, Refusal) and found.code == "not-in-groups"


@pytest.mark.parametrize("isa", ISA_NAMES)
def test_sizes_known_at_run_time(isa: str):
    """Each access checked, also where lines and pixels are several strips."""
    p = Program((1, "h", "w", 4, 4), (3, 3, 4, 4, 4), constants=[1])
    x = p.pad(p.x[0], [0, 1, 1, 0, 0], [0, 1, 1, 0, 0])
    image = AffineMap(8, 0, (dim(0), dim(1) + dim(5), dim(2) + dim(6), dim(3), dim(7)))
    maps = [image, dims_map(8, [5, 6, 3, 7, 4]), dims_map(8, [0, 1, 2, 3, 4])]
    view = p.dispatch(p.multiply_add(x, p.x[1], p.zeros(1, "h", "w", 4, 4), maps, "ppppprrr"))
    run = Runner(WindowFamily(), view, machine(isa))
    for h, w in ((1, 1), (2, 7), (13, 44), (61, 90)):
        known = {"h": h, "w": w}
        numbers = [known[name] for name in view.size_names]
        assert check_bounds(run.kernel, numbers, evaluate(run.plan.workgroups, known)) == []
        if isa == machine().name:
            found, filter_ = random((1, h, w, 4, 4), 1), random((3, 3, 4, 4, 4), 2)
            padded = np.pad(found, ((0, 0), (1, 1), (1, 1), (0, 0), (0, 0)))
            seen = np.lib.stride_tricks.sliding_window_view(padded, (3, 3), axis=(1, 2))
            expected = np.einsum("bhwgcij,ijgco->bhwgo", seen, filter_)
            assert_close(run(found, filter_, sizes=known)[0], expected, least=1.0)


def test_a_filter_that_differs_between_lines_is_refused():
    p = Program((1, 6, 6, 4, 4), (4, 3, 3, 4, 4, 4), constants=[1])
    image = AffineMap(8, 0, (dim(0), dim(1) + dim(5), dim(2) + dim(6), dim(3), dim(7)))
    maps = [image, dims_map(8, [1, 5, 6, 3, 7, 4]), dims_map(8, [0, 1, 2, 3, 4])]
    found = WindowFamily().accepts(
        p.dispatch(p.multiply_add(p.x[0], p.x[1], p.zeros(1, 4, 4, 4, 4), maps, "ppppprrr")), AVX2
    )
    assert isinstance(found, Refusal) and found.code == "filter-per-pixel"
