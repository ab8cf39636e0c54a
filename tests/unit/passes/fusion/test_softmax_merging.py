"""Softmaxes in pieces become one group at once, where nothing speaks against it; the record says what did."""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence
from dataclasses import replace

import pytest
from xdsl.ir import SSAValue

from fuseline.analysis.shapes import ShapeAnalysis
from fuseline.ir.build import dims_map
from fuseline.ir.target_description import TargetDescription
from fuseline.passes.fusion.decision import Answer, Forbid, Legal, NotApplicable, WhyNot
from fuseline.passes.fusion.edge_records import Outcome
from fuseline.passes.fusion.graph import FusionGraph
from fuseline.passes.fusion.group import Group
from fuseline.passes.fusion.limits import Veto, no_veto
from fuseline.passes.fusion.rule import FusionRule, Merge
from fuseline.passes.fusion.softmax_merging import SoftmaxMerging
from fuseline.passes.fusion.streamed_softmax import STREAMED_SOFTMAX

from .programs import TARGET, Program

STREAMING = replace(TARGET, streamed_points=64)


class Streams(SoftmaxMerging):
    """Merges softmaxes and nothing else."""

    def run(self) -> list[int]:
        """How many members each group has that it comes to."""
        self._stream_softmaxes()
        return sorted(group.size for group in self.alive)


def _attention(made: Callable[[Program, SSAValue, SSAValue], Sequence[SSAValue]] | None = None) -> Program:
    """`softmax(q k) v`, six ops; `made` adds results of the scores and the weights."""
    p = Program(("q", 32), (32, "k"), ("k", 32))
    scores = p.matmul(p.x[0], p.x[1])
    weights = p.softmax(scores)
    return p.done(p.matmul(weights, p.x[2]), *(made(p, scores, weights) if made else ()))


def _streams(
    p: Program,
    *rules: FusionRule,
    target: TargetDescription = STREAMING,
    joins: Collection[str] = (STREAMED_SOFTMAX,),
    veto: Veto = no_veto,
) -> Streams:
    graph = FusionGraph(p.function.body.block, ShapeAnalysis())
    return Streams(graph, rules, target, veto=veto, joins=joins)


def _refusals(merging: Streams) -> set[tuple[str, str]]:
    words = [(one.rule, one.answer) for one in merging.edge_words.values()]
    return {(rule, answer.code) for rule, answer in words if isinstance(answer, WhyNot)}


def _whole(merging: Streams) -> Group:
    (group,) = merging.alive
    return group


def test_all_of_it_is_one_group_and_every_edge_says_what_a_block_takes():
    merging = _streams(_attention())
    count = len(merging.graph.nodes)
    assert merging.run() == [count] and len(merging.streams) == 1
    group = _whole(merging)
    assert group.online == tuple(merging.streams) and all(merging.group_of[node] is group for node in group.members)
    assert group.scratch_bytes is not None
    edges = {(read.producer, node) for node in merging.graph.nodes for read in node.reads if read.producer is not None}
    assert set(merging.edge_words) == edges
    numbers = {"scratch_bytes": float(group.scratch_bytes), "grid_loops": 1.0}
    for outcome in merging.edge_words.values():
        assert outcome == Outcome(STREAMED_SOFTMAX, Legal(numbers), group, outcome.bytes_saved)
        assert outcome.bytes_saved > 0


@pytest.mark.parametrize(
    ("target", "joins"), [(STREAMING, ()), (STREAMING, ("shared-operand",)), (TARGET, (STREAMED_SOFTMAX,))]
)
def test_where_it_is_not_asked_or_the_target_cannot_nothing_merges(target: TargetDescription, joins: Collection[str]):
    merging = _streams(_attention(), target=target, joins=joins)
    assert merging.run() == [1] * len(merging.graph.nodes) and not merging.edge_words


def test_scores_that_are_wanted_too_stay_outside():
    """The candidate without the group that makes them comes second, and its word is the last."""
    merging = _streams(_attention(lambda p, scores, weights: [scores]))
    count = len(merging.graph.nodes)
    assert merging.run() == [1, count - 1]
    (outside,) = [group for group in merging.alive if group.size == 1]
    assert outside.root.position == min(node.position for node in merging.graph.nodes)
    rules = {one.rule for (producer, _), one in merging.edge_words.items() if producer is not outside.root}
    assert rules == {STREAMED_SOFTMAX} and all(
        isinstance(one.answer, Legal)
        for (producer, _), one in merging.edge_words.items()
        if producer is not outside.root
    )


@pytest.mark.parametrize(
    ("change", "code"),
    [
        ({"roots_limit": 1}, "roots-limit"),
        ({"scratch_bytes_limit": 100}, "scratch"),
        ({"binding_limit": 2}, "binding-limit"),
    ],
)
def test_limits_keep_it_in_pieces(change: dict[str, int], code: str):
    merging = _streams(_attention(), target=replace(STREAMING, **change))
    assert merging.run() == [1] * len(merging.graph.nodes)
    assert _refusals(merging) == {(STREAMED_SOFTMAX, code)}


def test_a_target_may_refuse_for_reasons_of_its_own():
    merging = _streams(_attention(), veto=lambda groups: WhyNot("target", f"{len(groups)} group"))
    assert merging.run() == [1] * len(merging.graph.nodes)
    assert _refusals(merging) == {(STREAMED_SOFTMAX, "target")}


class _Banned(FusionRule):
    name = "banned"

    def matches(self, merge: Merge, graph: FusionGraph) -> Answer:
        del graph
        return Forbid("not-mine", "keep apart") if merge.joint else NotApplicable()


def test_a_rule_may_forbid_it():
    merging = _streams(_attention(), _Banned())
    assert merging.run() == [1] * len(merging.graph.nodes)
    assert ("banned", "not-mine") in _refusals(merging) and STREAMED_SOFTMAX not in {r for r, _ in _refusals(merging)}


def test_scores_with_a_path_to_the_product_outside_of_the_softmax_are_a_cycle():
    """What is multiplied with the weights is made of the scores, too: they stay outside."""
    p = Program(("q", 32), (32, "k"), ("k", 32))
    scores = p.matmul(p.x[0], p.x[1])
    values = p.binary(p.x[2], p.reduce(scores, axis=0), dims_map(2, [0]))
    merging = _streams(p.done(p.matmul(p.softmax(scores), values)))
    count = len(merging.graph.nodes)
    assert merging.run() == [1, 1, 1, count - 3]
    assert ("structure", "cycle") in _refusals(merging)
    whole = next(group for group in merging.alive if group.size > 1)
    for (producer, consumer), outcome in merging.edge_words.items():
        inside = producer in whole.member_set and consumer in whole.member_set
        assert isinstance(outcome.answer, Legal) == inside
