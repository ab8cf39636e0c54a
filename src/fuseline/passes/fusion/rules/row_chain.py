"""Reductions over rows and what surrounds them: softmax, layer norm, RMS norm, log-sum-exp."""

from __future__ import annotations

from fuseline.passes.fusion.decision import Answer, Legal, NotApplicable, WhyNot
from fuseline.passes.fusion.graph import FusionGraph
from fuseline.passes.fusion.group import Group
from fuseline.passes.fusion.merging import Alignment
from fuseline.passes.fusion.rule import FusionRule, Merge, scratch_refusal


class RowChain(FusionRule):
    """
    max(r) ──> exp(r, c) ──> sum(r) ──> div(r, c)      =>      for r: the row c lives in scratch

    The shared loops stay parallel, the row's loops become inner loops of a workgroup. A broadcast producer is computed
    once per shared point, so nothing is computed twice. Rows must be contiguous, fit the scratch limit, and leave
    parallelism to the target.
    """

    name = "row-chain"
    after = ("elementwise-epilogue", "elementwise-cluster")

    def matches(self, merge: Merge, graph: FusionGraph) -> Answer:
        producer, consumer = merge.producer, merge.consumer
        if producer.heavy or consumer.heavy:
            return NotApplicable()
        if merge.regrouped:
            return WhyNot("reshape-between", "a reshape regroups the dimensions", consumer.root.name)
        alignment = merge.alignment
        strided = _strided(producer, alignment.demoted_producer) or _strided(consumer, alignment.demoted_consumer)
        if strided:
            return WhyNot("strided-inner", strided, consumer.root.name)
        return scratch_refusal(merge) or Legal(_numbers(merge, alignment))


def _strided(group: Group, demoted: frozenset[int]) -> str | None:
    """Where a loop that stays in the grid would run inside one that becomes serial, in some member's result."""
    for node in group.members if demoted else ():
        if node in group.inlined:
            continue
        for axes in node.written:
            grids = [group.grid_loop_of[node][loop] for loop in axes if loop is not None and node.loops[loop] != 1]
            serial = [grid is None or grid in demoted for grid in grids]
            if any(serial) and serial != sorted(serial):
                return f"{node.name} would walk its rows across memory"
    return None


def _numbers(merge: Merge, alignment: Alignment) -> dict[str, float]:
    return {"scratch_bytes": float(merge.scratch or 0), "grid_loops": float(len(alignment.pairs))}


EXPORT = RowChain
