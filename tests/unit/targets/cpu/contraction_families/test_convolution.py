"""Convolutions against NumPy: windows, strides, dilations, padding, groups, dimensions, memory orders; buffers end at
unreadable pages."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import product
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray
from xdsl.dialects.builtin import TensorType
from xdsl.ir.affine import AffineExpr, AffineMap

from fuseline.dispatch.view import DispatchView
from fuseline.ir import dim as d
from fuseline.targets.cpu.families.contraction.convolution import ConvolutionFamily
from fuseline.targets.cpu.isa import machine
from tests.graphs.program import Program
from tests.kernels import Runner, assert_close, plan_of, random

FAMILY = ConvolutionFamily()
Array = NDArray[Any]


def convolve(x: Array, w: Array, stride: Sequence[int], dilation: Sequence[int]) -> Array:
    """`x[n, *space, ic]` with `w[*window, ic, oc]`, no padding, in float64."""
    rank = len(stride)
    window = w.shape[:rank]
    out = [(x.shape[1 + i] - (window[i] - 1) * dilation[i] - 1) // stride[i] + 1 for i in range(rank)]
    total = np.zeros((x.shape[0], *out, w.shape[-1]))
    for tap in product(*(range(size) for size in window)):
        where = tuple(
            slice(t * dl, t * dl + (o - 1) * s + 1, s) for t, dl, o, s in zip(tap, dilation, out, stride, strict=True)
        )
        total += np.tensordot(x[:, *where].astype(np.float64), w[tap], axes=1)
    return total


def maps_of(
    rank: int, stride: Sequence[int], dilation: Sequence[int], *, first: bool = False, written_first: bool = False
) -> list[AffineMap]:
    """Loops `(n, *space, oc, *window, ic)`; `first`: the image has its channels before space, `written_first`: the
    result has."""
    loops = 2 * rank + 3
    dim = AffineExpr.dimension
    space = [dim(1 + i) * stride[i] + dim(rank + 2 + i) * dilation[i] for i in range(rank)]
    image = [dim(0), dim(loops - 1), *space] if first else [dim(0), *space, dim(loops - 1)]
    filter_ = [*(dim(rank + 2 + i) for i in range(rank)), dim(loops - 1), dim(rank + 1)]
    pixels = [dim(1 + i) for i in range(rank)]
    out = [dim(0), dim(rank + 1), *pixels] if written_first else [dim(0), *pixels, dim(rank + 1)]
    return [AffineMap(loops, 0, tuple(image)), AffineMap(loops, 0, tuple(filter_)), AffineMap(loops, 0, tuple(out))]


class Case:
    """A convolution dispatch with padding, bias, residual and relu, and what it means."""

    def __init__(
        self, image: Sequence[int], window: Sequence[int], channels: tuple[int, int], *, stride: int = 1,
        dilation: int = 1,
        pad: tuple[int, int] = (0, 0), value: float = 0.0, batch: int = 1, epilogue: bool = True, constant: bool = True,
    ) -> None:  # fmt: skip
        self.rank = len(image)
        self.stride, self.dilation, self.padding, self.value = [stride] * self.rank, [dilation] * self.rank, pad, value
        self.image, self.filter = (batch, *image, channels[0]), (*window, *channels)
        self.out = (batch, *(self._out(size, k) for size, k in zip(image, window, strict=True)), channels[1])
        self.epilogue = epilogue
        self.constants = [1, 2] if constant else []

    def _out(self, size: int, window: int) -> int:
        return (size + sum(self.padding) - (window - 1) * self.dilation[0] - 1) // self.stride[0] + 1

    @property
    def view(self) -> DispatchView:
        oc = self.out[-1]
        p = Program(self.image, self.filter, (oc,), self.out, constants=self.constants)
        x = p.x[0]
        if any(self.padding):
            low, high = ([0, *[side] * self.rank, 0] for side in self.padding)
            x = p.pad(x, low, high, self.value)
        kinds = "p" * (self.rank + 2) + "r" * (self.rank + 1)
        y = p.multiply_add(x, p.x[1], p.zeros(*self.out), maps_of(self.rank, self.stride, self.dilation), kinds)
        if self.epilogue:
            y = p.relu(p.add(p.bias(y, p.x[2], self.rank + 1), p.x[3]))
        return p.dispatch(y)

    def check(self, *, parts: int = 3) -> None:
        x, w, bias, residual = (
            random(shape, i) for i, shape in enumerate((self.image, self.filter, self.out[-1:], self.out))
        )
        low, high = self.padding
        padded = np.pad(x, [(0, 0), *[(low, high)] * self.rank, (0, 0)], constant_values=self.value)
        expected = convolve(padded, w, self.stride, self.dilation)
        if self.epilogue:
            expected = np.maximum(expected + bias + residual, 0)
        run = Runner(FAMILY, self.view)
        for at_end in (True, False):
            assert_close(run(x, w, bias, residual, parts=parts, at_end=at_end)[0], expected, least=1.0)


CASES = {
    "3x3": Case((14, 14), (3, 3), (16, 32), pad=(1, 1)),
    "3x3 of a small image": Case((7, 7), (3, 3), (24, 40), pad=(1, 1)),
    "3x3 stride 2": Case((15, 13), (3, 3), (8, 24), pad=(1, 1), stride=2),
    "3x3 padded at the end only": Case((12, 12), (3, 3), (8, 16), pad=(0, 1), stride=2),
    "7x7 stride 2 of three channels": Case((38, 38), (7, 7), (3, 64), pad=(3, 3), stride=2),
    "dilated": Case((20, 20), (3, 3), (8, 16), pad=(4, 4), dilation=4),
    "dilated beyond the image": Case((5, 5), (3, 3), (8, 16), pad=(6, 6), dilation=6),
    "dilated so far that tiles lie in the padding": Case((17, 17), (3, 3), (7, 20), pad=(12, 12), dilation=12),
    "dilated so far that tiles lie in other padding": Case(
        (19, 18), (3, 3), (6, 17), pad=(11, 9), dilation=10, value=-1.5
    ),
    "dilated with strides": Case((21, 23), (3, 4), (5, 9), pad=(13, 12), dilation=7, stride=2),
    "padding wider than the window": Case((4, 4), (2, 2), (5, 9), pad=(3, 3)),
    "padding that is not zero": Case((9, 9), (3, 3), (6, 11), pad=(1, 1), value=2.5),
    "1x1": Case((9, 7), (1, 1), (20, 30)),
    "1x1 stride 2": Case((9, 8), (1, 1), (20, 30), stride=2),
    "one output channel": Case((8, 8), (3, 3), (4, 1), pad=(1, 1)),
    "batch": Case((6, 6), (3, 3), (8, 16), pad=(1, 1), batch=3),
    "one pixel": Case((3, 3), (3, 3), (8, 16)),
    "one dimension": Case((50,), (5,), (12, 20), pad=(2, 2)),
    "three dimensions": Case((5, 6, 7), (3, 3, 3), (4, 10), pad=(1, 1), batch=2),
    "filter known at run time": Case((10, 10), (3, 3), (8, 24), pad=(1, 1), constant=False),
}


@pytest.mark.parametrize("name", CASES)
def test_channels_last(name: str):
    CASES[name].check()


@pytest.mark.parametrize("value", [0.0, 1.0])
def test_a_window_wider_than_the_page_of_pad_values(value: float):
    """Rows of the window in the padding are left out where they add nothing; else the image is evaluated into scratch,
    block by block."""
    case = Case((4, 20), (3, 3), (700, 8), pad=(12, 12), dilation=12, value=value, epilogue=False)
    assert plan_of(FAMILY, case.view, machine()).notes["lhs"] == ("linear" if value == 0 else "packed")
    case.check()


def test_taps_that_a_tile_meets_in_the_padding_are_left_out():
    """They would add zero times the filter: what is there does not matter."""
    case = Case((5, 13), (3, 3), (4, 8), pad=(9, 9), dilation=9, epilogue=False)
    x, w = random(case.image, 1), random(case.filter, 2)
    expected = convolve(np.pad(x, [(0, 0), (9, 9), (9, 9), (0, 0)]), w, case.stride, case.dilation)
    w[0], w[2] = np.nan, np.nan  # rows of the window
    bias, residual = random(case.out[-1:], 3), random(case.out, 4)
    assert_close(Runner(FAMILY, case.view)(x, w, bias, residual)[0], expected)
    narrow = Case((13, 5), (3, 3), (4, 8), pad=(9, 9), dilation=9, epilogue=False)
    x, w = random(narrow.image, 1), random(narrow.filter, 2)
    expected = convolve(np.pad(x, [(0, 0), (9, 9), (9, 9), (0, 0)]), w, narrow.stride, narrow.dilation)
    w[:, 0], w[:, 2] = np.nan, np.nan  # its columns, along which tiles lie
    assert_close(Runner(FAMILY, narrow.view)(x, w, bias, random(narrow.out, 4))[0], expected)


@settings(max_examples=25, deadline=None)
@given(
    st.integers(3, 17), st.integers(3, 17), st.integers(1, 3), st.integers(1, 3), st.integers(1, 9), st.integers(1, 40),
    st.integers(1, 3),
    st.integers(1, 2), st.integers(0, 3), st.integers(0, 3),
)  # fmt: skip
def test_any_shape(h: int, w: int, kh: int, kw: int, ic: int, oc: int, stride: int, dilation: int, low: int, high: int):
    if (max(kh, kw) - 1) * dilation + 1 > min(h, w) + low + high:
        return
    Case((h, w), (kh, kw), (ic, oc), stride=stride, dilation=dilation, pad=(low, high)).check(parts=2)


@pytest.mark.parametrize("written_first", [False, True])
def test_channels_before_space(written_first: bool):
    """The image is NCHW, as the first convolution of a model reads it; the result either way."""
    p = Program((2, 3, 17, 19), (3, 3, 3, 20), constants=[1])
    x = p.pad(p.x[0], [0, 0, 1, 1], [0, 0, 1, 1])
    out = (2, 20, 9, 10) if written_first else (2, 9, 10, 20)
    maps = maps_of(2, (2, 2), (1, 1), first=True, written_first=written_first)
    run = Runner(FAMILY, p.dispatch(p.multiply_add(x, p.x[1], p.zeros(*out), maps, "pppprrr")))
    a, w = random((2, 3, 17, 19), 1), random((3, 3, 3, 20), 2)
    expected = convolve(np.pad(a.transpose(0, 2, 3, 1), [(0, 0), (1, 1), (1, 1), (0, 0)]), w, (2, 2), (1, 1))
    assert_close(run(a, w)[0], expected.transpose(0, 3, 1, 2) if written_first else expected)


@pytest.mark.parametrize(("ic", "oc"), [(4, 8), (3, 5), (16, 16)])
def test_groups(ic: int, oc: int):
    """x[n, h, w, g, ic], f[g, kh, kw, ic, oc] -> [n, h, w, g, oc]"""
    groups, size = 3, 8
    p = Program((1, size, size, groups, ic), (groups, 3, 3, ic, oc), constants=[1])
    x = p.pad(p.x[0], [0, 1, 1, 0, 0], [0, 1, 1, 0, 0])
    dim = AffineExpr.dimension
    image = AffineMap(8, 0, (dim(0), dim(1) + dim(5), dim(2) + dim(6), dim(3), dim(7)))
    filter_, out = (
        AffineMap(8, 0, (dim(3), dim(5), dim(6), dim(7), dim(4))),
        AffineMap(8, 0, tuple(dim(i) for i in range(5))),
    )
    y = p.multiply_add(x, p.x[1], p.zeros(1, size, size, groups, oc), [image, filter_, out], "ppppprrr")
    a, w = random((1, size, size, groups, ic), 1), random((groups, 3, 3, ic, oc), 2)
    padded = np.pad(a, [(0, 0), (1, 1), (1, 1), (0, 0), (0, 0)])
    expected = np.stack([convolve(padded[..., g, :], w[g], (1, 1), (1, 1)) for g in range(groups)], axis=3)
    assert_close(Runner(FAMILY, p.dispatch(y))(a, w)[0], expected)


@pytest.mark.parametrize(("h", "w"), [(5, 9), (12, 7), (1, 1)])
def test_an_image_whose_size_is_known_at_run_time(h: int, w: int):
    p = Program((1, "h", "w", 4), (3, 3, 4, 8), (1, "h", "w", 8), constants=[1])
    x = p.pad(p.x[0], [0, 1, 1, 0], [0, 1, 1, 0])
    assert isinstance(x.type, TensorType)
    y = p.multiply_add(x, p.x[1], p.zeros(1, "h", "w", 8), maps_of(2, (1, 1), (1, 1)), "pppprrr")
    run = Runner(FAMILY, p.dispatch(p.relu(y)))
    a, f, unused = random((1, h, w, 4), 1), random((3, 3, 4, 8), 2), random((1, h, w, 8), 3)
    expected = convolve(np.pad(a, [(0, 0), (1, 1), (1, 1), (0, 0)]), f, (1, 1), (1, 1))
    assert_close(run(a, f, unused, sizes={"h": h, "w": w})[0], np.maximum(expected, 0))


def test_an_image_computed_in_a_prologue():
    p = Program((1, 8, 8, 6), (3, 3, 6, 10), constants=[1])
    x = p.pad(p.relu(p.x[0]), [0, 1, 1, 0], [0, 1, 1, 0])
    y = p.multiply_add(x, p.x[1], p.zeros(1, 8, 8, 10), maps_of(2, (1, 1), (1, 1)), "pppprrr")
    a, f = random((1, 8, 8, 6), 1), random((3, 3, 6, 10), 2)
    expected = convolve(np.pad(np.maximum(a, 0), [(0, 0), (1, 1), (1, 1), (0, 0)]), f, (1, 1), (1, 1))
    assert_close(Runner(FAMILY, p.dispatch(y))(a, f)[0], expected)


@pytest.mark.parametrize("batch", [1, 3])
def test_a_batch_known_at_run_time_is_shared_out_even_if_it_is_one(batch: int):
    p = Program(("n", 16, 16, 16), (3, 3, 16, 32), constants=[1])
    x = p.pad(p.x[0], [0, 1, 1, 0], [0, 1, 1, 0])
    y = p.multiply_add(x, p.x[1], p.zeros("n", 16, 16, 32), maps_of(2, (1, 1), (1, 1)), "pppprrr")
    run = Runner(FAMILY, p.dispatch(y))
    assert d.evaluate(run.plan.workgroups, {"n": 1}) >= 4
    a, f = random((batch, 16, 16, 16), 1), random((3, 3, 16, 32), 2)
    expected = convolve(np.pad(a, [(0, 0), (1, 1), (1, 1), (0, 0)]), f, (1, 1), (1, 1))
    assert_close(run(a, f, sizes={"n": batch})[0], expected)


@pytest.mark.parametrize("multiplier", [2, 3])
def test_a_depthwise_convolution_with_a_channel_multiplier(multiplier: int):
    """x[h, w, c], f[kh, kw, c, m] -> [h, w, c, m]"""
    c = 5
    p = Program((9, 8, c), (3, 3, c, multiplier), constants=[1])
    dim = AffineExpr.dimension
    image = AffineMap(6, 0, (dim(0) + dim(4), dim(1) + dim(5), dim(2)))
    filter_, out = AffineMap(6, 0, (dim(4), dim(5), dim(2), dim(3))), AffineMap(6, 0, tuple(dim(i) for i in range(4)))
    x = p.pad(p.x[0], [1, 1, 0], [1, 1, 0])
    y = p.multiply_add(x, p.x[1], p.zeros(9, 8, c, multiplier), [image, filter_, out], "pppprr")
    a, w = random((9, 8, c), 1), random((3, 3, c, multiplier), 2)
    padded = np.pad(a, [(1, 1), (1, 1), (0, 0)])
    expected = sum(
        padded[i : i + 9, j : j + 8, :, None].astype(np.float64) * w[i, j] for i in range(3) for j in range(3)
    )
    assert_close(Runner(FAMILY, p.dispatch(y))(a, w)[0], np.asarray(expected))


def test_a_strided_pointwise_convolution_without_window_loops():
    """What folding unit dimensions leaves of a 1x1 convolution with stride 2, read from an image with its channels
    first."""
    p = Program((12, 9, 10), (12, 20), (20,), constants=[1, 2])
    dim = AffineExpr.dimension
    maps = [
        AffineMap(4, 0, (dim(3), dim(0) * 2, dim(1) * 2)),
        AffineMap(4, 0, (dim(3), dim(2))),
        AffineMap(4, 0, tuple(dim(i) for i in range(3))),
    ]
    y = p.multiply_add(p.x[0], p.x[1], p.zeros(5, 5, 20), maps, "pppr")
    run = Runner(FAMILY, p.dispatch(p.bias(y, p.x[2], 2)))
    a, w, bias = random((12, 9, 10), 1), random((12, 20), 2), random((20,), 3)
    assert_close(run(a, w, bias)[0], np.einsum("chw,co->hwo", a[:, ::2, ::2], w, dtype=np.float64) + bias)
