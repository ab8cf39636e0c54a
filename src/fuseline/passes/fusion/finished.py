"""Groups as they become dispatches: their last arms and loops, once no merge is left."""

from __future__ import annotations

from fuseline.analysis.shapes import ShapeAnalysis
from fuseline.passes.fusion.group import Group
from fuseline.passes.fusion.inlining import with_inlined_members
from fuseline.passes.fusion.separate_arms import with_separate_arms
from fuseline.passes.fusion.shared_argument import along_arguments
from fuseline.report.records import Decision


def finished(group: Group, shapes: ShapeAnalysis) -> tuple[Group, list[Decision]]:
    """The group with its last arms, each over all the loops that its members share, and what was decided about arms
    that could be one."""
    return along_arguments(with_inlined_members(with_separate_arms(group)), shapes)
