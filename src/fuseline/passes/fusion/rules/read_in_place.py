"""Producers that are evaluated where they are read: pads, slices, concats, copies, gathers, and elementwise ops that
are read once."""

from __future__ import annotations

from collections.abc import Iterable
from math import isfinite

from fuseline.analysis.indexing_maps import dims_of
from fuseline.analysis.prologue import Prologue
from fuseline.analysis.structured import Kind
from fuseline.ir.costs import MachineCosts
from fuseline.ir.dim import Dim, product, upper_bound
from fuseline.passes.fusion.decision import Answer, Legal, NotApplicable, WhyNot
from fuseline.passes.fusion.graph import FusionGraph
from fuseline.passes.fusion.node import Node, Read
from fuseline.passes.fusion.profit import EVALUATION_NS
from fuseline.passes.fusion.rule import FusionRule, Merge, Shape


class ReadInPlace(FusionRule):
    """
    pad ──> convolution      =>      convolution that reads zeros outside its input
    negate ──> concat ──> multiply      =>      multiply that selects what it reads

    The producer's own result is never stored, so all its readers must be in the consumer's dispatch. Moving data costs
    no arithmetic and may be repeated; arithmetic may not (`recompute`).
    """

    name = "read-in-place"
    after = ("elementwise-cluster", "elementwise-epilogue", "row-chain")
    shape = Shape.INLINE_PRODUCER

    def matches(self, merge: Merge, graph: FusionGraph) -> Answer:
        producer, consumer = merge.producer, merge.consumer
        if producer.reduces:
            return NotApplicable()
        at = consumer.root.name
        if merge.leaks:
            return WhyNot("multi-use", "other ops read the producer too, so it has to be stored", at)
        if (
            consumer.heavy
            and not _beside_the_root(merge)
            and not all(node.kind is Kind.PAD for node in producer.members)
        ):
            return _into_root(merge, graph)
        if merge.regrouped:
            return WhyNot("reshape-between", "a reshape regroups the dimensions", at)
        if producer.moves:
            return Legal()
        factor = recompute_factor(merge.reads)
        if factor > 1:
            return WhyNot("recompute", f"each element would be computed {_times(factor)} times", at, _numbers(factor))
        return Legal({"recompute": factor})


def _beside_the_root(merge: Merge) -> bool:
    """Whether only epilogues read the producer: then it is evaluated once per point, as in any other group."""
    return all(not read.consumer.heavy and not merge.consumer.is_inlined(read.consumer) for read in merge.reads)


def _into_root(merge: Merge, graph: FusionGraph) -> Answer:
    """A root reads moved data where it lies; what is computed is evaluated once per block of rows or columns, into
    scratch."""
    read_through = {node.op for node in (*merge.producer.members, *merge.consumer.inlined)}
    mine = {node.op for node in merge.producer.members}
    total = 0.0
    for node in merge.consumer.members:
        view = node.structured
        if not node.heavy or view is None or node in merge.consumer.inlined:
            continue
        for position, value in enumerate(view.inputs):
            chain = graph.prologues.chain(view, position, read_through)
            if mine.isdisjoint(chain):
                continue
            found = graph.prologues.through(view, position, chain)
            if found.kind is None or not isfinite(found.recompute):
                return WhyNot(
                    "recompute", found.reason or "each element would be computed an unknown number of times", node.name
                )
            total += _evaluation_ns(found, graph.shapes.dims(value), merge.target.costs)
    return Legal({EVALUATION_NS: total})


def _evaluation_ns(found: Prologue, dims: Iterable[Dim], costs: MachineCosts) -> float:
    """How much longer the elements take in the root than by themselves."""
    elements = upper_bound(product(dims))
    if found.kind != "packed" or elements is None:
        return 0.0
    once = found.operations * costs.operation_ns
    return elements * (found.recompute * (once + costs.packing_ns) - once)


def _times(factor: float) -> str:
    return f"{factor:g}" if isfinite(factor) else "an unknown number of"


def _numbers(factor: float) -> dict[str, float]:
    """For the record, which holds finite numbers only."""
    return {"recompute": factor} if isfinite(factor) else {}


def recompute_factor(reads: Iterable[Read]) -> float:
    """How often each element would be computed if every reader computed what it reads: the sum over readers. At least
    1."""
    by_reader: dict[Node, float] = {}
    for read in reads:
        by_reader[read.consumer] = max(read_multiplicity(read), by_reader.get(read.consumer, 0.0))
    return max(1.0, sum(by_reader.values()))


def read_multiplicity(read: Read) -> float:
    """How often a reader looks at each element: the extents of its loops that do not address the value. At least 1."""
    node: Node = read.consumer
    if any(coordinate is None for coordinate in read.coordinates):
        return 1.0 if node.kind in (Kind.CONCAT, Kind.SLICE, Kind.PAD) else float("inf")
    used = {loop for coordinate in read.coordinates if coordinate is not None for loop in dims_of(coordinate)}
    iterations = upper_bound(product(node.loops))
    elements = upper_bound(product(extent for loop, extent in enumerate(node.loops) if loop in used))
    if iterations is None or elements is None:
        rest = upper_bound(product(extent for loop, extent in enumerate(node.loops) if loop not in used))
        return float("inf") if rest is None else float(max(rest, 1))
    return max(1.0, iterations / max(elements, 1))


EXPORT = ReadInPlace
