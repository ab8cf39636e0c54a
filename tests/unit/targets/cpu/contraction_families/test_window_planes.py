"""Windows over images whose channels come first, against NumPy; every buffer ends at an unreadable page."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from xdsl.ir import SSAValue
from xdsl.ir.affine import AffineExpr, AffineMap

from fuseline.dispatch.view import DispatchView
from fuseline.ir.build import Body, dims_map
from fuseline.ir.dim import evaluate
from fuseline.targets.cpu.families.window.family import WindowFamily
from fuseline.targets.cpu.families.window.planes import PlanesPlan
from fuseline.targets.cpu.isa import ISA_NAMES, machine
from fuseline.targets.cpu.kernel_ir.builder import KernelBuilder
from fuseline.targets.cpu.kernel_ir.check_bounds import check_bounds
from fuseline.targets.target import Refusal
from tests.graphs.program import Program
from tests.kernels import Runner, assert_close, random

from .test_window import BODIES, Array, taps

FAMILY = WindowFamily()
dim = AffineExpr.dimension


class Case:
    """An image `[batch, channels, *image]` and its window; loops `(n, c, line, pixel | rows, columns)`."""

    def __init__(
        self, image: tuple[int, int], window: tuple[int, int], channels: int, *, stride: int = 1, dilation: int = 1,
        pad: tuple[int, int] = (0, 0), batch: int = 2,
    ) -> None:  # fmt: skip
        self.window, self.stride, self.dilation, self.padding = window, stride, dilation, pad
        self.image = (batch, channels, *image)
        sizes = [(s + sum(pad) - (k - 1) * dilation - 1) // stride + 1 for s, k in zip(image, window, strict=True)]
        self.out = (batch, channels, *sizes)
        space = [dim(2 + i) * stride + dim(4 + i) * dilation for i in range(2)]
        self.image_map = AffineMap(6, 0, (dim(0), dim(1), *space))

    def padded(self, p: Program, value: float) -> SSAValue:
        low, high = ([0, 0, side, side] for side in self.padding)
        return p.pad(p.x[0], low, high, value) if any(self.padding) else p.x[0]

    def depthwise(self, *, last: bool = False, computed: bool = False) -> DispatchView:
        """`last`: the filter has its channels last; `computed`: what is below zero is left out of it."""
        c = self.image[1]
        shape = (*self.window, c) if last else (c, *self.window)
        p = Program(self.image, shape, self.out)
        maps = [self.image_map, dims_map(6, [4, 5, 1] if last else [1, 4, 5]), dims_map(6, [0, 1, 2, 3])]
        filter_ = p.relu(p.x[1]) if computed else p.x[1]
        y = p.multiply_add(self.padded(p, 0.0), filter_, p.zeros(*self.out), maps, "pppprr")
        return p.dispatch(p.relu(p.add(y, p.x[2])))

    def pooling(self, name: str, value: float | None = None) -> DispatchView:
        op, identity, _ = BODIES[name]
        p = Program(self.image)
        x = self.padded(p, identity if value is None else value)
        maps = [self.image_map, dims_map(6, [4, 5]), dims_map(6, [0, 1, 2, 3])]
        body: Callable[[Body], Sequence[SSAValue]] = lambda b: [b.op(op, b.args[2], b.args[0])]  # noqa: E731
        out = p.zeros(*self.out, value=identity)
        return p.dispatch(p.generic([x, p.empty(*self.window)], [out], maps, "pppprr", body)[0])

    def seen(self, x: Array, value: float = 0.0) -> list[Array]:
        """The image as every tap sees it, `[n, c, line, pixel]`."""
        low, high = self.padding
        padded = np.pad(x, [(0, 0), (0, 0), (low, high), (low, high)], constant_values=value)
        found = taps(padded.transpose(0, 2, 3, 1), self.window, self.stride, self.dilation)
        return [tap.transpose(0, 3, 1, 2) for tap in found]

    def check_depthwise(self, *, last: bool = False, computed: bool = False) -> PlanesPlan:
        x, w, residual = random(self.image, 1), random((self.image[1], *self.window), 2), random(self.out, 3)
        filters = (np.maximum(w, 0) if computed else w).reshape(self.image[1], -1, 1, 1).astype(np.float64)
        total = sum(tap * filters[:, i] for i, tap in enumerate(self.seen(x)))
        run = Runner(FAMILY, self.depthwise(last=last, computed=computed))
        given_ = np.ascontiguousarray(w.transpose(1, 2, 0)) if last else w
        for at_end in (True, False):
            assert_close(run(x, given_, residual, at_end=at_end)[0], np.maximum(total + residual, 0), least=1.0)
        assert isinstance(run.plan, PlanesPlan) and (run.plan.notes.get("filter") == "staged") == computed
        return run.plan

    def check_pooling(self, name: str, value: float | None = None) -> None:
        _, identity, combine = BODIES[name]
        x, expected = random(self.image, 1), np.full(self.out, identity)
        for tap in self.seen(x, identity if value is None else value):
            expected = combine(expected, tap)
        run = Runner(FAMILY, self.pooling(name, value))
        assert isinstance(run.plan, PlanesPlan)
        for at_end in (True, False):
            assert_close(run(x, at_end=at_end)[0], expected, least=1.0)


CASES = {
    "3x3": Case((10, 19), (3, 3), 5, pad=(1, 1)),
    "narrower than a vector": Case((9, 5), (3, 3), 4, pad=(1, 1)),
    "stride 2": Case((11, 22), (3, 3), 3, stride=2, pad=(1, 1)),
    "stride 2 padded at the end": Case((12, 36), (3, 3), 3, stride=2, pad=(0, 1)),
    "stride 3": Case((13, 25), (3, 3), 3, stride=3, pad=(1, 0)),
    "dilated": Case((14, 17), (3, 3), 3, dilation=3, pad=(3, 3)),
    "stride 2 dilated by 3": Case((14, 23), (3, 3), 3, stride=2, dilation=3, pad=(3, 2)),
    "5x5": Case((9, 21), (5, 5), 3, pad=(2, 2)),
    "wide padding": Case((3, 3), (3, 3), 4, pad=(4, 4)),
    "one image": Case((7, 18), (3, 3), 6, pad=(1, 1), batch=1),
    "one line of the result": Case((3, 40), (3, 3), 5, pad=(0, 0)),
    "2x2 stride 2": Case((8, 34), (2, 2), 5, stride=2, pad=(1, 1)),
}


@pytest.mark.parametrize("computed", [False, True])
@pytest.mark.parametrize("last", [False, True])
@pytest.mark.parametrize("name", [name for name in CASES if name != "one line of the result"])
def test_depthwise(name: str, last: bool, computed: bool):
    CASES[name].check_depthwise(last=last, computed=computed)


@pytest.mark.parametrize("body", BODIES)
@pytest.mark.parametrize("name", ["3x3", "narrower than a vector", "stride 2", "stride 2 padded at the end", "dilated"])
def test_pooling(name: str, body: str):
    CASES[name].check_pooling(body)


def test_padding_that_takes_part():
    CASES["3x3"].check_pooling("max", 0.0)


def test_large_planes_in_bands():
    plan = Case((260, 300), (3, 3), 2, pad=(1, 1), batch=1).check_depthwise()
    assert isinstance(plan.strips, int) and plan.strips > 1 and plan.grid[-1] == plan.strips


def test_long_lines_in_strips_of_some_pixels():
    plan = Case((30, 5000), (3, 3), 2, pad=(1, 1), batch=1).check_depthwise()
    assert plan.strip_pixels < 5000 and isinstance(plan.in_panels.count, int) and plan.in_panels.count > 1


@settings(max_examples=25, deadline=None)
@given(
    st.tuples(st.integers(2, 12), st.integers(2, 40)), st.tuples(st.integers(2, 4), st.integers(1, 4)),
    st.integers(2, 5), st.integers(1, 3), st.integers(1, 2), st.tuples(st.integers(0, 2), st.integers(0, 2)),
    st.booleans(),
)  # fmt: skip
def test_any_shape(
    image: tuple[int, int], window: tuple[int, int], channels: int, stride: int, dilation: int, pad: tuple[int, int],
    computed: bool,
):  # fmt: skip
    wide = [size + sum(pad) - (k - 1) * dilation for size, k in zip(image, window, strict=True)]
    if min(wide) < 1:
        return
    case = Case(image, window, channels, stride=stride, dilation=dilation, pad=pad)
    if isinstance(FAMILY.accepts(case.depthwise(computed=computed), machine()), PlanesPlan):
        case.check_depthwise(computed=computed)


@pytest.mark.parametrize("name", ["3x3", "stride 2"])
def test_compact_kernels(name: str):
    case = CASES[name]
    run = Runner(FAMILY, case.depthwise())
    builder = KernelBuilder("kernel", run.isa, compact=True)
    FAMILY.emit(run.plan, builder)
    run.kernel = builder.finish()
    arrays = random(case.image, 1), random((case.image[1], *case.window), 2), random(case.out, 3)
    expected = Runner(FAMILY, case.depthwise())(*arrays)[0]
    np.testing.assert_array_equal(run(*arrays)[0], expected)


@pytest.mark.parametrize("computed", [False, True])
@pytest.mark.parametrize("isa", ISA_NAMES)
@pytest.mark.parametrize("name", ["3x3", "stride 2", "narrower than a vector", "dilated", "wide padding"])
def test_no_access_can_leave_its_buffer(name: str, isa: str, computed: bool):
    run = Runner(FAMILY, CASES[name].depthwise(computed=computed), machine(isa))
    assert isinstance(run.plan, PlanesPlan)
    assert run.unproved() == []


def code(view: DispatchView) -> str:
    found = FAMILY.accepts(view, machine("avx2"))
    assert isinstance(found, Refusal)
    return found.code


def test_a_filter_that_differs_between_pixels_is_refused():
    case = CASES["3x3"]
    p = Program(case.image, (5, case.out[-1], 3, 3))
    maps = [case.image_map, dims_map(6, [1, 3, 4, 5]), dims_map(6, [0, 1, 2, 3])]
    filter_ = p.relu(p.x[1])
    view = p.dispatch(p.multiply_add(case.padded(p, 0.0), filter_, p.zeros(*case.out), maps, "pppprr"))
    assert code(view) == "channels-not-contiguous"


@pytest.mark.parametrize("sizes", [("h", 20), (13, "w"), ("h", "w")])
@pytest.mark.parametrize("isa", ISA_NAMES)
def test_lines_known_at_run_time(sizes: tuple[int | str, int | str], isa: str):
    """Every size, with each access checked, also where lines and pixels are several strips."""
    p = Program((4, *sizes), (4, 3, 3))
    image = AffineMap(5, 0, (dim(0), dim(1) + dim(3), dim(2) + dim(4)))
    maps = [image, dims_map(5, [0, 3, 4]), dims_map(5, [0, 1, 2])]
    x = p.pad(p.x[0], [0, 1, 1], [0, 1, 1])
    run = Runner(FAMILY, p.dispatch(p.multiply_add(x, p.x[1], p.zeros(4, *sizes), maps, "ppprr")), machine(isa))
    assert isinstance(run.plan, PlanesPlan)
    for h, w in ((1, 1), (2, 3), (13, 20), (24, 33), (25, 49), (61, 128)):
        known = {str(size): n for size, n in zip(sizes, (h, w), strict=True) if not isinstance(size, int)}
        whole = [n if isinstance(size, str) else size for size, n in zip(sizes, (h, w), strict=True)]
        image_, filter_ = random((4, *whole), 1), random((4, 3, 3), 2)
        padded = np.pad(image_, ((0, 0), (1, 1), (1, 1)))
        seen = np.lib.stride_tricks.sliding_window_view(padded, (3, 3), axis=(1, 2))
        assert check_bounds(run.kernel, list(known.values()), evaluate(run.plan.workgroups, known)) == []
        if isa == machine().name:
            assert_close(run(image_, filter_, sizes=known)[0], np.einsum("chwij,cij->chw", seen, filter_), least=1.0)
