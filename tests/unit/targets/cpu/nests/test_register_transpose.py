"""Tiles transposed in registers, alone: any part of the two axes, from lanes along the one to lanes along the other."""

from __future__ import annotations

import numpy as np
import pytest

from fuseline.evaluation import evaluate_function
from fuseline.targets.cpu.combinators.lanes import LaneLoop
from fuseline.targets.cpu.emit.coordinates import Index
from fuseline.targets.cpu.families.nests.register_transpose import RegisterTranspose
from fuseline.targets.cpu.families.nests.schedule import build_schedule
from fuseline.targets.cpu.families.nests.stages import Staging
from fuseline.targets.cpu.families.nests.workgroup import Workgroup
from fuseline.targets.cpu.isa import machine
from fuseline.targets.cpu.kernel_ir.builder import KernelBuilder
from fuseline.targets.cpu.kernel_ir.types import Operand
from tests.kernel_ir.evaluate import evaluate
from tests.kernels import Array

from .generics import function, tensor
from .test_resampling import resampled, tables
from .texts import inputs, parse

AVX2 = machine("avx2")
LANES = AVX2.f32_lanes
CHANNELS, NEW = 21, 19
"""Along what is read, and along what is written; neither is a whole number of vectors."""


class Square:
    """One row of an image `[1, w, channels]`, its columns resampled and its channels written outermost."""

    def __init__(self) -> None:
        text = resampled("%y", "%x", (1, "w", CHANNELS), 1, (7, NEW), "d2, d0, d1")
        arguments = [*tables(1, NEW), ("x", (1, 7, CHANNELS), "f32")]
        self.view = parse(function(arguments, [], text, [("%y", tensor((CHANNELS, 1, NEW)))]))
        self.arrays = inputs(self.view, {}, int(np.random.default_rng().integers(1 << 30)))
        self.schedule = build_schedule(Staging(self.view), AVX2)
        assert self.schedule.transposed

    def expected(self) -> Array:
        """`[channels, 1, new]`."""
        return evaluate_function(self.view.entry, self.arrays)[0]

    def written(
        self, span: tuple[Operand, Operand], tile: tuple[Operand, Operand], *, masked: bool, hidden: bool
    ) -> Array:
        """The result after the elements of `span` along the lane axis and `tile` along the tiled run are written, NaN
        elsewhere; `hidden`: the bounds are known at run time only."""
        k = KernelBuilder("kernel", AVX2)
        numbers = [k.size(i, NEW + CHANNELS) for i in range(4)] if hidden else [*span, *tile]
        workgroup = Workgroup(self.schedule, k)
        workgroup.enter(0)
        (group,) = self.schedule.groups
        assert group.lane_axis is not None
        workgroup.tile_span = (numbers[2], numbers[3])
        turned = RegisterTranspose(workgroup, group.stages, LaneLoop(k, LANES, masked=masked))
        others = {axis: Index(0) for axis in group.inner if axis != group.lane_axis}
        turned.emit(group.lane_axis, {**workgroup.grid, **others}, numbers[0], numbers[1])
        out = np.full((CHANNELS, 1, NEW), np.nan, np.float32)
        evaluate(k.finish(), [*self.arrays, out], [*map(int, (*span, *tile))] if hidden else [])  # pyright: ignore[reportArgumentType]
        return out


def _check(square: Square, span: tuple[int, int], tile: tuple[int, int], *, masked: bool, hidden: bool) -> None:
    found, expected = square.written(span, tile, masked=masked, hidden=hidden), square.expected()
    box = (slice(*tile), slice(None), slice(*span))
    np.testing.assert_allclose(found[box], expected[box], rtol=1e-5, atol=1e-4)
    found[box] = np.nan
    assert np.isnan(found).all()  # nothing else is written


@pytest.mark.parametrize("hidden", [False, True])
@pytest.mark.parametrize("masked", [False, True])
@pytest.mark.parametrize("span", [(0, NEW), (3, 3 + LANES), (2, 5), (4, 4)])
@pytest.mark.parametrize("tile", [(0, CHANNELS), (LANES, 2 * LANES + 1), (7, 13), (9, 9)])
def test_any_part_of_both_axes(span: tuple[int, int], tile: tuple[int, int], masked: bool, hidden: bool) -> None:
    _check(Square(), span, tile, masked=masked, hidden=hidden)
