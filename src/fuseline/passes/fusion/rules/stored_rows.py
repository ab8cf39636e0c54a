"""Several roots and reductions over one grid, with rows between them of which nobody knows how long they are."""

from __future__ import annotations

from fuseline.passes.fusion.decision import Answer, Legal, NotApplicable
from fuseline.passes.fusion.graph import FusionGraph
from fuseline.passes.fusion.rule import FusionRule, Merge, scratch_limit_refusal
from fuseline.passes.fusion.rules.root_chain import chain_numbers, chain_refusal, is_chain
from fuseline.passes.fusion.stored_rows import STORED_BYTES


class StoredRowsRule(FusionRule):
    """
    matmul(m, k) ──> matmul(m, n)      =>   for blocks of m: all of k is stored, and read again while it is near

    As `root-chain`, where no scratch is known to hold what lies between: it becomes a result. A softmax whose loop
    can be met block by block needs none of it and goes first.
    """

    name = "stored-rows"
    after = ("root-chain",)
    last = True

    def matches(self, merge: Merge, graph: FusionGraph) -> Answer:
        """Legal, with the bytes that are stored for want of a bound, where the rest fits the scratch."""
        if not is_chain(merge, graph):
            return NotApplicable()
        rows = merge.shared.stored_rows
        if not rows.values:
            return NotApplicable()
        if not rows.has_place_for_all():
            return rows.refusal(merge.consumer.root.name) or NotApplicable()
        scratch = merge.shared.scratch_beside_rows
        return (
            chain_refusal(merge)
            or scratch_limit_refusal(scratch, merge.target.scratch_bytes_limit, merge.consumer.root.name)
            or Legal({**chain_numbers(merge, scratch or 0), STORED_BYTES: float(rows.bytes_added(graph))})
        )


EXPORT = StoredRowsRule
