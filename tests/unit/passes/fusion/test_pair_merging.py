"""Merging two groups at a time under rules of the test's own: who is asked, whose answer counts, what is told."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace

import pytest
from xdsl.dialects import arith
from xdsl.ir import SSAValue

from fuseline.analysis.shapes import ShapeAnalysis
from fuseline.ir.build import Body
from fuseline.ir.target_description import TargetDescription
from fuseline.passes.fusion import pair_merging
from fuseline.passes.fusion.decision import Answer, Forbid, Legal, NotApplicable, WhyNot
from fuseline.passes.fusion.edge_records import Outcome
from fuseline.passes.fusion.graph import FusionGraph
from fuseline.passes.fusion.group import Group
from fuseline.passes.fusion.limits import Veto, no_veto
from fuseline.passes.fusion.merging import joined
from fuseline.passes.fusion.node import Node
from fuseline.passes.fusion.pair_merging import PairMerging
from fuseline.passes.fusion.rule import FusionRule, Merge
from fuseline.passes.fusion.rule_choice import JOINS
from fuseline.passes.fusion.starting_groups import StartingGroup

from .programs import TARGET, Program

Kinds = tuple[str, str]


def _rule(called: str, answer: Callable[[Merge], Answer]) -> FusionRule:
    class Made(FusionRule):
        name = called

        def matches(self, merge: Merge, graph: FusionGraph) -> Answer:
            del graph
            return NotApplicable() if merge.joint else answer(merge)

    return Made()


def _kinds(merge: Merge) -> Kinds:
    return merge.producer.root.kind.value, merge.consumer.root.kind.value


ANY = _rule("any", lambda merge: Legal({"asked": 1.0}))
ALSO = _rule("also", lambda merge: Legal())
NEVER = _rule("never", lambda merge: WhyNot("recompute", "no", merge.consumer.root.name))
LATER = _rule("later", lambda merge: WhyNot("broadcast", "nor this", merge.consumer.root.name))
ABOUT_NOTHING = _rule("about-nothing", lambda merge: NotApplicable())
BANNED = _rule("banned", lambda merge: Forbid("my-own-reason", "must not be", merge.consumer.root.name))


class Pairs(PairMerging):
    """Merges pairs and nothing else."""

    def run(self) -> list[list[Node]]:
        """The groups that it comes to, by program order."""
        for group in sorted(self.alive, key=lambda group: group.members[0].position):
            self._examine_consumers(group)
        self._drain()
        return sorted((group.members for group in self.alive), key=lambda members: members[0].position)


def _pairs(
    p: Program,
    *rules: FusionRule,
    target: TargetDescription = TARGET,
    veto: Veto = no_veto,
    start: Callable[[list[Node]], list[StartingGroup]] = lambda nodes: [],
) -> Pairs:
    graph = FusionGraph(p.function.body.block, ShapeAnalysis())
    nodes = sorted(graph.nodes, key=lambda node: node.position)
    return Pairs(graph, rules, target, veto=veto, start=start(nodes))


def _chain(length: int = 3) -> Program:
    p = Program((512, 64))
    value = p.x[0]
    for _ in range(length):
        value = p.unary(value)
    return p.done(value)


def _words(pairs: Pairs) -> list[Outcome]:
    """The last word on each edge, in program order."""
    ordered = sorted(pairs.edge_words, key=lambda edge: (edge[0].position, edge[1].position))
    return [pairs.edge_words[edge] for edge in ordered]


def test_without_rules_nothing_merges_and_every_edge_says_so():
    pairs = _pairs(_chain())
    assert [len(members) for members in pairs.run()] == [1, 1, 1] and pairs.joins == ()
    nodes = sorted(pairs.graph.nodes, key=lambda node: node.position)
    assert [(one.rule, one.answer) for one in _words(pairs)] == [
        ("none", WhyNot("no-rule", "no fusion rule covers this pair of ops", node.name)) for node in nodes[1:]
    ]


@pytest.mark.parametrize("length", [2, 3, 7])
def test_legal_pairs_merge_until_none_is_left(length: int):
    pairs = _pairs(_chain(length), ANY)
    assert [len(members) for members in pairs.run()] == [length] and set(pairs.joins) == set(JOINS)
    assert len(pairs.edge_words) == length - 1 and not pairs.queue
    for outcome in _words(pairs):
        assert outcome.rule == "any" and outcome.answer == Legal({"asked": 1.0}) and outcome.bytes_saved > 0
    (group,) = pairs.alive
    assert all(pairs.group_of[node] is group for node in group.members)


@pytest.mark.parametrize(
    ("rules", "word"),
    [
        ((NEVER,), "never"),
        ((NEVER, LATER), "never"),
        ((LATER, NEVER), "later"),
        ((ABOUT_NOTHING, LATER), "later"),
        ((ABOUT_NOTHING,), "none"),
    ],
)
def test_the_first_refusal_is_told(rules: tuple[FusionRule, ...], word: str):
    pairs = _pairs(_chain(2), *rules)
    assert len(pairs.run()) == 2
    (outcome,) = _words(pairs)
    assert outcome.rule == word and outcome.group is None and isinstance(outcome.answer, WhyNot)


@pytest.mark.parametrize("rules", [(NEVER, ANY), (ANY, NEVER), (ANY, ALSO, NEVER)])
def test_a_price_is_told_before_what_another_rule_refuses(
    rules: tuple[FusionRule, ...], monkeypatch: pytest.MonkeyPatch
):
    price = WhyNot("unprofitable", "more than it saves", "b", {"predicted_loss_ns": 1.0})
    monkeypatch.setattr(pair_merging, "unprofitable", lambda *_, **__: price)
    pairs = _pairs(_chain(2), *rules)
    assert len(pairs.run()) == 2
    (outcome,) = _words(pairs)
    assert outcome.answer is price and outcome.rule == "any"


@pytest.mark.parametrize(("rules", "word"), [((NEVER, ANY), "any"), ((ALSO, ANY), "also"), ((ANY, ALSO), "any")])
def test_the_first_rule_that_finds_it_legal_merges(rules: tuple[FusionRule, ...], word: str):
    pairs = _pairs(_chain(2), *rules)
    assert len(pairs.run()) == 1 and [outcome.rule for outcome in _words(pairs)] == [word]


@pytest.mark.parametrize("rules", [(ANY, BANNED), (BANNED, ANY), (NEVER, ANY, BANNED)])
def test_what_one_rule_forbids_none_allows(rules: tuple[FusionRule, ...]):
    pairs = _pairs(_chain(2), *rules)
    assert len(pairs.run()) == 2
    (outcome,) = _words(pairs)
    assert outcome.rule == "banned" and isinstance(outcome.answer, Forbid) and outcome.answer.code == "my-own-reason"


def test_limits_of_the_target_are_those_of_the_rule_that_found_it_legal():
    pairs = _pairs(_chain(2), ANY, target=replace(TARGET, binding_limit=1))
    assert len(pairs.run()) == 2
    (outcome,) = _words(pairs)
    assert isinstance(outcome.answer, WhyNot) and (outcome.rule, outcome.answer.code) == ("any", "binding-limit")
    assert outcome.answer.numbers == {"bindings": 2.0}


def test_a_target_may_refuse_for_reasons_of_its_own():
    def veto(groups: Sequence[Group]) -> WhyNot | None:
        (group,) = groups
        return WhyNot("target", "too long") if len(group.members) > 2 else None

    pairs = _pairs(_chain(4), ANY, veto=veto)
    assert [len(members) for members in pairs.run()] == [2, 2]
    assert sorted(outcome.answer.code for outcome in _words(pairs) if isinstance(outcome.answer, WhyNot)) == ["target"]


def _sum(b: Body) -> SSAValue:
    return b.op(arith.AddfOp, *b.args[:2])


def _triangle() -> Program:
    """A product, its rows' sums, and what reads both."""
    p = Program((64, 32), (32, 48))
    product = p.matmul(p.x[0], p.x[1])
    return p.done(p.by_row(product, p.reduce(product), _sum))


