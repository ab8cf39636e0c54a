"""What the stages of a schedule read and write: how many elements with which axis contiguous."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from xdsl.dialects import tensor
from xdsl.ir import OpResult, SSAValue
from xdsl.ir.affine import AffineMap

from fuseline.analysis.structured import StructuredOp, is_generic, splat_value
from fuseline.dispatch.is_internal import is_internal
from fuseline.dispatch.loop_ref import LoopRef
from fuseline.ir.costs import ASSUMED_SIZE
from fuseline.ir.dim import Dim, upper_bound
from fuseline.targets.cpu.families.nests.contiguous_axis import contiguous_axis
from fuseline.targets.cpu.families.nests.gathers import gathers
from fuseline.targets.cpu.families.nests.stages import Staging

FULL_LANES = 32
"""Extents from here on leave few lanes empty."""


def _count(dim: Dim) -> int:
    return upper_bound(dim) or ASSUMED_SIZE


def contiguous_traffic(staging: Staging) -> dict[LoopRef, float]:
    """Per axis, how many elements are read or written with that axis contiguous in memory."""
    weights: dict[LoopRef, float] = {}

    def vote(axis: LoopRef | None, count: float) -> None:
        if axis is not None:
            weights[axis] = weights.get(axis, 0.0) + count

    for op in staging.live:
        if is_generic(op):
            structured, loops = StructuredOp(op), staging.axes.of_op(op)
            for value, map_ in zip((*structured.inputs, *structured.outputs), structured.maps, strict=True):
                if splat_value(value) is None and not is_uninitialised(value) and _in_memory(staging, value):
                    vote(
                        contiguous_axis(staging.view.shapes, value, map_.results, loops), _volume(staging, map_, loops)
                    )
    for axis, count in _computed(staging):
        vote(axis, count)
    for stage in staging.stages:
        for value in stage.values:
            axes = [axis for axis in staging.axes.of_value(value) if axis is not None]
            vote(axes[-1] if axes else None, 1.1 * elements(staging, axes))
    return weights


def _computed(staging: Staging) -> Iterator[tuple[LoopRef, float]]:
    """Reductions along which bodies read at computed places: along no axis is that contiguous, but the extent of these
    is known to fill the lanes."""
    reduced = {axis for stage in staging.stages for axis in stage.reduction}
    full = {axis for axis in reduced if isinstance(extent := staging.axes.extents[axis], int) and extent >= FULL_LANES}
    for op in staging.live if full else ():
        loops = staging.axes.of_op(op) if is_generic(op) else ()
        for gather in gathers(op) if is_generic(op) else ():
            axes = {axis for loop in gather.varies if (axis := loops[loop]) is not None}
            if gather.loops and gather.loops[-1] is None:
                yield from ((axis, elements(staging, list(axes))) for axis in axes & full)


def _in_memory(staging: Staging, value: SSAValue) -> bool:
    """Whether reading a value is reading memory: an argument, what a stage stores, or a box of either with steps of
    1."""
    while isinstance(value, OpResult) and isinstance(value.op, tensor.ExtractSliceOp) and value not in staging.stored:
        if any(step != 1 for step in value.op.static_strides.get_values()):
            return False
        value = value.op.source
    return not is_internal(value) or value in staging.stored


def is_uninitialised(value: SSAValue) -> bool:
    """Whether nothing was written to a value."""
    return isinstance(value.owner, tensor.EmptyOp)


def _volume(staging: Staging, map_: AffineMap, loops: Sequence[LoopRef | None]) -> float:
    used = {loops[d] for d in map_.used_dims()}
    return elements(staging, [axis for axis in used if axis is not None])


def elements(staging: Staging, axes: Sequence[LoopRef]) -> float:
    """How many points some axes have together; `ASSUMED_SIZE` for each without a bound."""
    total = 1.0
    for axis in axes:
        total *= _count(staging.axes.extents[axis])
    return total
