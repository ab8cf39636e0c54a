"""Reductions over rows and what surrounds them: softmax, layer norm, RMS norm, log-sum-exp."""

from __future__ import annotations

from collections.abc import Sequence

from fuseline.analysis.picked_rows import enough_rows
from fuseline.ir.costs import assumed_size
from fuseline.ir.dim import product, upper_bound
from fuseline.passes.fusion.decision import Answer, Legal, NotApplicable, WhyNot
from fuseline.passes.fusion.gathered_elements import is_gathered
from fuseline.passes.fusion.graph import FusionGraph
from fuseline.passes.fusion.group import Group
from fuseline.passes.fusion.node import Node
from fuseline.passes.fusion.order_walk import rank_in
from fuseline.passes.fusion.profit import SHORT_RUNS_NS
from fuseline.passes.fusion.read_multiplicity import rounds_over
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
        if _read_in_place(merge) or _evaluated_where_picked(merge) or _evaluated_again(merge):
            return NotApplicable()
        return rows_refusal(merge, graph) or _unkept_rows(merge) or scratch_refusal(merge) or Legal(_numbers(merge))


def _read_in_place(merge: Merge) -> bool:
    """Whether points of the consumer read moved data at places of their own, and nobody else does: as rows, the few
    loops that the two share would be all that is left of the consumer's grid."""
    if not merge.producer.moves or merge.consumer.reduces or merge.regrouped or merge.leaks:
        return False
    return bool(merge.alignment.demoted_consumer)


def _evaluated_where_picked(merge: Merge) -> bool:
    """Whether bodies pick elements of what is computed and no rows are reduced: each is evaluated wherever it is
    picked, which is a matter of `read-in-place`. A row is kept where each point picks several elements of it, in step
    with the loops around."""
    if merge.producer.moves or merge.producer.reduces or merge.consumer.reduces or merge.leaks:
        return False
    in_step = bool(merge.alignment.pairs)
    return all(is_gathered(read) and not (in_step and read.consumer.picks > 1) for read in merge.reads)


def _evaluated_again(merge: Merge) -> bool:
    """Whether the two share no loop, and the consumer goes again and again over what the producer computes, as much as
    nobody knows and no scratch keeps: tables of places and weights of a resize (bilinear, by 2 in images of any size:
    1.8 to 2.0 of the time of tables that are stored)."""
    if merge.producer.reduces or merge.producer.moves or not merge.producer.unbounded or merge.alignment.pairs:
        return False
    return any(rounds_over(read) != 1 for read in merge.reads)


def _unkept_rows(merge: Merge) -> WhyNot | None:
    """Why rows that bodies pick from should not be kept: there are too few of them, or what is made of them is written
    in another order, and lanes would run across (linear resize of 20x20 to 40x40 of 32 channels, innermost before and
    outermost behind: 2.4 and 1.8 of the time of two dispatches on one thread and two; 33x33 to 260x260 of 21: 2.0)."""
    group, target, at = merge.shared, merge.target, merge.consumer.root.name
    rows = [read.producer for read in merge.reads if is_gathered(read) and read.producer is not None]
    if not rows or merge.consumer.reduces:
        return None
    for row in rows:
        if upper_bound(product(row.loops[loop] for loop in group.inner(row))) is None:
            return WhyNot("unbounded-size", f"a row of {row.name} would be evaluated wherever it is picked", at)
    lanes = {_lane(group, node, target.costs.lanes) for node in (*rows, *_makers(group))}
    if len(lanes) > 1:
        return WhyNot("strided-inner", f"rows of {rows[0].name} would be kept across lanes", at)
    if not enough_rows([extent for loop, extent in enumerate(group.grid) if loop not in lanes], target.threads):
        return WhyNot("parallelism", f"rows of {rows[0].name} are too few for {target.threads} threads", at)
    return None


def _lane(group: Group, node: Node, lanes: int) -> int | None:
    """The grid's loop that a result is written innermost along; None for one inside a workgroup, or that fills no
    vector."""
    *_, last = [None, *(loop for loop in node.written[0] if loop is not None and node.loops[loop] != 1)]
    return None if last is None or assumed_size(node.loops[last]) < lanes else group.grid_loop_of[node][last]


def rows_refusal(merge: Merge, graph: FusionGraph) -> WhyNot | None:
    """Why the loops that both sides do not share cannot be those of rows, None where they can."""
    if merge.regrouped:
        return WhyNot("reshape-between", "a reshape regroups the dimensions", merge.consumer.root.name)
    sides = [(group, demoted) for group, demoted in _sides(merge) if demoted]
    in_rows = bool(sides) and _in_rows(merge)
    for group, demoted in sides:
        strided = strided_rows(group, demoted, graph, merge.target, in_rows=in_rows, merged=merge.shared)
        if strided is not None:
            return strided
    return None


def _in_rows(merge: Merge) -> bool:
    """Whether kernels traverse rows in spite of the grid: what one result alone is made of is made with it, ahead of it
    or where it is read. Several results over different loops have nothing but the grid in common."""
    if merge.producer.reduces or merge.consumer.reduces:
        return True
    group = merge.shared
    return sum(any(node.loops[loop] != 1 for loop in group.inner(node)) for node in _makers(group)) <= 1


def _makers(group: Group) -> list[Node]:
    """The members that make results."""
    results = {id(value) for value in group.results()}
    return [node for node in group.members if any(id(value) in results for value in node.op.results)]


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