def test_a_path_outside_between_two_is_a_cycle():
    def answer(merge: Merge) -> Answer:
        return Legal() if _kinds(merge) == ("contraction", "elementwise") else NotApplicable()

    around = _rule("around", answer)
    pairs = _pairs(_triangle(), around)
    assert [len(members) for members in pairs.run()] == [1, 1, 1]
    (product, total, last) = sorted(pairs.graph.nodes, key=lambda node: node.position)
    outcome = pairs.edge_words[product, last]
    assert outcome.rule == "structure"
    assert outcome.answer == WhyNot("cycle", f"{total.name} lies on a path between them", total.name)


def test_the_path_is_gone_once_it_is_inside():
    p = Program((512, 64))
    first = p.unary(p.x[0])
    pairs = _pairs(p.done(p.add(first, p.unary(first))), ANY)
    assert [len(members) for members in pairs.run()] == [3]
    assert len(pairs.edge_words) == 3 and {outcome.rule for outcome in _words(pairs)} == {"any"}


def test_a_region_of_several_arms_stays_as_it_is():
    p = Program((512, 64), (512, 64))
    a, b = p.unary(p.x[0]), p.unary(p.x[1])
    p.done(p.unary(a), b)

    def start(nodes: list[Node]) -> list[StartingGroup]:
        return [StartingGroup((joined([Group.of(node) for node in nodes[:2]]),), closed=True)]

    pairs = _pairs(p, ANY, start=start)
    assert [len(members) for members in pairs.run()] == [2, 1]
    (outcome,) = _words(pairs)
    assert outcome.rule == "structure" and isinstance(outcome.answer, WhyNot) and outcome.answer.code == "region"


