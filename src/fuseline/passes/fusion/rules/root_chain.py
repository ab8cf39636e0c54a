"""Several roots and reductions over one grid: contraction and row norm, attention, gate and up, convolution and global
pooling."""

from __future__ import annotations

from collections import defaultdict

from xdsl.ir.affine import AffineDimExpr

from fuseline.analysis.quantized_arguments import quantizes_argument
from fuseline.analysis.structured import Kind
from fuseline.passes.fusion.decision import Answer, Legal, NotApplicable, WhyNot
from fuseline.passes.fusion.gathered_elements import is_gathered
from fuseline.passes.fusion.graph import FusionGraph
from fuseline.passes.fusion.node import Node, Read
from fuseline.passes.fusion.rule import FusionRule, Merge, roots_refusal, scratch_refusal

FOLLOWERS = frozenset({Kind.CONTRACTION, Kind.POOLING})
"""Roots that may read another root's result over loops of their own."""


class RootChain(FusionRule):
    """
    matmul(m, n) ──> mean(m) ──> normalise(m, n)              =>   for blocks of m: all of n lies in scratch
    QK^T(h, q, k) ──> softmax(h, q, k) ──> PV(h, q, d)        =>   for blocks of (h, q)
    convolution(y, x, c) ──> mean(c)                          =>   for blocks of c
    gate(m, n) ──> silu ──> multiply <── up(m, n)             =>   for blocks of (m, n)
    depthwise(y, x, c) ──> pointwise(y, x, k)                 =>   for blocks of (y, x), of an image from outside
    m(b, i, j) ──> m(b, i, j) + m(b, j, i)                    =>   for blocks of b: all of i, j lies in scratch
    quantize(m, k) ──> query(m, n), key(m, n)                 =>   for blocks of m: all of k lies in scratch

    The loops that all members share stay parallel; a workgroup is a block of their points and runs member after member,
    with what lies between in scratch. Nothing is computed twice; what is read more often is for the profit model to
    weigh.
    """

    name = "root-chain"
    after = ("elementwise-epilogue", "row-chain")

    def matches(self, merge: Merge, graph: FusionGraph) -> Answer:
        """A refusal of `chain_refusal`, `scratch`, or legal with the bytes of scratch."""
        if not is_chain(merge, graph):
            return NotApplicable()
        return (
            chain_refusal(merge)
            or scratch_refusal(merge)
            or merge.shared.stored_rows.refusal(merge.consumer.root.name)
            or Legal(chain_numbers(merge, merge.scratch or 0))
        )


def chain_refusal(merge: Merge) -> WhyNot | None:
    """Why the members of both sides cannot run one after the other over loops they share, None where they can."""
    producer, consumer = merge.producer, merge.consumer
    at = consumer.root.name
    refusal = roots_refusal(merge.shared, merge.target, at)
    if refusal is not None:
        return refusal
    if merge.regrouped:
        return WhyNot("reshape-between", "a reshape regroups the dimensions", at)
    if merge.alignment.pairs and any(map(is_gathered, merge.reads)):
        return WhyNot("indexing-map", f"a body picks elements of all rows of {producer.root.name}", at)
    if consumer.heavy and not merge.alignment.exact and consumer.root.kind not in FOLLOWERS:
        return WhyNot("two-roots", f"{producer.root.name} and {at} are roots over different loops", at)
    return None


def chain_numbers(merge: Merge, scratch: int) -> dict[str, float]:
    """What is weighed: bytes of scratch, and loops that stay parallel."""
    return {"scratch_bytes": float(scratch), "grid_loops": float(len(merge.alignment.pairs))}


def is_chain(merge: Merge, graph: FusionGraph) -> bool:
    """Whether a merge is about several roots, or a root and reductions."""
    producer, consumer = merge.producer, merge.consumer
    if not (producer.heavy or consumer.heavy):
        return False
    if consumer.root.kind is Kind.DEPTHWISE and not merge.alignment.exact:
        return False  # `channel-window` does
    if consumer.heavy:
        return producer.reduces or _makes_shared_rows(merge)
    return consumer.reduces or producer.blocked or _is_read_in_two_orders(merge) or _is_read_elsewhere(merge, graph)


def _makes_shared_rows(merge: Merge) -> bool:
    """Whether an argument is quantised along the rows of a product and for others, too: products in the same group, or
    any ops outside of it. The product would do it again, for each block of its columns. Which rows several products
    could share is told before there are groups (`analysis/shared_rows.py`)."""
    if not (merge.leaks or merge.consumer.blocked) or merge.alignment.exact:
        return False
    if not all(quantizes_argument(node.op) for node in merge.producer.members):
        return False
    return all(_reads_rows(read) for read in merge.reads)


def _reads_rows(read: Read) -> bool:
    """Whether a product reads a value along its reduction, and vectors run along the other one."""
    reader = read.consumer
    return reader.kind is Kind.CONTRACTION and reader.innermost is not None and reader.innermost not in read.loops


def _is_read_in_two_orders(merge: Merge) -> bool:
    """Whether the consumer meets each element of a result at two of its points: of a matrix and its transposition."""
    orders = defaultdict[int, set[tuple[int, ...]]](set)
    for read in merge.reads:
        places = tuple(at.position for at in read.coordinates if isinstance(at, AffineDimExpr))
        if len(set(places)) == len(read.coordinates):
            orders[id(read.value)].add(places)
    return any(len(found) > 1 for found in orders.values())


def _is_read_elsewhere(merge: Merge, graph: FusionGraph) -> bool:
    """Whether the consumer meets elements of a result at other points than its own, along loops beside shared ones.

    What a product of two computed values reads (turned queries and keys) is evaluated there: the products before it
    stay together. So is what any root, or what moves data, may read of one part of a result.
    """
    if merge.consumer.moves or not merge.alignment.pairs or not merge.alignment.demoted_producer:
        return False
    readers = {read.consumer for node in merge.consumer.members for read in node.readers} - merge.consumer.member_set
    if len({(id(read.value), read.coordinates) for read in merge.reads}) == 1:
        return not any(node.heavy or node.moves for node in readers)
    return not any(_multiplies_computed(node, graph) for node in readers)


def _multiplies_computed(node: Node, graph: FusionGraph) -> bool:
    """Whether a node is a product of which no operand is known."""
    return node.kind is Kind.CONTRACTION and not any(graph.is_constant(read.value) for read in node.reads)


EXPORT = RootChain
