"""The loops of a softmax that are met block by block, and what asks for all of them at once."""

from __future__ import annotations

from collections.abc import Sequence

import pytest
from xdsl.ir import SSAValue

from fuseline.analysis.shapes import ShapeAnalysis
from fuseline.passes.fusion.graph import FusionGraph
from fuseline.passes.fusion.node import Node
from fuseline.passes.fusion.streamed_loops import OnlineReductionNodes, streamed_loops
from fuseline.passes.fusion.streamed_softmax import online_reductions

from .test_streamed_softmax import STREAMING, Size, attention

Parts = tuple[list[Node], OnlineReductionNodes]


def _attention(queries: Size = 16, keys: Size = 256) -> Parts:
    """The nodes of an attention in program order, and its softmax."""
    graph = FusionGraph(attention(queries, keys).function.body.block, ShapeAnalysis())
    (stream,) = online_reductions(graph, STREAMING)
    return sorted(graph.nodes, key=lambda node: node.position), stream


def _of(parts: Parts, left_out: Sequence[int] = (), results: Sequence[SSAValue] = ()) -> dict[int, list[int]]:
    """The streamed loops by the position of the member, which members `left_out` are none of."""
    nodes, stream = parts
    members = [node for i, node in enumerate(nodes) if i not in left_out]
    found = streamed_loops(members, members, results or nodes[-1].op.results, [stream])
    by_member: dict[int, list[int]] = {}
    for node, loop in sorted(found, key=lambda one: (one[0].position, one[1])):
        by_member.setdefault(nodes.index(node), []).append(loop)
    return by_member


SCORES, EXP, TOP, POWERS, TOTAL, WEIGHTS, PRODUCT = range(7)


@pytest.mark.parametrize("keys", [256, "k"])
def test_every_member_has_the_loop_over_the_keys(keys: Size):
    assert _of(_attention(keys=keys)) == {
        SCORES: [1],  # out[q, k]
        EXP: [1],
        TOP: [1],  # a reduction over k
        POWERS: [1],
        TOTAL: [1],
        WEIGHTS: [1],
        PRODUCT: [2],  # out[q, d] = sum over k
    }


def test_members_before_the_softmax_may_be_left_out():
    assert set(_of(_attention(), left_out=[SCORES])) == {EXP, TOP, POWERS, TOTAL, WEIGHTS, PRODUCT}


@pytest.mark.parametrize("left_out", [TOP, TOTAL, PRODUCT])
def test_a_softmax_without_one_of_its_sums_is_none(left_out: int):
    assert not _of(_attention(), left_out=[left_out])


@pytest.mark.parametrize("wanted", [SCORES, EXP, POWERS, WEIGHTS])
def test_someone_outside_who_wants_a_whole_row_keeps_it_together(wanted: int):
    parts = _attention()
    assert not _of(parts, results=[parts[0][wanted].op.results[0]])


@pytest.mark.parametrize("wanted", [TOP, TOTAL])
def test_what_has_been_reduced_may_leave(wanted: int):
    parts = _attention()
    assert len(_of(parts, results=[parts[0][wanted].op.results[0], parts[0][PRODUCT].op.results[0]])) == 7


def test_no_softmax_or_two_of_them_or_none_that_is_placed():
    nodes, stream = _attention()
    results = nodes[-1].op.results
    assert streamed_loops(nodes, nodes, results, [stream])
    assert not streamed_loops(nodes, nodes, results, [])
    assert not streamed_loops(nodes, nodes, results, [stream, stream])
    assert not streamed_loops(nodes, [], results, [stream])
