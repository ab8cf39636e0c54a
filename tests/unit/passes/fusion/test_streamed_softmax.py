from collections.abc import Sequence
from dataclasses import replace

import pytest
from xdsl.ir import SSAValue

from fuseline.analysis.online_softmax import online_softmaxes
from fuseline.analysis.shapes import ShapeAnalysis
from fuseline.passes.fusion.graph import FusionGraph
from fuseline.passes.fusion.group import Group
from fuseline.passes.fusion.merging import inline_into
from fuseline.passes.fusion.node import Node
from fuseline.passes.fusion.profit import EVALUATION_NS
from fuseline.passes.fusion.streamed_loops import OnlineReductionNodes
from fuseline.passes.fusion.streamed_softmax import candidates, illegal, online_reductions, scores_of
from fuseline.report.records import Decision

from .programs import TARGET, Program

STREAMING = replace(TARGET, streamed_points=64)
Size = int | str


def attention(queries: Size, keys: Size, depth: int = 32, also: Sequence[str] = ()) -> Program:
    """`softmax(q k) v`; `also` names further results."""
    p = Program((queries, depth), (depth, keys), (keys, depth))
    scores = p.matmul(p.x[0], p.x[1])
    weights = p.softmax(p.unary(scores))
    found: dict[str, SSAValue] = {"scores": scores, "weights": weights}
    return p.done(p.matmul(weights, p.x[2]), *(found[name] for name in also))


def rules_and_codes(decisions: list[Decision]) -> set[tuple[str, str]]:
    return {(decision.rule, decision.code) for decision in decisions}


@pytest.mark.parametrize(("queries", "keys"), [("q", "k"), (4096, 4096), ("q", 8192), (512, "k")])
def test_any_number_of_keys_is_one_dispatch(queries: Size, keys: Size):
    assert len(attention(queries, keys).partition(STREAMING).groups) == 1


@pytest.mark.parametrize(("queries", "keys"), [("q", "k"), (4096, 16384)])
def test_a_target_that_needs_whole_rows_keeps_its_refusal(queries: Size, keys: Size):
    partition = attention(queries, keys).partition(TARGET)
    assert len(partition.groups) > 1
    assert {decision.code for decision in partition.decisions if decision.verdict == "missed"} & {
        "scratch",
        "unbounded-size",
        "unprofitable",
    }
    assert all(decision.rule != "streamed-softmax" for decision in partition.decisions)


def test_the_record_says_how_much_scratch_a_block_takes():
    (group,) = attention("q", "k").partition(STREAMING).groups
    found = [
        decision
        for decision in attention("q", "k").partition(STREAMING).decisions
        if decision.rule == "streamed-softmax"
    ]
    assert found and all(
        decision.numbers["scratch_bytes"] == group.scratch_bytes and decision.numbers["grid_loops"] == 1
        for decision in found
    )
    assert group.scratch_bytes is not None and group.scratch_bytes < 8 * 4 * (3 * 64 + 2 * 32)


@pytest.mark.parametrize("also", ["scores", "weights"])
def test_what_is_wanted_as_a_whole_is_not_met_in_blocks(also: str):
    partition = attention("q", "k", also=[also]).partition(STREAMING)
    assert len(partition.groups) > 1


def test_scores_that_come_from_outside():
    p = Program(("q", "k"), ("k", 32))
    assert len(p.done(p.matmul(p.softmax(p.x[0]), p.x[1])).partition(STREAMING).groups) == 1


def test_scores_that_another_dispatch_has_to_make():
    """They are a result, too: the softmax streams without them."""
    p = Program(("q", 32), (32, "k"), ("k", 32))
    scores = p.matmul(p.x[0], p.x[1])
    p.done(p.matmul(p.softmax(scores), p.x[2]), scores)
    partition = p.partition(STREAMING)
    assert len(partition.groups) == 2
    assert ("streamed-softmax", "fused") in rules_and_codes(partition.decisions)


