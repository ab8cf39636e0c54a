"""A window over an image from outside, and products over its channels, as one kernel: blocks of pixels that read the
rows around them."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import pytest
from xdsl.dialects import arith
from xdsl.ir import SSAValue
from xdsl.ir.affine import AffineExpr, AffineMap

from fuseline.dispatch.view import DispatchView
from fuseline.ir.build import dims_map
from fuseline.targets.cpu.families.blocked.family import BlockedFamily
from fuseline.targets.cpu.families.blocked.plan import BlockedPlan
from fuseline.targets.cpu.families.family import Policy
from fuseline.targets.cpu.isa import ISA_NAMES, machine
from fuseline.targets.cpu.kernel_ir.printer import print_llvm
from fuseline.targets.cpu.link.compile import emit_object
from tests.draws import RNG
from tests.graphs.program import Program
from tests.kernels import Array, Runner, arrays_for, assert_close

from .run import check


@dataclass(frozen=True)
class Window:
    """How a window slides: `taps` by `taps`, and its borders at the low and high ends of both axes."""

    taps: int = 3
    stride: int = 1
    dilation: int = 1
    low: int = 1
    high: int = 1

    def results(self, size: int) -> int:
        """Pixels of the result along an axis of `size`."""
        return (size + self.low + self.high - (self.taps - 1) * self.dilation - 1) // self.stride + 1

    def map(self, rank: int, first: int, channel: int) -> AffineMap:
        """Where a tap lies in the padded image; the taps are loops `first` and the next."""
        d = [AffineExpr.dimension(i) for i in range(rank)]
        y, x = (d[1 + i] * self.stride + d[first + i] * self.dilation for i in range(2))
        return AffineMap(rank, 0, (d[0], y, x, d[channel]))

    def parts(self, image: Array, border: float) -> list[tuple[int, int, Array]]:
        """What each tap sees, in f64."""
        sides = (self.low, self.high)
        padded = np.pad(image.astype(np.float64), ((0, 0), sides, sides, (0, 0)), constant_values=border)
        h, w = (self.results(size) for size in image.shape[1:3])
        reach = [((n - 1) * self.stride + 1) for n in (h, w)]
        starts = [(i, j, i * self.dilation, j * self.dilation) for i in range(self.taps) for j in range(self.taps)]
        s = self.stride
        return [(i, j, padded[:, y : y + reach[0] : s, x : x + reach[1] : s]) for i, j, y, x in starts]


def slid(p: Program, kind: str, window: Window, image: SSAValue, filter_: SSAValue | None, *shape: int) -> SSAValue:
    """The window over an image, channels last, with its borders read in place; `shape` is that of the result."""
    low, high = ([0, n, n, 0] for n in (window.low, window.high))
    if kind == "pool":
        padded = p.pad(image, low, high, value=-np.inf)
        maps = [window.map(6, 4, 3), dims_map(6, [4, 5]), dims_map(6, [0, 1, 2, 3])]
        kinds = ["parallel"] * 4 + ["reduction"] * 2
        taps, init = p.empty(window.taps, window.taps), p.zeros(*shape, value=-np.inf)
        return p.emit.generic(
            [padded, taps], [init], maps, kinds, lambda b: [b.op(arith.MaximumfOp, b.args[2], b.args[0])]
        ).results[0]
    padded = p.pad(image, low, high)
    assert filter_ is not None
    if kind == "depthwise":
        maps = [window.map(6, 4, 3), dims_map(6, [4, 5, 3]), dims_map(6, [0, 1, 2, 3])]
        return p.multiply_add(padded, filter_, p.zeros(*shape), maps, "pppprr")
    maps = [window.map(7, 4, 6), dims_map(7, [4, 5, 6, 3]), dims_map(7, [0, 1, 2, 3])]
    return p.multiply_add(padded, filter_, p.zeros(*shape), maps, "pppprrr")


def pointwise(p: Program, x: SSAValue, weights: SSAValue, *shape: int) -> SSAValue:
    """A product over the channels; `shape` is that of the result."""
    maps = [dims_map(5, [0, 1, 2, 4]), dims_map(5, [4, 3]), dims_map(5, [0, 1, 2, 3])]
    return p.multiply_add(x, weights, p.zeros(*shape), maps, "ppppr")


def chained(kind: str, window: Window, image: tuple[int, int, int, int], mid: int, out: int) -> DispatchView:
    """Window, relu, a product over the channels and one more."""
    n, h, w, channels = image
    inner = mid if kind == "convolution" else channels
    filter_ = {"pool": (1,), "depthwise": (window.taps, window.taps, channels)}.get(
        kind, (window.taps, window.taps, channels, inner)
    )
    p = Program(image, filter_, (inner, mid), (mid, out), constants=[1, 2, 3])
    pixels = (n, window.results(h), window.results(w))
    y = p.relu(slid(p, kind, window, p.x[0], p.x[1], *pixels, inner))
    return p.dispatch(pointwise(p, pointwise(p, y, p.x[2], *pixels, mid), p.x[3], *pixels, out))


def expected(kind: str, window: Window, image: Array, filter_: Array, first: Array, second: Array) -> Any:
    """What `chained` gives."""
    parts = window.parts(image, -np.inf if kind == "pool" else 0.0)
    if kind == "pool":
        y = np.max([part for *_, part in parts], 0)
    else:
        y = sum(part @ filter_[i, j] if filter_.ndim == 4 else part * filter_[i, j] for i, j, part in parts)
    return [np.maximum(y, 0) @ first.astype(np.float64) @ second]


def expanded(window: Window, image: tuple[int, int, int, int], wide: int) -> DispatchView:
    """A product over the channels, relu, and a depthwise window over what it gives, relu."""
    n, h, w, channels = image
    p = Program(image, (channels, wide), (window.taps, window.taps, wide), constants=[1, 2])
    y = p.relu(pointwise(p, p.x[0], p.x[1], n, h, w, wide))
    return p.dispatch(p.relu(slid(p, "depthwise", window, y, p.x[2], n, window.results(h), window.results(w), wide)))


def expected_expanded(window: Window, image: Array, weights: Array, filter_: Array) -> Any:
    """What `expanded` gives."""
    y = np.maximum(image.astype(np.float64) @ weights, 0)
    return [np.maximum(sum(part * filter_[i, j] for i, j, part in window.parts(y, 0.0)), 0)]


WINDOWS = [
    Window(),
    Window(stride=2),
    Window(dilation=2, low=2, high=2),
    Window(low=0, high=1, stride=2),
    Window(taps=5),
]


@pytest.mark.parametrize("window", WINDOWS, ids=str)
@pytest.mark.parametrize("kind", ["depthwise", "convolution", "pool"])
def test_a_window_and_products_over_its_channels(kind: str, window: Window):
    h, w = (int(RNG.integers(7, 17)) for _ in range(2))
    channels, mid, out = (int(RNG.integers(3, 40)) for _ in range(3))
    view = chained(kind, window, (1, h, w, channels), mid, out)
    for plan in check(view, lambda *a: expected(kind, window, *a), threads=(1, 2, 3)):
        assert isinstance(plan, BlockedPlan)


@pytest.mark.parametrize("kind", ["depthwise", "convolution", "pool"])
def test_blocks_of_rows_read_the_rows_around_them(kind: str):
    window = Window()
    view = chained(kind, window, (1, 17, 15, 36), 40, 72)
    plans = check(view, lambda *a: expected(kind, window, *a), threads=(2, 3))
    assert all(isinstance(plan, BlockedPlan) and plan.tiles for plan in plans)


@pytest.mark.parametrize("window", WINDOWS, ids=str)
def test_a_window_over_what_a_product_gives(window: Window):
    h, w = (int(RNG.integers(7, 17)) for _ in range(2))
    channels, wide = int(RNG.integers(3, 20)), int(RNG.integers(3, 100))
    view = expanded(window, (int(RNG.integers(1, 3)), h, w, channels), wide)
    for plan in check(view, lambda *a: expected_expanded(window, *a), threads=(1, 2, 3)):
        assert isinstance(plan, BlockedPlan)


@pytest.mark.parametrize("wide", [48, 72, 144])
def test_blocks_of_channels_make_their_image_in_scratch(wide: int):
    window = Window()
    view = expanded(window, (1, 23, 21, 8), wide)
    plans = check(view, lambda *a: expected_expanded(window, *a), threads=(3,))
    assert all(isinstance(plan, BlockedPlan) and plan.tiles for plan in plans)


@pytest.mark.parametrize("isa", ISA_NAMES)
def test_a_window_over_what_a_product_gives_on_every_isa(isa: str):
    window, target = Window(stride=2), machine(isa)
    run = Runner(BlockedFamily(Policy(threads=4)), expanded(window, (1, 7, 9, 5), 40), target)
    assert emit_object(print_llvm([run.kernel], target), target)[:4] == b"\x7fELF"
    arrays = arrays_for(run.view)
    assert_close(run.evaluated(*arrays)[0], expected_expanded(window, *arrays)[0], bits=15)


@pytest.mark.parametrize("isa", ISA_NAMES)
@pytest.mark.parametrize("kind", ["depthwise", "pool"])
def test_windows_and_products_on_every_isa(kind: str, isa: str):
    window, target = Window(stride=2), machine(isa)
    run = Runner(BlockedFamily(Policy(threads=4)), chained(kind, window, (1, 11, 9, 19), 5, 17), target)
    assert emit_object(print_llvm([run.kernel], target), target)[:4] == b"\x7fELF"
    arrays = arrays_for(run.view)
    assert_close(run.evaluated(*arrays)[0], expected(kind, window, *arrays)[0], bits=15)