def test_a_region_of_one_arm_is_extended():
    def start(nodes: list[Node]) -> list[StartingGroup]:
        first, second, _ = nodes
        whole = Group([first, second], (512, 64), {first: (0, 1), second: (0, 1)})
        return [StartingGroup((whole,))]

    pairs = _pairs(_chain(3), ANY, start=start)
    assert [len(members) for members in pairs.run()] == [3] and len(pairs.edge_words) == 1
    apart = _pairs(_chain(3), start=start)
    assert [len(members) for members in apart.run()] == [2, 1]


def test_what_saves_more_bytes_is_asked_first():
    p = Program((512, 64))
    wide = p.unary(p.x[0])
    p.done(p.unary(p.reduce(wide)))
    order: list[Kinds] = []

    def asked(merge: Merge) -> Answer:
        order.append(_kinds(merge))
        return NotApplicable()

    _pairs(p, _rule("asked", asked)).run()
    assert order == [("elementwise", "reduction"), ("reduction", "elementwise")]
    q = Program((512, 64))
    total = q.unary(q.reduce(q.x[0]))
    q.done(q.unary(q.by_row(q.x[0], total, _sum)))
    order.clear()
    _pairs(q, _rule("asked", asked)).run()
    assert len(order) == 3 and order[0] == ("elementwise", "elementwise")


def test_moved_data_that_a_root_may_read_where_it_lies_is_asked_first():
    p = Program((4, 8), (4, 6), (512, 64))
    p.done(p.matmul(p.moved(p.x[0], [1, 0], 8, 4), p.x[1]), p.unary(p.unary(p.x[2])))
    order: list[Kinds] = []

    def asked(merge: Merge) -> Answer:
        order.append(_kinds(merge))
        return NotApplicable()

    _pairs(p, _rule("asked", asked)).run()
    assert order == [("transpose", "contraction"), ("elementwise", "elementwise")]
