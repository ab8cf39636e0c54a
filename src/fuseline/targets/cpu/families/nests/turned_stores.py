"""Stores of a workgroup that lie across its lanes: made along what is read, turned in registers, written as they lie.

    read    c ->                 written    w ->
        w   . . . .                     c   . . . .
        |   . . . .                     |   . . . .

A norm of an image with its channels last whose result has them first (convolutions compute with channels last, models
have them first) would scatter one element per lane. `register_transpose.py` makes a square of values in place of that.
"""

from __future__ import annotations

from collections.abc import Sequence

from fuseline.dispatch.loop_ref import LoopRef
from fuseline.ir.dim import product, upper_bound
from fuseline.targets.cpu.families.nests.groups import Group
from fuseline.targets.cpu.families.nests.recompute_cost import cost
from fuseline.targets.cpu.families.nests.stages import Stage, Staging
from fuseline.targets.cpu.families.nests.tiling import MAX_UNROLLED_OPS


def turned_axis(staging: Staging, group: Group, run: Sequence[LoopRef]) -> LoopRef | None:
    """The axis inside of a workgroup that all results of a group of elements lie along while its lanes cross it; None
    where there is none, or it is no vector long. `run`: the axes that are traversed with the chunked one."""
    if group.lane_axis is None or group.lanes not in (4, 8, 16) or any(stage.op is not None for stage in group.stages):
        return None
    axes = {stage.parallel[-1] if stage.parallel else None for stage in group.stages}
    axis = next(iter(axes), None)
    if len(axes) != 1 or axis is None or axis not in group.inner or axis in (group.lane_axis, *run):
        return None
    if not all(_alone(staging, stage, group) for stage in group.stages):
        return None
    along = run if group.lane_axis in run[-1:] else [group.lane_axis]
    return axis if all(_fills(staging, axes, group.lanes) for axes in ([axis], along)) else None


def _alone(staging: Staging, stage: Stage, group: Group) -> bool:
    """Whether a stage reads nothing of its group, and is cheap enough to be written out once per row of a square."""
    made = {value for other in group.stages for value in other.values}
    ops = staging.inlined(stage)
    return not stage.reads & made and all(
        cost(op, staging.live, staging.stored, MAX_UNROLLED_OPS) <= MAX_UNROLLED_OPS for op in ops
    )


def _fills(staging: Staging, run: Sequence[LoopRef], lanes: int) -> bool:
    """Whether axes that are traversed as one are a vector long, as far as is known."""
    return (upper_bound(product(staging.axes.extents[axis] for axis in run)) or lanes) >= lanes
