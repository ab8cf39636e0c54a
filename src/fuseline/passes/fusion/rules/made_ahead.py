"""Small producers that are made once by each thread, before the rows that read them again and again."""

from __future__ import annotations

from xdsl.ir.affine import AffineDimExpr

from fuseline.analysis.made_ahead import LEAST_OPERATIONS, MOST_BYTES, REPEATS
from fuseline.analysis.structured import Kind
from fuseline.ir.costs import assumed_size
from fuseline.ir.dim import product, upper_bound
from fuseline.passes.fusion.decision import Answer, Legal, NotApplicable
from fuseline.passes.fusion.graph import FusionGraph
from fuseline.passes.fusion.group import Group
from fuseline.passes.fusion.node import Node, Read
from fuseline.passes.fusion.order_walk import rank_in
from fuseline.passes.fusion.profit import EVALUATION_NS
from fuseline.passes.fusion.read_multiplicity import rounds_over
from fuseline.passes.fusion.rule import FusionRule, Merge, Shape


class MadeAhead(FusionRule):
    """
    tanh(c) ──> mul(r, c)      =>      tanh(c), all of it, then for r: mul(r, c)

    The producer is elementwise, as small as the first-level cache keeps beside the rows, read by nobody else, and along
    the loop that lies along memory: the loops of the consumer stay as they are. Each thread computes it for itself. A
    root that the consumer may be evaluated in comes first: it would evaluate the producer for each element.
    """

    name = "made-ahead"
    after = ("elementwise-epilogue", "elementwise-cluster")
    shape = Shape.INLINE_PRODUCER
    late = True

    def matches(self, merge: Merge, graph: FusionGraph) -> Answer:
        """Legal, with what it takes longer where that is evaluated again rather than kept."""
        producer, consumer = merge.producer, merge.consumer
        if consumer.heavy or consumer.is_sequential or rank_in(consumer) is not None or merge.leaks or merge.regrouped:
            return NotApplicable()
        if not all(map(_is_elementwise, producer.members)) or not all(_is_along_rows(read) for read in merge.reads):
            return NotApplicable()
        threads = merge.target.threads
        if not _fits(producer, graph) or min(map(_times, merge.reads)) < REPEATS * threads:
            return NotApplicable()
        return Legal({EVALUATION_NS: _again_ns(merge)})


def _is_elementwise(node: Node) -> bool:
    return node.kind is Kind.ELEMENTWISE and not node.reads_elsewhere and node.idiom is None


def _is_along_rows(read: Read) -> bool:
    """Whether a value is read plainly, along the loop of its reader that lies along memory."""
    plain = [c.position for c in read.coordinates if isinstance(c, AffineDimExpr)]
    node = read.consumer
    moving = [loop for loop in plain if node.loops[loop] != 1]
    if len(plain) < len(read.coordinates) or not moving or read.value in node.captured:
        return False
    return moving[-1] in _innermost(node)


def _innermost(node: Node) -> set[int]:
    """The loops that the results of a node, or what it reduces, lie along."""
    written = [[loop for loop in axes if loop is not None and node.loops[loop] != 1] for axes in node.written]
    reduced = [loop for loop, kind in enumerate(node.iterators) if kind == "reduction" and node.loops[loop] != 1]
    return {axes[-1] for axes in written if axes} if not reduced else set(reduced[-1:])


def _fits(producer: Group, graph: FusionGraph) -> bool:
    sizes = [upper_bound(graph.num_bytes(result)) for node in producer.members for result in node.op.results]
    return all(size is not None and size <= MOST_BYTES for size in sizes)


def _times(read: Read) -> float:
    """How often a reader looks at each element, at the sizes that are assumed."""
    return float(assumed_size(rounds_over(read)))


def _again_ns(merge: Merge) -> float:
    """What it takes that few operations are done wherever their result is read. What is made ahead takes no longer:
    threads would wait for the one that makes it."""
    members = merge.producer.members
    operations = sum(node.operations for node in members)
    elements = max(assumed_size(product(node.loops)) for node in members)
    often = max(map(_times, merge.reads)) if operations < LEAST_OPERATIONS else 1.0
    return (often - 1) * elements * operations * merge.target.costs.operation_ns


EXPORT = MadeAhead