def test_a_number_of_roots_that_is_too_large():
    p = attention("q", "k")
    decisions = [d for d in p.partition(replace(STREAMING, roots_limit=1)).decisions if d.rule == "streamed-softmax"]
    assert {d.code for d in decisions} == {"roots-limit"} and all(d.at for d in decisions)
    assert {d.numbers["roots"] for d in decisions} <= {1.0, 2.0}
    assert all(d.detail == f"{d.numbers['roots']:g} roots, the target runs 1 in a dispatch" for d in decisions)


def test_scratch_of_a_block_has_a_limit_too():
    decisions = attention("q", "k").partition(replace(STREAMING, scratch_bytes_limit=1000)).decisions
    assert ("streamed-softmax", "scratch") in rules_and_codes(decisions)
    assert all(d.at for d in decisions if d.code == "scratch")


def test_buffers_have_a_limit_too():
    decisions = attention("q", "k").partition(replace(STREAMING, binding_limit=2)).decisions
    assert ("streamed-softmax", "binding-limit") in rules_and_codes(decisions)


def test_one_query_leaves_nothing_to_share_among_threads():
    decisions = attention(8, 65536, depth=64).partition(STREAMING).decisions
    assert ("streamed-softmax", "parallelism") in rules_and_codes(decisions)


def test_keys_that_are_read_again_for_every_block_must_pay():
    """So wide a head that a block holds few queries."""
    decisions = attention(4096, 4096, depth=8000).partition(STREAMING).decisions
    (numbers,) = {
        tuple(decision.numbers.items())
        for decision in decisions
        if (decision.rule, decision.code) == ("streamed-softmax", "unprofitable")
    }
    costs = dict(numbers)
    assert costs[EVALUATION_NS] == 0  # nothing is evaluated in place
    assert costs["predicted_loss_ns"] == pytest.approx(
        costs["streamed_ns"] + costs["direct_ns"] - costs["saved_ns"], abs=2
    )


def test_scores_that_a_reshape_regroups_stay_outside():
    p = Program((64, 32), (32, 4096), (512, 32))
    scores = p.expand(p.collapse(p.matmul(p.x[0], p.x[1])), 512, 512)
    partition = p.done(p.matmul(p.softmax(scores), p.x[2])).partition(replace(STREAMING, scratch_bytes_limit=1 << 20))
    graph = FusionGraph(p.function.body.block, ShapeAnalysis())
    (stream,) = online_reductions(graph, STREAMING)
    groups = {node: Group.of(node) for node in graph.nodes}
    scored = scores_of(stream)
    assert scored is not None
    whole, alone = candidates(stream, [groups[node] for node in stream.nodes], groups[scored])
    refusal = illegal(whole, STREAMING)
    assert refusal is not None
    assert (refusal.code, refusal.detail, refusal.at) == (
        "reshape-between",
        "a reshape regroups the dimensions",
        whole.group.root.name,
    )
    assert illegal(alone, STREAMING) is None
    assert len(partition.groups) == 2


def test_a_stream_is_what_the_target_asks_for():
    p = attention("q", "k")
    graph = FusionGraph(p.function.body.block, ShapeAnalysis())
    (chain,) = online_softmaxes([node.op for node in graph.nodes])
    assert online_reductions(graph, TARGET) == []
    assert len(online_reductions(graph, STREAMING)) == 1
    (stream,) = online_reductions(graph, STREAMING)
    assert {node.op for node in stream.nodes} == set(chain.ops)
    assert stream.product.op is chain.reductions[-1]


def test_scores_that_a_path_outside_needs():
    """The values are made of the scores, too: whoever makes the scores cannot wait for the values."""
    p = Program((64, 32), (32, 4096), (64, 32))
    scores = p.matmul(p.x[0], p.x[1])
    values = p.matmul(p.unary(scores, permutation=(1, 0)), p.x[2])
    p.done(p.matmul(p.softmax(scores), values))
    slow = STREAMING.costs.streamed_bytes_per_ns  # or the values are made of scores that go from row to row
    costs = replace(STREAMING.costs, block_bytes=1 << 13, shared_bytes_per_ns=slow)
    partition = p.partition(replace(STREAMING, scratch_bytes_limit=1 << 13, costs=costs))
    told = {
        (d.code, d.detail == f"{d.at} lies on a path between them")
        for d in partition.decisions
        if d.rule == "structure"
    }
    assert told == {("cycle", True)}
    (values_node,) = {d.at for d in partition.decisions if d.code == "cycle"}
    assert values_node in {d.producer for d in partition.decisions if d.consumer_op == "contraction"}


