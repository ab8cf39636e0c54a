"""What a target takes of any dispatch, whichever rule formed it: buffers, arms, code, and what it vetoes for reasons of
its own."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TypeAlias

from fuseline.ir.target_description import TargetDescription
from fuseline.passes.fusion.code_size import over_limit
from fuseline.passes.fusion.decision import WhyNot
from fuseline.passes.fusion.graph import FusionGraph
from fuseline.passes.fusion.group import Group
from fuseline.passes.fusion.horizontal import HorizontalMerge

Veto: TypeAlias = Callable[[Sequence[Group]], "WhyNot | None"]
"""Why the target does not take a dispatch whose arms are these groups (one: a dispatch of one part), None where it
does."""


def no_veto(groups: Sequence[Group]) -> WhyNot | None:
    """Of a target that takes everything."""
    del groups
    return None


class DispatchLimits:
    """The limits that `target` states, those of nodes of `graph` that came out too long, and the target's `veto`."""

    def __init__(self, graph: FusionGraph, target: TargetDescription, veto: Veto = no_veto) -> None:
        self.graph, self.target, self.veto = graph, target, veto

    def refusal(self, group: Group) -> WhyNot | None:
        """The first limit that a group is beyond, None where it is within all."""
        return self.bindings(group) or self.code(group) or self.veto([group])

    def bindings(self, group: Group) -> WhyNot | None:
        """The refusal of a group that binds too many buffers."""
        return self._bindings(group.bindings() + len(group.stored_rows.added), group)

    def _bindings(self, count: int, at: Group) -> WhyNot | None:
        limit = self.target.binding_limit
        if count <= limit:
            return None
        return WhyNot(
            "binding-limit", f"{count} buffers, the target binds {limit}", at.root.name, {"bindings": float(count)}
        )

    def code(self, group: Group) -> WhyNot | None:
        """The refusal of a group that would be too much code."""
        return over_limit(group, self.target, self.graph.code_limits)

    def arms(self, merge: HorizontalMerge) -> WhyNot | None:
        """The refusal of a horizontal merge of too many arms; a concat that the others write into is none."""
        return self._arms(len(merge.groups) - 1, merge.groups[-1])

    def _arms(self, count: int, at: Group) -> WhyNot | None:
        limit = self.target.arms_limit
        if count <= limit and limit > 1:
            return None
        return WhyNot("arms-limit", f"{count} arms, the target takes {limit}", at.root.name, {"arms": float(count)})

    def side_by_side(self, groups: Sequence[Group]) -> WhyNot | None:
        """The refusal of arms that no edge joins, and that write into no concat: too many, or of too many buffers."""
        buffers = {value for group in groups for value in group.buffers()}
        return self._arms(len(groups), groups[-1]) or self._bindings(len(buffers), groups[-1])
