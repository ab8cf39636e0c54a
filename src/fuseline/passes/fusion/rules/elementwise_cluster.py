"""Elementwise ops over one space."""

from __future__ import annotations

from fuseline.passes.fusion.decision import Answer, Legal, NotApplicable, WhyNot
from fuseline.passes.fusion.graph import FusionGraph
from fuseline.passes.fusion.rule import FusionRule, Merge


class ElementwiseCluster(FusionRule):
    """
        ┌─> exp ──┐
    tanh           mul      =>      one loop over the space they share
        └─> sqrt ─┘

    Both sides are all-parallel and every edge maps loops to loops one to one. Values that others read are stored too.
    """

    name = "elementwise-cluster"

    def matches(self, merge: Merge, graph: FusionGraph) -> Answer:
        """`reshape-between`, or legal where the loops of both are the same."""
        if merge.producer.reduces or merge.consumer.reduces:
            return NotApplicable()
        if merge.regrouped:
            return WhyNot("reshape-between", "a reshape regroups the dimensions", merge.consumer.root.name)
        return Legal() if merge.alignment.exact else NotApplicable()


EXPORT = ElementwiseCluster
