"""Which convolutions minimal filtering is for, and what it costs to evaluate their image tile by tile."""

from __future__ import annotations

import pytest
from xdsl.dialects import math
from xdsl.dialects.builtin import f32, f64
from xdsl.ir import Attribute, Operation

from fuseline.analysis.filtered_convolutions import TILE_OUTPUTS, filtered_dims, tile_overlap
from fuseline.analysis.prologue import prologue
from fuseline.analysis.prologue_kind import Prologue
from fuseline.analysis.shapes import ShapeAnalysis
from fuseline.analysis.structured import Kind, StructuredOp, kind
from fuseline.ir.costs import ASSUMED_COSTS
from tests.graphs.program import Program

LEAST = ASSUMED_COSTS.filtering_channels


def _convolved(channels: int, taps: int, element: Attribute = f32, size: int = 20) -> tuple[StructuredOp, Operation]:
    """A convolution of an image that is computed, and what computes it."""
    p = Program((size, channels), (taps, channels, 8), element=element)
    image = p.unary(p.x[0], math.AbsFOp)
    p.done(p.convolution(image, p.x[1]))
    (root,) = (op for op in p.function.walk() if kind(op) is Kind.CONVOLUTION)
    return StructuredOp(root), image.owner  # pyright: ignore[reportReturnType, reportArgumentType]


def _through(root: StructuredOp, maker: Operation) -> Prologue:
    return prologue(root, 0, {maker}, ShapeAnalysis(), is_constant=lambda value: True)


@pytest.mark.parametrize(("channels", "taps", "element", "filtered"), [
    (LEAST, 3, f32, True),
    (LEAST, 5, f32, True),
    (LEAST - 1, 3, f32, False),  # its transforms cost more than they save
    (LEAST, 2, f32, False),  # so small a window
    (LEAST, 3, f64, False),  # the kernels are of f32, as their error bound is
])  # fmt: skip
def test_what_filtering_is_for(channels: int, taps: int, element: Attribute, filtered: bool):
    root, maker = _convolved(channels, taps, element)
    assert (filtered_dims(root, root.loops(ShapeAnalysis()), ASSUMED_COSTS) is not None) == filtered
    assert _through(root, maker).kind == ("filtered" if filtered else "boxed")


def test_tiles_overlap_along_every_axis():
    assert tile_overlap([3, 5]) == tile_overlap([3]) * tile_overlap([5]) == 1.5 * 2


@pytest.mark.parametrize("taps", [3, 5])
@pytest.mark.parametrize("channels", [LEAST, 3 * LEAST])
def test_pixels_are_evaluated_as_often_as_tiles_overlap(channels: int, taps: int):
    found = _through(*_convolved(channels, taps))
    assert found.recompute == found.beside_packed == tile_overlap([taps])
    assert found.recompute == (TILE_OUTPUTS + taps - 1) / TILE_OUTPUTS and found.operations == 1


def test_an_image_that_fits_no_box_is_packed():
    """Where filtering turns out to pay for nothing, rows come from a box: there must be one."""
    assert _through(*_convolved(4096, 3)).kind == "packed"
