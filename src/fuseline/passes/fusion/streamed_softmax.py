"""Softmaxes whose scores are too many for scratch: all that has their loop as one group, which meets the loop block by
block.

    QK^T(h, q, k) ──> max(h, q) ──> exp(h, q, k) ──> sum(h, q) ──> PV(h, q, d)         grid = (h, q)
            scratch: rows of a block of k

No two of these groups could be merged by themselves: each pair would keep rows of all of k. So they are joined at once,
after the merges of pairs, where the target says that it can (`TargetDescription.streamed_points`), and where it pays;
what lies around may then join by the usual rules.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass

from xdsl.ir import Operation

from fuseline.analysis.online_softmax import OnlineSoftmax, online_softmaxes
from fuseline.ir.target_description import TargetDescription
from fuseline.passes.fusion.decision import WhyNot
from fuseline.passes.fusion.graph import FusionGraph
from fuseline.passes.fusion.group import Group
from fuseline.passes.fusion.loop_classes import loop_classes
from fuseline.passes.fusion.node import Node, Read
from fuseline.passes.fusion.rule import roots_refusal, scratch_limit_refusal
from fuseline.passes.fusion.sliding import slid_root
from fuseline.passes.fusion.streamed_loops import OnlineReductionNodes

STREAMED_SOFTMAX = "streamed-softmax"
"""What decisions say of these joins."""


@dataclass(frozen=True)
class Candidate:
    """Groups that could be one, with the reads between them."""

    joined: tuple[Group, ...]
    group: Group
    reads: tuple[Read, ...]


def online_reductions(graph: FusionGraph, target: TargetDescription) -> list[OnlineReductionNodes]:
    """The softmaxes of a graph that the target can stream, in an order that no rewriting of the program changes."""
    if not target.streamed_points:
        return []
    ops = [node.op for node in graph.nodes]
    found = [_stream(chain, graph, target.streamed_points) for chain in online_softmaxes(ops)]
    return sorted((stream for stream in found if stream is not None), key=lambda stream: stream.product.order)


def _stream(chain: OnlineSoftmax, graph: FusionGraph, points: int) -> OnlineReductionNodes | None:
    nodes: dict[Operation, Node] = {op: node for op in chain.ops if (node := graph.node_of(op)) is not None}
    if len(nodes) < len(set(chain.ops)):
        return None
    loops = [(nodes[op], loop) for op, loop in chain.loops]
    return OnlineReductionNodes(tuple(nodes.values()), chain.roles.mapped(nodes.__getitem__), tuple(loops), points)


def candidates(stream: OnlineReductionNodes, groups: Iterable[Group], scores: Group | None) -> Iterator[Candidate]:
    """The groups that hold a softmax, with and without the one that makes its scores."""
    joined = tuple(dict.fromkeys(groups))
    choices = (
        [(*joined, scores), joined] if scores is not None and scores.fusable and scores not in joined else [joined]
    )
    for chosen in choices:
        if len(chosen) > 1:
            yield Candidate(chosen, _joined(chosen, stream), tuple(_reads_between(chosen)))


def _reads_between(joined: Sequence[Group]) -> Iterator[Read]:
    home = {node: each for each in joined for node in each.members}
    for each in joined:
        for read in each.outside_reads():
            if read.producer in home:
                yield read


def _joined(joined: Sequence[Group], stream: OnlineReductionNodes) -> Group:
    """All of them over the loops that they share; what of the softmax was read in place is so no more."""
    members = sorted((node for each in joined for node in each.members), key=lambda node: node.position)
    inlined = {node for each in joined for node in each.inlined}.difference(stream.nodes)
    placed = [node for node in members if node not in inlined]
    classes = loop_classes(members, stream.loops)
    shared = classes.shared([*(node for node in placed if node is not stream.product), stream.product])
    number = {class_: i for i, class_ in enumerate(shared)}
    grid_loop_of = {
        node: tuple(number.get(classes.of((node, loop))) for loop in range(len(node.loops))) for node in placed
    }
    streams = (*(known for each in joined for known in each.online), stream)
    return Group(members, tuple(class_[0].loops[class_[1]] for class_ in shared), grid_loop_of, inlined, online=streams)


def illegal(candidate: Candidate, target: TargetDescription) -> WhyNot | None:
    """Why the groups cannot be one group, None where they can."""
    group, at = candidate.group, candidate.group.root.name
    refusal = roots_refusal(group, target, at)
    if refusal is not None:
        return refusal
    if any(read.regrouped for read in candidate.reads):
        return WhyNot("reshape-between", "a reshape regroups the dimensions", at)
    slid = slid_root(group)
    if slid is not None:
        return WhyNot("indexing-map", f"{slid.name} slides over a loop that all share", slid.name)
    return scratch_limit_refusal(group.scratch_bytes, target.scratch_bytes_limit, at)


def scores_of(stream: OnlineReductionNodes) -> Node | None:
    """The node that makes what the softmax is of."""
    first = stream.loops[0][0]
    return next((read.producer for read in first.reads if read.producer is not None), None)
