"""Reductions over rows that fit no scratch, or of which nobody knows how long they are."""

from __future__ import annotations

from fuseline.passes.fusion.decision import Answer, Legal, NotApplicable
from fuseline.passes.fusion.evaluated_rows import evaluation_ns
from fuseline.passes.fusion.graph import FusionGraph
from fuseline.passes.fusion.order_walk import rank_in
from fuseline.passes.fusion.profit import EVALUATION_NS, SHORT_RUNS_NS
from fuseline.passes.fusion.rule import FusionRule, Merge, Shape, scratch_limit_refusal, scratch_refusal
from fuseline.passes.fusion.rules.row_chain import rows_ns, rows_refusal


class LongRows(FusionRule):
    """
    max(r) ──> exp(r, c) ──> sum(r) ──> div(r, c)      =>      for r: exp(r, c) for the sum, and again for the quotient

    As `row-chain`, where the row lies in no scratch: each of its readers evaluates it (`evaluated_rows.py`). It is for
    the profit model to say whether that is less than storing it and reading it again.
    """

    name = "long-rows"
    after = ("row-chain",)
    shape = Shape.EVALUATED

    def matches(self, merge: Merge, graph: FusionGraph) -> Answer:
        """Legal where the rows need not be kept and what is left of them fits the scratch."""
        if merge.producer.heavy or merge.consumer.heavy or scratch_refusal(merge) is None or rank_in(merge.producer):
            return NotApplicable()
        group = merge.evaluated
        if group is None:
            return NotApplicable()
        refusal = rows_refusal(merge, graph) or scratch_limit_refusal(
            group.scratch_bytes, merge.target.scratch_bytes_limit, merge.consumer.root.name
        )
        if refusal is not None:
            return refusal
        again, longer = evaluation_ns(group, merge.shared, merge.target.costs), rows_ns(merge)
        numbers = {"scratch_bytes": float(group.scratch_bytes or 0), EVALUATION_NS: again}
        return Legal({**numbers, SHORT_RUNS_NS: longer} if longer else numbers)


EXPORT = LongRows
