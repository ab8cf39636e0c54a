"""Groups as they become dispatches: their last arms and loops, once no merge is left."""

from __future__ import annotations

from dataclasses import replace

from fuseline.analysis.shapes import ShapeAnalysis
from fuseline.passes.fusion.group import Group
from fuseline.passes.fusion.inlining import with_inlined_members
from fuseline.passes.fusion.separate_arms import with_separate_arms
from fuseline.passes.fusion.shared_argument import along_arguments
from fuseline.report.records import Decision


def finished(group: Group, shapes: ShapeAnalysis) -> tuple[Group, list[Decision]]:
    """The group with its last arms, each over all the loops that its members share, and what was decided about arms
    that could be one."""
    return along_arguments(_with_stored_in_place(with_inlined_members(with_separate_arms(group))), shapes)


def _with_stored_in_place(group: Group) -> Group:
    """The group, with members that were evaluated where they are read in its grid, where a block stores their rows."""
    if group.arms:
        return replace(group, arms=tuple(_with_stored_in_place(arm) for arm in group.arms))
    placed = group.stored_rows.placed
    if not placed:
        return group
    return replace(group.plain, inlined=group.inlined - placed.keys(), grid_loop_of={**group.grid_loop_of, **placed})
