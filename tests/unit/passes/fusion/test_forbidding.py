"""Which groups rules from outside are asked about, as which sides, and whose word counts."""

from __future__ import annotations

from dataclasses import dataclass, field

from fuseline.analysis.shapes import ShapeAnalysis
from fuseline.passes.fusion.decision import Answer, Forbid, Legal, NotApplicable, WhyNot
from fuseline.passes.fusion.forbidding import Forbidding, JointMerge, forbidden
from fuseline.passes.fusion.graph import FusionGraph
from fuseline.passes.fusion.group import Group
from fuseline.passes.fusion.merging import joined
from fuseline.passes.fusion.rule import FusionRule, Merge, builtin_rules

from .programs import TARGET, Program

Sides = tuple[frozenset[str], frozenset[str]]


@dataclass
class _Asked(FusionRule):
    """Keeps what it is asked about, as ids of both sides; forbids one pair of them."""

    name = "asked"
    bad: Sides | None = None
    seen: list[Sides] = field(default_factory=list[Sides])

    def matches(self, merge: Merge, graph: FusionGraph) -> Answer:
        assert merge.joint and merge.target is TARGET
        self.seen.append((_ids(merge.producer), _ids(merge.consumer)))
        return Forbid("apart", "kept apart") if self.seen[-1] == self.bad else NotApplicable()


def _ids(group: Group) -> frozenset[str]:
    return frozenset(node.id for node in group.members)


def _three() -> tuple[FusionGraph, list[Group]]:
    """The second reads the first; the third has nothing to do with them."""
    p = Program((16, 32), (8, 4))
    first = p.unary(p.x[0])
    p.done(p.unary(first), p.unary(p.x[1]))
    graph = FusionGraph(p.function.body.block, ShapeAnalysis())
    return graph, [Group.of(node) for node in sorted(graph.nodes, key=lambda node: node.position)]


def test_only_rules_from_outside_are_asked():
    graph, groups = _three()
    rule = _Asked()
    forbidding = Forbidding([*builtin_rules(), rule], graph, TARGET)
    assert forbidding.rules == [rule]
    merge = JointMerge(groups[0], groups[1], TARGET)
    assert forbidding.answers(merge) == {"asked": NotApplicable()}
    everything = Forbidding(builtin_rules(), graph, TARGET)
    assert everything.answers(merge) == {} and everything.together(groups) is None


def test_fewer_than_two_groups_are_no_question():
    graph, groups = _three()
    rule = _Asked()
    forbidding = Forbidding([rule], graph, TARGET)
    assert forbidding.together([]) is forbidding.together(groups[:1]) is None
    assert rule.seen == []


def test_rules_see_each_pair_and_each_group_with_all_before_it():
    graph, groups = _three()
    first, second, third = map(_ids, groups)
    rule = _Asked()
    assert Forbidding([rule], graph, TARGET).together(groups) is None
    assert rule.seen == [(first, second), (first, third), (second, third), (first | second, third)]


def test_the_side_that_is_read_is_the_producer():
    graph, groups = _three()
    first, second, third = map(_ids, groups)
    rule = _Asked()
    Forbidding([rule], graph, TARGET).together([groups[1], groups[2], groups[0]])
    assert rule.seen == [(second, third), (first, second), (third, first), (first, second | third)]


def test_one_pair_that_is_forbidden_forbids_all():
    graph, groups = _three()
    first, second, third = map(_ids, groups)
    for bad, asked in (((first, second), 1), ((second, third), 3), ((first | second, third), 4)):
        rule = _Asked(bad)
        outcome = Forbidding([rule], graph, TARGET).together(groups)
        assert outcome is not None and outcome.rule == "asked" and outcome.group is None
        assert outcome.answer == Forbid("apart", "kept apart") and len(rule.seen) == asked
    assert Forbidding([_Asked((second, first))], graph, TARGET).together(groups) is None


def test_the_first_forbid_counts_and_no_other_refusal():
    forbid, later = Forbid("a", "first"), Forbid("b", "second")
    refusal = WhyNot("target", "no code for it")
    assert forbidden({}) is forbidden({"x": refusal, "y": Legal(), "z": NotApplicable()}) is None
    outcome = forbidden({"x": refusal, "y": Legal(), "z": forbid, "last": later})
    assert outcome is not None and (outcome.rule, outcome.answer) == ("z", forbid)


def test_sides_without_a_rule_keep_their_loops_and_arms():
    _, groups = _three()
    merge = JointMerge(joined(groups[:2]), groups[2], TARGET)
    assert merge.joint and not Merge(groups[0], groups[1], TARGET).joint
    assert merge.shared is merge.inlined and merge.shared.arms == tuple(groups)
    assert merge.shared.members == [group.root for group in groups]
    pair = JointMerge(groups[0], groups[1], TARGET).alignment
    assert (pair.pairs, pair.demoted_producer, pair.demoted_consumer) == ((), {0, 1}, {0, 1})
