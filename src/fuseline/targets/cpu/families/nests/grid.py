"""The grid of a schedule: the axes that every stage has, and which values are not stored for its sake."""

from __future__ import annotations

from collections.abc import Sequence

from xdsl.ir import SSAValue

from fuseline.analysis.structured import StructuredOp, is_generic
from fuseline.ir.dim import upper_bound
from fuseline.targets.cpu.emit.dtypes import dtype_of
from fuseline.targets.cpu.families.iteration import Node, is_internal
from fuseline.targets.cpu.families.nests.stages import SCRATCH_LIMIT_BYTES, Stage, Staging
from fuseline.targets.cpu.kernel_ir.types import BYTES


def grid_of(staging: Staging, stages: Sequence[Stage] | None = None) -> list[Node]:
    """The axes that every stage has, once each, that nothing reduces and nobody reads out of step; in the order of the
    largest result."""
    stages = staging.stages if stages is None else stages
    forbidden = _forbidden(staging, {value for stage in stages for value in stage.values})
    for stage in stages:
        forbidden.update(axis for axis in stage.parallel if stage.parallel.count(axis) > 1)
    main = max(stages, key=lambda stage: len(stage.parallel), default=None)
    if main is None:
        return []
    return [axis for axis in main.parallel if axis not in forbidden and all(axis in stage.parallel for stage in stages)]


def out_of_grid(staging: Staging) -> SSAValue | None:
    """A value stored only to save work that would cost axes of the grid."""
    needed = [stage for stage in staging.stages if stage.op is not None or any(stage.destinations.values())]
    grid = set(grid_of(staging, needed))
    for stage in staging.stages:
        if stage not in needed:
            (value,) = stage.values
            axes = staging.axes.of_value(value)
            loose = {axes[i] for i in staging.loose.get(value, ())}
            if not grid.issubset(stage.parallel) or loose & grid:
                return value
    return None


def _forbidden(staging: Staging, stored: set[SSAValue]) -> set[Node]:
    found: set[Node] = set()
    for op in staging.live:
        if is_generic(op):
            loops = [axis for axis in staging.axes.of_op(op) if axis is not None]
            found.update(axis for axis in loops if loops.count(axis) > 1)
            found.update(axis for i in StructuredOp(op).reduction if (axis := staging.axes.of_op(op)[i]) is not None)
    for value in stored:
        if is_internal(value):
            axes = staging.axes.of_value(value)
            found.update(axis for i in staging.loose.get(value, ()) if (axis := axes[i]) is not None)
    return found


def unaffordable(staging: Staging, grid: Sequence[Node]) -> SSAValue | None:
    """A stored value that is no result and needs too much scratch beside this grid.

    A reduction makes all its results together; those that are not stored, or that nobody reads, take no room.
    """
    for stage in staging.stages:
        for value in stage.values:
            if stage.destinations.get(value) or value in staging.hosts or value not in staging.stored:
                continue
            if scratch_elements(staging, value, grid) * BYTES[dtype_of(value.type)] > SCRATCH_LIMIT_BYTES:
                return value
    return None


def scratch_elements(staging: Staging, value: SSAValue, grid: Sequence[Node]) -> int:
    """Elements of `value` that one workgroup holds; a large number where a size is unbounded."""
    total = 1
    for axis, size in zip(staging.axes.of_value(value), staging.view.shapes.dims(value), strict=True):
        if axis is not None and axis not in grid:
            total *= upper_bound(size) or 1 << 40
    return total
