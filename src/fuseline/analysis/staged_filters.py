"""Filters of windows that are computed where they are read: evaluated into scratch, by each block of lines.

    filter[channel][row][column] * 2   =>   a block of lines evaluates what its channels need, then slides the window

A block has many pixels for each element of the filter, so that few blocks share the lines of a channel.
"""

from __future__ import annotations

from math import prod

from xdsl.ir.affine import AffineDimExpr

from fuseline.analysis.indexing_maps import used_dims
from fuseline.analysis.packings import BLOCK_FLOPS, MOST_BLOCKS, TILES_PER_PACKING, extent_of
from fuseline.analysis.shapes import ShapeAnalysis
from fuseline.analysis.structured import Kind, StructuredOp, kind, multiply_add_operands
from fuseline.ir.costs import MachineCosts, assumed_size

MOST_STEPS = 512
"""Elements of the filter behind a channel: as many panels as that, of the widest vectors, fit the scratch."""

STEP_FLOPS = 8
"""What a step of a window is taken for: it is bound by loads (`targets/cpu`: as four multiply-adds of a product)."""

PACKED_PIXELS = 12 * TILES_PER_PACKING
"""Pixels of a block of lines, at least: `TILES_PER_PACKING` tiles."""


def is_filter(root: StructuredOp, position: int) -> bool:
    """Whether an input is what a depthwise convolution multiplies its image with."""
    sides = multiply_add_operands(root.op) if kind(root.op) is Kind.DEPTHWISE else None
    return sides is not None and position == min(sides, key=lambda side: len(used_dims(root.input_maps[side])))


def why_not_staged(root: StructuredOp, position: int, shapes: ShapeAnalysis) -> str | None:
    """Why the elements of a filter are not evaluated into scratch, None where they may be."""
    steps = extent_of(root, set(root.reduction), shapes)
    if not isinstance(steps, int):
        return "the size of the window is only known at run time"
    if steps > MOST_STEPS:
        return f"{steps} elements of the filter for each channel do not fit the scratch"
    return None


def stagings(root: StructuredOp, position: int, shapes: ShapeAnalysis, costs: MachineCosts) -> int:
    """How often each element of a filter is evaluated: once for each block of lines that its channel has, at the sizes
    that are assumed."""
    extents = [assumed_size(extent) for extent in root.loops(shapes)]
    mine = used_dims(root.input_maps[position])
    written = [expr.position for expr in root.output_maps[0].results if isinstance(expr, AffineDimExpr)]
    points = [extents[loop] for loop in written if loop not in mine and extents[loop] != 1]
    *outer, lines, pixels = (1, 1, *points)
    blocks = min(MOST_BLOCKS, max(1, STEP_FLOPS * prod(extents) // BLOCK_FLOPS))
    wanted = -(-blocks // prod(outer))
    panels = -(-prod(extents[loop] for loop in written if loop in mine) // costs.lanes)
    return prod(outer) * min(max(1, lines * pixels // PACKED_PIXELS), -(-wanted // min(panels, wanted)))
