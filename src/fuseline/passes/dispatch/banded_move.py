"""A product, and the dispatch that alone reads its result and puts the elements elsewhere: two that could share bands
of rows.

    conv(y, x, c·2·2) ──> expand to (y, x, c, i, j) ──> transpose to (c, y, i, x, j)

No loop of the root writes such squares of pixels in one piece (Shi et al., sub-pixel convolution, CVPR 2016), so that
rules keep the two apart; a band of the product that lies in the cache is moved from there.
"""

from __future__ import annotations

from typing import cast

from xdsl.dialects import linalg, tensor
from xdsl.ir import SSAValue

from fuseline.analysis.convolution_dims import convolution_dims
from fuseline.analysis.moves import groups_of
from fuseline.analysis.shapes import ShapeAnalysis
from fuseline.analysis.structured import Kind, StructuredOp, is_generic, is_reduction, kind
from fuseline.dispatch.fused_loops import members_of
from fuseline.dispatch.result_boxes import returned
from fuseline.ir.build import shape_of
from fuseline.ir.fast.direct import users_of_value
from fuseline.ir.flow import DispatchRegionOp
from fuseline.ir.provenance import replace
from fuseline.passes.cleanup.generalize_named_ops import generalized
from fuseline.passes.dispatch.banded_pair import (
    BandedPair,
    Sharing,
    grid_loop,
    grid_loop_of_result,
    has_products,
    loop_in_step,
    only_reader,
)
from fuseline.passes.dispatch.region_rows import RegionRows, rows_of_region
from fuseline.targets.target import Refusal

_NO_MOVE = Refusal("move", "what reads it computes, or is not one dispatch alone")


def moved_pair(region: DispatchRegionOp, shapes: ShapeAnalysis) -> BandedPair | Refusal:
    """`region`, which returns one value, with the one that moves what it makes, or why they cannot share bands."""
    opened = _opened(region.results[0])
    value = opened.result if opened is not None else region.results[0]
    reader = only_reader(value)
    if reader is None or any(map(is_reduction, members_of(reader.body.block))):
        return _NO_MOVE
    maker = _maker_rows(region, shapes)
    if isinstance(maker, Refusal):
        return maker
    axis = _axis_behind(opened, maker.axes[maker.results[0]])
    rows = _reader_rows(reader, value, axis, shapes) if axis is not None else _NO_MOVE
    if isinstance(rows, Refusal):
        return rows
    reads = [read for _, read in rows.reading(value)]
    in_step = len(reads) == 1 and reads[0].in_step and reads[0].axis == axis
    if not in_step or not all(result in rows.axes for result in rows.results):
        return Refusal("reads", "its rows are not read in step")
    return BandedPair(maker, rows, reads[0], Sharing.MOVE, opened=opened)


def _opened(image: SSAValue) -> tensor.ExpandShapeOp | None:
    users = users_of_value(image)
    opened = users[0] if len(users) == 1 else None
    return opened if isinstance(opened, tensor.ExpandShapeOp) and not opened.dynamic_output_shape else None


def _maker_rows(region: DispatchRegionOp, shapes: ShapeAnalysis) -> RegionRows | Refusal:
    """The product along the slowest loop that a window slides along, or the slowest of more than one step."""
    grid = _slid_loop(region, shapes)
    if grid is None:
        (value,) = returned(region.body.block)
        axis = next((i for i, size in enumerate(shape_of(value)) if size != 1), 0)
        grid = grid_loop_of_result(region, axis, shapes) if shape_of(value) else None
    found = rows_of_region(region, grid, shapes) if grid is not None else _NO_MOVE
    if isinstance(found, Refusal):
        return found
    is_product = has_products(found) and found.results[0] in found.axes
    return found if is_product else Refusal("roots", "what makes it is no product")


def _slid_loop(region: DispatchRegionOp, shapes: ShapeAnalysis) -> int | None:
    """The grid loop along the rows of a convolution."""
    for op in members_of(region.body.block):
        if is_generic(op) and kind(op) in (Kind.CONVOLUTION, Kind.DEPTHWISE):
            roles = convolution_dims(StructuredOp(op))
            return grid_loop(region, op, roles.spatial[0].loop, shapes) if roles is not None and roles.spatial else None
    return None


def _axis_behind(opened: tensor.ExpandShapeOp | None, axis: int) -> int | None:
    """Where dimension `axis` of an image is behind its reshape; None where it is split."""
    if opened is None:
        return axis
    group = groups_of(opened)[axis]
    return group[0] if len(group) == 1 else None


def _reader_rows(reader: DispatchRegionOp, value: SSAValue, axis: int, shapes: ShapeAnalysis) -> RegionRows | Refusal:
    for op in members_of(reader.body.block):
        if isinstance(op, linalg.ops.TransposeOp):
            replace(op, [cast(linalg.ops.GenericOp, generalized(op))])
    found = loop_in_step(reader, value, axis)
    grid = grid_loop(reader, *found, shapes) if found is not None else None
    return rows_of_region(reader, grid, shapes) if grid is not None else Refusal("loops", "its rows are no grid loop")
