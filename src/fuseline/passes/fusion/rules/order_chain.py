"""Rows that are sorted: ranks, the positions in their order, and what is written with them."""

from __future__ import annotations

from fuseline.passes.fusion.decision import Answer, Legal, NotApplicable
from fuseline.passes.fusion.graph import FusionGraph
from fuseline.passes.fusion.order_walk import follows_order, is_order
from fuseline.passes.fusion.rule import FusionRule, Merge


class OrderChain(FusionRule):
    """
    rank(r, i) ──> positions(r, k) ──> elements(r, k)      =>      for r: the row is sorted, all results are written

    The kernel that sorts a row keeps it where it has room (`order_walk.py`): nothing between the members is stored.
    """

    name = "order-chain"
    after = ("elementwise-cluster", "elementwise-epilogue")

    def matches(self, merge: Merge, graph: FusionGraph) -> Answer:
        """Legal where one side sorts rows, and the other is made of their order point by point."""
        return Legal() if is_order(merge) or follows_order(merge) else NotApplicable()


EXPORT = OrderChain
