"""Reductions over rows and what surrounds them: softmax, layer norm, RMS norm, log-sum-exp."""

from __future__ import annotations

from collections.abc import Sequence

from fuseline.passes.fusion.decision import Answer, Legal, NotApplicable, WhyNot
from fuseline.passes.fusion.gathered_elements import is_gathered
from fuseline.passes.fusion.graph import FusionGraph
from fuseline.passes.fusion.group import Group
from fuseline.passes.fusion.order_walk import rank_in
from fuseline.passes.fusion.profit import SHORT_RUNS_NS
from fuseline.passes.fusion.rule import FusionRule, Merge, scratch_refusal
from fuseline.passes.fusion.strided_rows import short_runs_ns, strided_rows


class RowChain(FusionRule):
    """
    max(r) ──> exp(r, c) ──> sum(r) ──> div(r, c)      =>      for r: the row c lives in scratch

    The shared loops stay parallel, the row's loops become inner loops of a workgroup. A broadcast producer is computed
    once per shared point, so nothing is computed twice. Rows must be contiguous or few enough to be traversed down side
    by side (`strided_rows.py`), fit the scratch limit, and leave parallelism to the target.
    """

    name = "row-chain"
    after = ("elementwise-epilogue", "elementwise-cluster")

    def matches(self, merge: Merge, graph: FusionGraph) -> Answer:
        """`reshape-between`, `strided-inner`, `scratch`, or legal with the bytes of scratch."""
        producer, consumer = merge.producer, merge.consumer
        if producer.heavy or consumer.heavy or rank_in(producer) is not None:
            return NotApplicable()
        if _read_in_place(merge) or _picked_in_place(merge):
            return NotApplicable()
        return rows_refusal(merge, graph) or scratch_refusal(merge) or Legal(_numbers(merge))


def _read_in_place(merge: Merge) -> bool:
    """Whether points of the consumer read moved data at places of their own, and nobody else does: as rows, the few
    loops that the two share would be all that is left of the consumer's grid."""
    if not merge.producer.moves or merge.consumer.reduces or merge.regrouped or merge.leaks:
        return False
    return bool(merge.alignment.demoted_consumer)


def _picked_in_place(merge: Merge) -> bool:
    """Whether bodies pick several elements each of what is computed, and no rows are reduced: no kernel keeps a row for
    that, each element is evaluated wherever it is picked, which is a matter of `read-in-place`."""
    if merge.producer.moves or merge.producer.reduces or merge.consumer.reduces or merge.leaks:
        return False
    return all(is_gathered(read) and read.consumer.picks > 1 for read in merge.reads)


def rows_refusal(merge: Merge, graph: FusionGraph) -> WhyNot | None:
    """Why the loops that both sides do not share cannot be those of rows, None where they can."""
    if merge.regrouped:
        return WhyNot("reshape-between", "a reshape regroups the dimensions", merge.consumer.root.name)
    sides = [(group, demoted) for group, demoted in _sides(merge) if demoted]
    in_rows = bool(sides) and _in_rows(merge)
    for group, demoted in sides:
        strided = strided_rows(group, demoted, graph, merge.target, in_rows=in_rows)
        if strided is not None:
            return strided
    return None


def _in_rows(merge: Merge) -> bool:
    """Whether kernels traverse rows in spite of the grid: what one result alone is made of is made with it, ahead of it
    or where it is read. Several results over different loops have nothing but the grid in common."""
    if merge.producer.reduces or merge.consumer.reduces:
        return True
    group = merge.shared
    results = {id(value) for value in group.results()}
    makers = [node for node in group.members if any(id(value) in results for value in node.op.results)]
    return sum(any(node.loops[loop] != 1 for loop in group.inner(node)) for node in makers) <= 1


def rows_ns(merge: Merge) -> float:
    """What it takes longer to traverse the rows of both sides in runs that are shorter than vectors."""
    sides = _sides(merge)
    return sum(short_runs_ns(group, demoted, merge.target.costs) for group, demoted in sides)


def _sides(merge: Merge) -> Sequence[tuple[Group, frozenset[int]]]:
    alignment = merge.alignment
    return (merge.producer, alignment.demoted_producer), (merge.consumer, alignment.demoted_consumer)


def _numbers(merge: Merge) -> dict[str, float]:
    numbers = {"scratch_bytes": float(merge.scratch or 0), "grid_loops": float(len(merge.alignment.pairs))}
    longer = rows_ns(merge)
    return {**numbers, SHORT_RUNS_NS: longer} if longer else numbers


EXPORT = RowChain
