"""Depthwise convolutions and poolings against NumPy; every buffer ends at an unreadable page."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from itertools import product
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray
from xdsl.dialects import arith
from xdsl.ir import SSAValue
from xdsl.ir.affine import AffineExpr, AffineMap

from fuseline.dispatch.view import DispatchView
from fuseline.ir.build import Body, dims_map
from fuseline.targets.cpu.families.family import Family
from fuseline.targets.cpu.families.window.family import WindowFamily
from fuseline.targets.cpu.isa import machine
from fuseline.targets.target import Refusal
from tests.graphs.program import Program
from tests.kernels import Runner, assert_close, random

FAMILY = WindowFamily()
Array = NDArray[Any]
dim = AffineExpr.dimension
LOWEST = float(np.finfo(np.float32).min)
BODIES: dict[str, tuple[Any, float, Any]] = {
    "max": (arith.MaximumfOp, -np.inf, np.maximum),
    "min": (arith.MinimumfOp, np.inf, np.minimum),
    "sum": (arith.AddfOp, 0.0, np.add),
}


def taps(x: Array, window: Sequence[int], stride: int, dilation: int) -> list[Array]:
    """The image as every window position sees it: `x[n, *space, c]` without padding."""
    out = [(x.shape[1 + i] - (k - 1) * dilation - 1) // stride + 1 for i, k in enumerate(window)]
    found: list[Array] = []
    for tap in product(*(range(size) for size in window)):
        where = tuple(
            slice(t * dilation, t * dilation + (o - 1) * stride + 1, stride) for t, o in zip(tap, out, strict=True)
        )
        found.append(x[:, *where].astype(np.float64))
    return found


def image_map(rank: int, stride: int, dilation: int) -> AffineMap:
    """Loops `(n, *space, c, *window)`."""
    space = [dim(1 + i) * stride + dim(rank + 2 + i) * dilation for i in range(rank)]
    return AffineMap(2 * rank + 2, 0, (dim(0), *space, dim(rank + 1)))


class Case:
    """A window over `[batch, *image, channels]` with padding."""

    def __init__(
        self, image: Sequence[int], window: Sequence[int], channels: int, *, stride: int = 1, dilation: int = 1,
        pad: tuple[int, int] = (0, 0), batch: int = 1,
    ) -> None:  # fmt: skip
        self.rank, self.window, self.stride, self.dilation, self.padding = (
            len(image),
            tuple(window),
            stride,
            dilation,
            pad,
        )
        self.image = (batch, *image, channels)
        sizes = [(s + sum(pad) - (k - 1) * dilation - 1) // stride + 1 for s, k in zip(image, window, strict=True)]
        self.out = (batch, *sizes, channels)
        self.kinds = "p" * (self.rank + 2) + "r" * self.rank
        self.out_map = dims_map(2 * self.rank + 2, list(range(self.rank + 2)))
        self.window_map = dims_map(2 * self.rank + 2, list(range(self.rank + 2, 2 * self.rank + 2)))

    def padded(self, p: Program, x: SSAValue, value: float) -> SSAValue:
        low, high = ([0, *[side] * self.rank, 0] for side in self.padding)
        return p.pad(x, low, high, value) if any(self.padding) else x

    def depthwise(self, *, constant: bool = True) -> DispatchView:
        c = self.image[-1]
        p = Program(self.image, (*self.window, c), (c,), self.out, constants=[1, 2] if constant else [])
        filter_map = dims_map(2 * self.rank + 2, [*range(self.rank + 2, 2 * self.rank + 2), self.rank + 1])
        maps = [image_map(self.rank, self.stride, self.dilation), filter_map, self.out_map]
        y = p.multiply_add(self.padded(p, p.x[0], 0.0), p.x[1], p.zeros(*self.out), maps, self.kinds)
        return p.dispatch(p.relu(p.add(p.bias(y, p.x[2], self.rank + 1), p.x[3])))

    def pooling(self, name: str, value: float | None = None) -> DispatchView:
        op, identity, _ = BODIES[name]
        p = Program(self.image)
        x = self.padded(p, p.x[0], identity if value is None else value)
        maps = [image_map(self.rank, self.stride, self.dilation), self.window_map, self.out_map]
        kinds = ["parallel" if k == "p" else "reduction" for k in self.kinds]
        body: Callable[[Body], Sequence[SSAValue]] = lambda b: [b.op(op, b.args[2], b.args[0])]  # noqa: E731
        y = p.emit.generic([x, p.empty(*self.window)], [p.zeros(*self.out, value=identity)], maps, kinds, body).results[
            0
        ]
        return p.dispatch(y)

    def check_depthwise(self, *, constant: bool = True, family: Family | None = None) -> None:
        x, w = random(self.image, 1), random((*self.window, self.image[-1]), 2)
        bias, residual = random(self.image[-1:], 3), random(self.out, 4)
        low, high = self.padding
        xp = np.pad(x, [(0, 0), *[(low, high)] * self.rank, (0, 0)])
        filters = w.reshape(-1, self.image[-1])
        total = sum(t * f for t, f in zip(taps(xp, self.window, self.stride, self.dilation), filters, strict=True))
        run = Runner(family or FAMILY, self.depthwise(constant=constant))
        for at_end in (True, False):
            assert_close(run(x, w, bias, residual, at_end=at_end)[0], np.maximum(total + bias + residual, 0), least=1.0)

    def check_pooling(self, name: str, value: float | None = None, *, family: Family | None = None) -> None:
        _, identity, combine = BODIES[name]
        x = random(self.image, 1)
        low, high = self.padding
        xp = np.pad(
            x, [(0, 0), *[(low, high)] * self.rank, (0, 0)], constant_values=identity if value is None else value
        )
        expected = np.full(self.out, identity)
        for tap in taps(xp, self.window, self.stride, self.dilation):
            expected = combine(expected, tap)
        run = Runner(family or FAMILY, self.pooling(name, value))
        for at_end in (True, False):
            assert_close(run(x, at_end=at_end)[0], expected, least=1.0)


CASES = {
    "3x3": Case((10, 12), (3, 3), 24, pad=(1, 1)),
    "3x3 stride 2": Case((11, 14), (3, 3), 16, stride=2, pad=(1, 1)),
    "3x3 stride 2 padded at the end": Case((12, 12), (3, 3), 8, stride=2, pad=(0, 1)),
    "dilated": Case((14, 14), (3, 3), 8, dilation=3, pad=(3, 3)),
    "5x5": Case((9, 9), (5, 5), 20, pad=(2, 2)),
    "11x11": Case((16, 14), (11, 11), 8, pad=(5, 5)),
    "odd channels": Case((7, 7), (3, 3), 13, pad=(1, 1)),
    "one channel": Case((7, 7), (3, 3), 1, pad=(1, 1)),
    "batch": Case((5, 5), (3, 3), 9, pad=(1, 1), batch=3),
    "one dimension": Case((40,), (7,), 12, pad=(3, 3)),
    "three dimensions": Case((5, 4, 6), (3, 3, 3), 10, pad=(1, 1)),
    "2x2 stride 2": Case((8, 8), (2, 2), 17, stride=2),
    "whole image": Case((7, 7), (7, 7), 40),
}


@pytest.mark.parametrize("name", CASES)
def test_depthwise(name: str):
    if CASES[name].image[-1] == 1:
        return  # a depthwise convolution of one channel is a convolution
    CASES[name].check_depthwise()


def test_depthwise_with_a_filter_known_at_run_time():
    CASES["odd channels"].check_depthwise(constant=False)


@pytest.mark.parametrize("body", BODIES)
@pytest.mark.parametrize("name", [name for name in CASES if name != "one channel"])
def test_pooling(name: str, body: str):
    CASES[name].check_pooling(body)


@pytest.mark.parametrize("value", [0.0, LOWEST])
def test_padding_that_takes_part(value: float):
    CASES["3x3 stride 2"].check_pooling("max", value)


@settings(max_examples=20, deadline=None)
@given(
    st.integers(1, 14), st.integers(1, 14), st.integers(1, 4), st.integers(1, 4), st.integers(2, 40), st.integers(1, 3),
    st.integers(1, 2),
    st.integers(0, 2), st.integers(0, 2),
)  # fmt: skip
def test_any_shape(h: int, w: int, kh: int, kw: int, c: int, stride: int, dilation: int, low: int, high: int):
    if (max(kh, kw) - 1) * dilation + 1 > min(h, w) + low + high:
        return
    case = Case((h, w), (kh, kw), c, stride=stride, dilation=dilation, pad=(low, high))
    case.check_pooling("max")
    if kh * kw > 1:
        case.check_depthwise()


def test_global_pooling_with_a_mean():
    shape, out = (2, 7, 7, 37), (2, 37)
    p = Program(shape)
    maps = [dims_map(4, [0, 2, 3, 1]), dims_map(4, [0, 1])]
    kinds = ["parallel", "parallel", "reduction", "reduction"]
    y = p.emit.generic(
        [p.x[0]], [p.zeros(*out)], maps, kinds, lambda b: [b.op(arith.AddfOp, b.args[1], b.args[0])]
    ).results[0]
    mean = p.elementwise(
        [y],
        p.empty(*out),
        lambda b: b.op(arith.DivfOp, b.args[0], b.constant(49.0, p.element)),
        [dims_map(2, [0, 1])] * 2,
    )
    x = random(shape, 1)
    assert_close(Runner(FAMILY, p.dispatch(mean))(x)[0], x.mean(axis=(1, 2), dtype=np.float64))


@pytest.mark.parametrize(("h", "w", "c"), [(6, 9, 20), (1, 1, 3), (12, 16, 8)])
def test_sizes_known_at_run_time(h: int, w: int, c: int):
    p = Program((1, "h", "w", 24), (3, 3, 24), constants=[1])
    x = p.pad(p.x[0], [0, 1, 1, 0], [0, 1, 1, 0])
    maps = [image_map(2, 1, 1), dims_map(6, [4, 5, 3]), dims_map(6, [0, 1, 2, 3])]
    run = Runner(FAMILY, p.dispatch(p.multiply_add(x, p.x[1], p.zeros(1, "h", "w", 24), maps, "pppprr")))
    a, f = random((1, h, w, 24), c), random((3, 3, 24), 2)
    padded = np.pad(a, [(0, 0), (1, 1), (1, 1), (0, 0)])
    expected = sum(t * g for t, g in zip(taps(padded, (3, 3), 1, 1), f.reshape(9, 24), strict=True))
    assert_close(run(a, f, sizes={"h": h, "w": w})[0], np.asarray(expected))


def test_a_result_with_its_channels_first():
    """What a model flattens after its last pooling: the image has its channels last, the result has them first."""
    p = Program((8, 9, 13))
    image = AffineMap(5, 0, (dim(0) * 2 + dim(3), dim(1) * 2 + dim(4), dim(2)))
    maps = [image, dims_map(5, [3, 4]), dims_map(5, [2, 0, 1])]
    kinds = ["parallel"] * 3 + ["reduction"] * 2
    out = p.zeros(13, 3, 4, value=-np.inf)
    y = p.emit.generic(
        [p.x[0], p.empty(3, 3)], [out], maps, kinds, lambda b: [b.op(arith.MaximumfOp, b.args[2], b.args[0])]
    ).results[0]
    x = random((8, 9, 13), 1)
    expected = np.max(np.stack(taps(x[None], (3, 3), 2, 1)), axis=0)[0]
    assert_close(Runner(FAMILY, p.dispatch(y))(x)[0], expected.transpose(2, 0, 1))


@pytest.mark.parametrize("first", [False, True])
@pytest.mark.parametrize("constant", [False, True])
def test_channels_in_two_loops(constant: bool, first: bool):
    """Loops: line, pixel, channels outside, channels inside | window; `first`: the filter begins with its channels."""
    shape = (3, 8, 3, 3) if first else (3, 3, 3, 8)
    p = Program((6, 7, 3, 8), shape, constants=[1] if constant else [])
    image = AffineMap(6, 0, (dim(0) + dim(4), dim(1) + dim(5), dim(2), dim(3)))
    maps = [image, dims_map(6, [2, 3, 4, 5] if first else [4, 5, 2, 3]), dims_map(6, [0, 1, 2, 3])]
    run = Runner(FAMILY, p.dispatch(p.multiply_add(p.x[0], p.x[1], p.zeros(4, 5, 3, 8), maps, "pppprr")))
    x, w = random((6, 7, 3, 8), 1), random(shape, 2)
    filters = (w.transpose(2, 3, 0, 1) if first else w).reshape(9, 1, 24)
    expected = sum(t * f for t, f in zip(taps(x.reshape(1, 6, 7, 24), (3, 3), 1, 1), filters, strict=True))
    assert_close(run(x, w)[0], np.asarray(expected).reshape(4, 5, 3, 8))


def test_a_filter_that_differs_between_all_pixels_is_refused():
    p = Program((9, 8), (7, 8, 3))
    maps = [AffineMap(3, 0, (dim(0) + dim(2), dim(1))), dims_map(3, [0, 1, 2]), dims_map(3, [0, 1])]
    found = FAMILY.accepts(p.dispatch(p.multiply_add(p.x[0], p.x[1], p.zeros(7, 8), maps, "ppr")), machine("avx2"))
    assert isinstance(found, Refusal) and found.code == "filter-per-pixel"
