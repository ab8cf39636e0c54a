"""Convolutions whose image is computed: a workgroup evaluates the box that its rows read, once, whatever the window."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from math import prod
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray
from xdsl.dialects.builtin import f32, f64
from xdsl.ir import Attribute, SSAValue
from xdsl.ir.affine import AffineExpr, AffineMap

from fuseline.analysis.box_blocks import LEAST_ROWS
from fuseline.analysis.image_box import BOX_BYTES
from fuseline.targets.cpu.families.contraction.convolution import ConvolutionFamily
from fuseline.targets.cpu.families.contraction.family import ContractionFamily
from fuseline.targets.cpu.families.contraction.plan import ContractionPlan
from fuseline.targets.cpu.isa import machine
from tests.draws import RNG
from tests.graphs.program import Program, Size
from tests.kernels import Runner, assert_close, plan_of, random

from .narrow import integers, narrow
from .test_convolution import convolve, maps_of

FAMILY = ConvolutionFamily()
Array = NDArray[Any]


@dataclass(frozen=True)
class Case:
    """A convolution of the relu of an image, padded with `value`; `first`: channels are outermost, `around`: relu
    behind the pad, `fed`: the filter is no constant."""

    image: tuple[int, ...]
    window: tuple[int, ...]
    channels: tuple[int, int]
    stride: int = 1
    dilation: int = 1
    pad: tuple[int, int] = (0, 0)
    value: float = 0.0
    batch: int = 1
    first: bool = False
    around: bool = False
    element: Attribute = f32
    named: Sequence[int] = ()
    fed: bool = False

    @property
    def out(self) -> list[int]:
        """Pixels of the result."""
        reach = [(k - 1) * self.dilation + 1 for k in self.window]
        return [(s + sum(self.pad) - r) // self.stride + 1 for s, r in zip(self.image, reach, strict=True)]

    def run(self, *, evaluated: bool = False) -> Runner:
        """Compare with NumPy: between guard pages, and, where that is quick, on the evaluator that checks accesses."""
        rank, (ic, oc) = len(self.image), self.channels
        dtype = np.float32 if self.element == f32 else np.float64
        sizes = {f"s{axis}": self.image[axis] for axis in self.named}
        pixels: list[Size] = [f"s{axis}" if axis in self.named else n for axis, n in enumerate(self.image)]
        out: list[Size] = [pixels[axis] if axis in self.named else n for axis, n in enumerate(self.out)]
        shape: list[Size] = [self.batch, ic, *pixels] if self.first else [self.batch, *pixels, ic]
        constants = [] if self.fed else [1]
        p = Program(shape, (*self.window, ic, oc), (self.batch, *out, oc), constants=constants, element=self.element)
        maps = maps_of(rank, [self.stride] * rank, [self.dilation] * rank, first=self.first)
        x = p.relu(self._padded(p, p.x[0])) if self.around else self._padded(p, p.relu(p.x[0]))
        y = p.multiply_add(x, p.x[1], p.zeros(self.batch, *out, oc), maps, "p" * (rank + 2) + "r" * (rank + 1))
        run = Runner(FAMILY, p.dispatch(y))
        assert run.plan.notes["lhs"] == "boxed"
        image = (self.batch, ic, *self.image) if self.first else (self.batch, *self.image, ic)
        a, w = random(image, 1, dtype), random((*self.window, ic, oc), 2, dtype)
        unused, wanted = random((self.batch, *self.out, oc), 3, dtype), self._wanted(a, w)
        for at_end in (True, False):
            assert_close(run(a, w, unused, sizes=sizes, parts=3, at_end=at_end)[0], wanted, least=1.0)
        if evaluated:
            assert_close(run.evaluated(a, w, unused, sizes=sizes)[0], wanted, least=1.0)
        return run

    def _padded(self, p: Program, x: SSAValue) -> SSAValue:
        low, high = ([0, 0, *[side] * len(self.image)] for side in self.pad)
        if not self.first:
            low, high = ([0, *[side] * len(self.image), 0] for side in self.pad)
        return p.pad(x, low, high, self.value) if any(self.pad) else x

    def _wanted(self, a: Array, w: Array) -> Array:
        image = np.maximum(a, 0)
        image = np.moveaxis(image, 1, -1) if self.first else image
        around = max(self.value, 0.0) if self.around else self.value
        padded = np.pad(image, [(0, 0), *[self.pad] * len(self.image), (0, 0)], constant_values=around)
        return convolve(padded, w, [self.stride] * len(self.image), [self.dilation] * len(self.image))


CASES = {
    "3x3": Case((14, 15), (3, 3), (8, 20), pad=(1, 1)),
    "channels first": Case((14, 15), (3, 3), (3, 20), pad=(1, 1), first=True),
    "7x7 stride 2": Case((38, 39), (7, 7), (3, 40), stride=2, pad=(3, 3), first=True, value=0.5),
    "relu behind the pad": Case((20, 21), (3, 3), (3, 8), stride=2, pad=(1, 0), first=True, around=True, value=2.0),
    "dilated": Case((20, 33), (3, 3), (5, 9), dilation=5, pad=(5, 4)),
    "dilated with strides": Case((21, 23), (3, 4), (5, 9), dilation=7, stride=2, pad=(13, 12)),
    "every second element": Case((20, 21), (1, 1), (3, 8), stride=2, first=True),
    "every fourth element, of every second": Case((25, 26), (3, 3), (3, 8), stride=4, dilation=2, first=True),
    "one line of windows side by side": Case((3, 64), (3, 4), (3, 24), stride=4, first=True),
    "windows side by side": Case((48, 64), (8, 8), (3, 24), stride=8, first=True),
    "lines": Case((200,), (5,), (12, 20), pad=(2, 2), batch=2),
    "boxes": Case((5, 6, 7), (3, 3, 3), (4, 10), pad=(1, 1), batch=2),
    "batch": Case((9, 9), (3, 3), (4, 9), batch=3, pad=(1, 1), first=True),
    "64 bits": Case((18, 19), (5, 5), (3, 12), pad=(2, 2), first=True, element=f64),
    "many lines": Case((100, 40), (3, 3), (3, 16), pad=(1, 1), first=True),
    "lines that do not fit": Case((3, 90), (3, 3), (200, 8)),
    "one output channel": Case((8, 8), (3, 3), (4, 1), pad=(1, 1)),
}


@pytest.mark.parametrize("name", CASES)
def test_an_image_that_is_computed(name: str):
    CASES[name].run(evaluated=prod(CASES[name].image) * CASES[name].channels[0] < 4000)


FED = {
    "all rows at once": Case((130,), (5,), (5, 20), pad=(2, 2), fed=True),
    "images of 900 rows": Case((32, 32), (3, 3), (3, 32), batch=17, first=True, fed=True),
    "lines of 40 pixels": Case((60, 40), (3, 3), (6, 9), batch=9, pad=(1, 1), fed=True),
    "stride 2": Case((64, 64), (5, 5), (3, 8), stride=2, batch=16, pad=(2, 2), first=True, fed=True),
    "64 bits": Case((30, 29), (3, 3), (3, 12), pad=(1, 1), batch=16, first=True, element=f64, fed=True),
}


@pytest.mark.parametrize("name", FED)
def test_beside_a_filter_that_is_fed(name: str):
    FED[name].run(evaluated=prod(FED[name].image) * FED[name].channels[0] * FED[name].batch < 4000)


@pytest.mark.parametrize("element", [f32, f64])
def test_columns_are_packed_for_many_rows_or_once(element: Attribute):
    """A box of so few rows would have a filter that is fed packed again and again."""
    for _ in range(8):
        side, channels, batch = int(RNG.integers(20, 70)), int(RNG.integers(3, 65)), int(RNG.integers(1, 20))
        p = Program((batch, side, side, channels), (3, 3, channels, 16), element=element)
        out = p.zeros(batch, side - 2, side - 2, 16)
        y = p.multiply_add(p.relu(p.x[0]), p.x[1], out, maps_of(2, [1, 1], [1, 1]), "pppprrr")
        plan = plan_of(FAMILY, p.dispatch(y), machine())
        assert isinstance(plan, ContractionPlan)
        if plan.lhs_mode == "boxed" and plan.cut is None:
            rows = min(LEAST_ROWS, batch * (side - 2) ** 2)
            assert plan.blocks.lines * (side - 2) >= rows and plan.blocks.tiles == plan.tile_count


@pytest.mark.parametrize("named", [(0,), (1,), (0, 1)])
@pytest.mark.parametrize("image", [(1, 1), (5, 70), (33, 14)])
def test_images_whose_size_only_the_run_knows(image: tuple[int, int], named: Sequence[int]):
    case = Case(image, (3, 3), (3, 18), pad=(1, 1), first=bool(RNG.integers(2)), named=named)
    case.run(evaluated=prod(image) < 400)


def test_random_convolutions():
    for _ in range(12):
        rank = int(RNG.integers(1, 4))
        window = tuple(int(n) for n in RNG.integers(1, 5, rank))
        dilation, stride = (int(n) for n in RNG.integers(1, 4, 2))
        if rank == 1 and window == (1,) and stride == 1:
            continue  # a product
        low, high = (int(n) for n in RNG.integers(0, 4, 2))
        image = tuple(int(n) + (k - 1) * dilation for n, k in zip(RNG.integers(1, 18, rank), window, strict=True))
        channels = int(RNG.integers(1, 9)), int(RNG.integers(1, 40))
        if set(window) == {1} and stride == 1:
            continue
        case = Case(
            image, window, channels, stride, dilation, (low, high), float(RNG.integers(-1, 2)), int(RNG.integers(1, 3)),
            bool(RNG.integers(2)), bool(RNG.integers(2)),
        )  # fmt: skip
        case.run()


@pytest.mark.parametrize("bits", [(8, 8), (16, 8)])
@pytest.mark.parametrize("window", [1, 4, 7])
@pytest.mark.parametrize("first", [True, False])
def test_narrow_integers(bits: tuple[int, int], window: int, first: bool):
    """A pair beyond the last step of a window meets a zero; channels in pairs that lie far apart are turned."""
    h, w, oc, stride = 19, 22, 20, 2
    ic = int(RNG.choice([3, 4, 10, 18, 32]))
    out = [(n - window) // stride + 1 for n in (h, w)]
    shape = (1, ic, h, w) if first else (1, h, w, ic)
    p = narrow(shape, (window, window, ic, oc), bits=bits, constants=[1])
    maps = maps_of(2, [stride] * 2, [1, 1], first=first)
    y = p.multiply_add(p.x[0], p.x[1], p.zeros(1, *out, oc), maps, "pppprrr")
    run = Runner(FAMILY, p.dispatch(y))
    if window > 1:
        assert run.plan.notes["lhs"] == ("boxed" if bits[0] == 8 else "linear")
    a, f = integers(shape, bits[0], 1), integers((window, window, ic, oc), bits[1], 2)
    image = (np.moveaxis(a, 1, -1) if first else a).astype(np.int64)
    windows = np.lib.stride_tricks.sliding_window_view(image, (window, window), axis=(1, 2))[:, ::stride, ::stride]
    wanted = np.einsum("nyxcij,ijco->nyxo", windows, f.astype(np.int64)).astype(np.int32)
    np.testing.assert_array_equal(run(a, f, parts=2)[0], wanted)
    np.testing.assert_array_equal(run.evaluated(a, f)[0], wanted)


ACROSS = [
    (2, 64, 45, 41),
    (1, 6, 5, 7),
    (2, 2, 5, 6),
    (3, 5, 4, 7),
    (4, 3, 1, 40),
    (5, 9, 33, 1),
    (2, 7, 3, 5, 4),
    (40, 2, 3, 3),
]


@pytest.mark.parametrize("bits", [(8, 8), (16, 8)])
@pytest.mark.parametrize("shape", ACROSS)
def test_stored_pixels_that_are_one_row_together(shape: tuple[int, ...], bits: tuple[int, int]):
    """Of narrow integers whose channels lie far apart; the lines are then images."""
    batch, channels, *image = shape
    p = narrow(shape, (channels, 9), bits=bits, constants=[1])
    rank = len(image)
    reads = [(0, rank + 2, *range(1, rank + 1)), (rank + 2, rank + 1), tuple(range(rank + 2))]
    maps = [AffineMap(rank + 3, 0, tuple(map(AffineExpr.dimension, loops))) for loops in reads]
    y = p.multiply_add(p.x[0], p.x[1], p.zeros(batch, *image, 9), maps, "p" * (rank + 2) + "r")
    run = Runner(ContractionFamily(), p.dispatch(y))
    plan = run.plan
    assert isinstance(plan, ContractionPlan) and plan.lhs_mode == "boxed" and plan.loops.box is not None
    assert plan.loops.box.elements(plan.box_counts) * 2 <= BOX_BYTES
    a, f = integers(shape, bits[0], 1), integers((channels, 9), bits[1], 2)
    wanted = (np.moveaxis(a, 1, -1).astype(np.int64) @ f.astype(np.int64)).astype(np.int32)
    for parts in (1, 2):
        np.testing.assert_array_equal(run(a, f, parts=parts)[0], wanted)
    if a.size < 4000:
        np.testing.assert_array_equal(run.evaluated(a, f)[0], wanted)
    assert not run.unproved()


def _plan(image: tuple[int, int], channels: int, filter_: tuple[int, int]) -> ContractionPlan:
    """Of a computed image with its channels first, under a square window with a stride."""
    window, stride = filter_
    p = Program((1, channels, *image), (window, window, channels, 32), constants=[1])
    out = [(n - window) // stride + 1 for n in image]
    maps = maps_of(2, [stride] * 2, [1, 1], first=True)
    y = p.multiply_add(p.unary(p.x[0]), p.x[1], p.zeros(1, *out, 32), maps, "pppprrr")
    found = plan_of(FAMILY, p.dispatch(y), machine())
    assert isinstance(found, ContractionPlan)
    return found


@pytest.mark.parametrize("image", [(230, 230), (400, 90), (60, 3000)])
@pytest.mark.parametrize("channels", [1, 3, 16])
@pytest.mark.parametrize("filter_", [(3, 2), (7, 2), (16, 16), (5, 1)])
def test_a_box_fits_its_scratch(image: tuple[int, int], channels: int, filter_: tuple[int, int]):
    plan = _plan(image, channels, filter_)
    if plan.lhs_mode == "boxed":
        assert plan.loops.box is not None and plan.loops.box.elements(plan.box_counts) * 4 <= BOX_BYTES


def test_lines_are_shared_out_whole():
    """A box of half a line would evaluate what lies under both halves twice."""
    plan = _plan((41, 41), 3, (7, 2))
    assert plan.blocks.tiles == plan.tile_count
