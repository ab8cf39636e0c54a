"""Groups of stages: which are evaluated together, point by point, and with which axis across the lanes."""

from __future__ import annotations

from dataclasses import dataclass, field

from xdsl.ir import SSAValue

from fuseline.dispatch.loop_ref import LoopRef
from fuseline.targets.cpu.families.combining import combiners
from fuseline.targets.cpu.families.nests.stages import Stage, Staging, element_types
from fuseline.targets.cpu.isa.description import Machine
from fuseline.targets.cpu.kernel_ir.types import BITS


@dataclass(eq=False)
class Group:
    """Stages that share the loops over `inner`; `together` are those of them that reduce over exactly these loops.
    `turned`: the axis of `inner` that squares of values, made along `lane_axis`, are written along."""

    inner: list[LoopRef]
    stages: list[Stage]
    together: list[Stage] = field(default_factory=list[Stage])
    lane_axis: LoopRef | None = None
    lane_reduction: LoopRef | None = None
    lanes: int = 1
    turned: LoopRef | None = None


def groups_of(staging: Staging, grid: set[LoopRef]) -> list[Group]:
    """The stages, in order, in groups that share their inner loops."""
    groups: list[Group] = []
    home: dict[SSAValue, int] = {}
    for stage in staging.stages:
        inner = [axis for axis in stage.parallel if axis not in grid]
        first = max((home[value] for value in stage.reads if value in home), default=0)
        at, together = _place(staging, groups, stage, inner, first)
        if at == len(groups):
            groups.append(Group(inner, []))
        groups[at].stages.append(stage)
        if together:
            groups[at].together.append(stage)
        home.update((value, at) for value in stage.values)
    return groups


def _place(staging: Staging, groups: list[Group], stage: Stage, inner: list[LoopRef], first: int) -> tuple[int, bool]:
    """The first group from `first` on whose loops the stage can share, and whether it reduces over them; else a new
    group."""
    for at in range(first, len(groups)):
        group = groups[at]
        if not _in_step(staging, group, stage):
            continue
        if group.inner == inner:
            return at, False
        if (
            stage.op is not None
            and not inner
            and group.inner
            and stage.reduction == group.inner
            and combiners(stage.op) is not None
        ):
            return at, True
    return len(groups), False


def _in_step(staging: Staging, group: Group, stage: Stage) -> bool:
    """Whether what the stage reads of the group is there at the same point."""
    for other in group.stages:
        for value in other.values:
            if value in stage.reads and (other in group.together or staging.loose.get(value)):
                return False
    return True


def choose_lanes(
    staging: Staging, group: Group, weights: dict[LoopRef, float], lane: LoopRef | None, machine: Machine
) -> None:
    """Which axis of a group, or of what it reduces, runs across the lanes, and how many of them."""
    best = max(group.inner, key=lambda axis: weights.get(axis, 0.0), default=None)
    axis = lane if lane in group.inner else best
    reductions = [a for stage in group.stages if stage not in group.together for a in stage.reduction]
    across = max(reductions, key=lambda a: weights.get(a, 0.0), default=None)
    group.lanes = _lanes(staging, group, machine)
    if across is not None and weights.get(across, 0.0) > (weights.get(axis, 0.0) if axis is not None else -1.0):
        group.lane_reduction = across
        axis = None
    group.lane_axis = axis


def _lanes(staging: Staging, group: Group, machine: Machine) -> int:
    """Lanes that fill a register of the group's common element type."""
    widths = widths_of(staging, group)
    for width, dtype in ((32, "f32"), (64, "f64"), (16, "i16")):
        if width in widths:
            return machine.lanes(dtype)
    return machine.lanes("i8")


def widths_of(staging: Staging, group: Group) -> set[int]:
    """Bits of the elements of a group; 8 where all are bits alone."""
    types = {t for stage in group.stages for t in element_types(staging, stage)} - {"i1"}
    return {BITS[t] for t in types} or {8}