def _parts(p: Program) -> tuple[OnlineReductionNodes, dict[Node, Group], Node]:
    """The softmax of a program, a group per node, and the node that makes the scores."""
    graph = FusionGraph(p.function.body.block, ShapeAnalysis())
    (stream,) = online_reductions(graph, STREAMING)
    scored = scores_of(stream)
    assert scored is not None
    return stream, {node: Group.of(node) for node in graph.nodes}, scored


def test_scores_that_slide_over_what_all_share_stay_outside():
    """A convolution along the queries: a block of them reads more than a block of the image."""
    p = Program((66, 256), (3, 256), (256, 32))
    stream, groups, scored = _parts(p.done(p.matmul(p.softmax(p.depthwise(p.x[0], p.x[1])), p.x[2])))
    whole, alone = candidates(stream, [groups[node] for node in stream.nodes], groups[scored])
    refusal = illegal(whole, STREAMING)
    assert refusal is not None
    detail = f"{scored.name} slides over a loop that all share"
    assert (refusal.code, refusal.detail, refusal.at) == ("indexing-map", detail, scored.name)
    assert illegal(alone, STREAMING) is None


@pytest.mark.parametrize(("limit", "legal"), [(1, False), (2, True), (3, True)])
def test_as_many_roots_as_the_target_runs_and_more_than_one(limit: int, legal: bool):
    p = Program(("q", 32), (32, "k"), ("k", 32))
    stream, groups, scored = _parts(p.done(p.matmul(p.softmax(p.matmul(p.x[0], p.x[1])), p.x[2])))
    whole, *_ = candidates(stream, [groups[node] for node in stream.nodes], groups[scored])
    assert (illegal(whole, replace(STREAMING, roots_limit=limit)) is None) is legal


def test_a_group_that_holds_all_of_it_already_is_no_candidate():
    stream, groups, _ = _parts(attention("q", "k"))
    (partition,) = attention("q", "k").partition(STREAMING).groups
    assert not list(candidates(stream, [partition], None))
    assert not list(candidates(stream, [partition], partition))
    assert len(list(candidates(stream, [groups[node] for node in stream.nodes], None))) == 1


def test_what_is_read_in_place_before_the_softmax_stays_so():
    """What of the softmax itself was read in place is placed."""
    p = Program(("q", 32), (32, "k"), ("k", 32))
    stream, groups, scored = _parts(p.done(p.matmul(p.softmax(p.matmul(p.unary(p.x[0]), p.x[1])), p.x[2])))
    before = next(read.producer for read in scored.reads if read.producer is not None)
    first, second, *rest = stream.nodes
    scores = inline_into(groups[before], groups[scored])
    parts = [inline_into(groups[first], groups[second]), *(groups[node] for node in rest)]
    whole, *_ = candidates(stream, parts, scores)
    assert whole.group.inlined == {before} and set(whole.group.grid_loop_of) == {scored, *stream.nodes}


def test_streams_are_in_an_order_that_no_rewriting_changes():
    def found(turned: bool) -> list[str]:
        p = Program((64, 32), (32, 256), (256, 32), (64, 16), (16, 512), (512, 16))
        places = (3, 0) if turned else (0, 3)
        results = [p.matmul(p.softmax(p.matmul(*p.x[at : at + 2])), p.x[at + 2]) for at in places]
        graph = FusionGraph(p.done(*(reversed(results) if turned else results)).function.body.block, ShapeAnalysis())
        streams = online_reductions(graph, STREAMING)
        assert [stream.product.order for stream in streams] == sorted(stream.product.order for stream in streams)
        return [stream.product.id for stream in streams]

    assert len(found(False)) == 2 and found(False) == found(True)
