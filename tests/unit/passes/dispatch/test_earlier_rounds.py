"""The records of several rounds of fusion as one: who decided each edge first."""

from __future__ import annotations

from collections.abc import Sequence

from msgspec.structs import replace

from fuseline.analysis.shapes import ShapeAnalysis
from fuseline.passes.dispatch.earlier_rounds import with_earlier
from fuseline.passes.fusion.arms_merging import REGION
from fuseline.passes.fusion.graph import FusionGraph
from fuseline.passes.fusion.group import Group
from fuseline.passes.fusion.node import Node
from fuseline.passes.fusion.starting_groups import StartingGroup
from fuseline.report.records import Decision
from tests.graphs.program import Program


def _decision(
    producer: str, consumer: str, rule: str = "a-rule", *, fused: bool = True, arms: bool = False
) -> Decision:
    verdict = "fused" if fused else "missed"
    return Decision(
        rule=rule, verdict=verdict, producer=producer, consumer=consumer, producer_op="p", consumer_op="c", arms=arms
    )


def _merged(
    earlier: Sequence[Decision], found: Sequence[Decision], start: Sequence[StartingGroup] = (), number: int = 3
) -> list[Decision]:
    return list(with_earlier(earlier, found, start, number))


def _nodes() -> list[Node]:
    p = Program((4, 6), (4, 6), (4, 6))
    p.done(*(p.relu(x) for x in p.x))
    return FusionGraph(p.function.body.block, ShapeAnalysis()).nodes


def test_what_a_round_decides_is_of_that_round():
    found = [_decision("a", "b"), _decision("b", "c", fused=False)]
    assert _merged([], found) == [replace(one, round=3) for one in found]


def test_what_it_took_over_is_as_it_was_decided():
    first = replace(_decision("a", "b", "first-rule"), round=2, detail="because")
    assert _merged([first], [_decision("a", "b", REGION)]) == [first]
    assert _merged([replace(first, verdict="missed")], [_decision("a", "b", REGION)]) == [
        replace(_decision("a", "b", REGION), round=0)
    ]


def test_a_region_that_came_with_the_program_is_of_no_round():
    assert _merged([], [_decision("a", "b", REGION)]) == [replace(_decision("a", "b", REGION), round=0)]


def test_a_new_answer_replaces_the_earlier_one():
    first = replace(_decision("a", "b", "first-rule"), round=1)
    assert _merged([first], [_decision("a", "b")]) == [replace(_decision("a", "b"), round=3)]


def test_arms_of_a_region_that_nothing_was_said_about_stay_on_record():
    one, two, three = _nodes()
    start = [StartingGroup((Group.of(one), Group.of(two))), StartingGroup((Group.of(three),))]
    arms = _decision(one.name, two.name, arms=True)
    assert _merged([arms], [], start) == [arms]
    assert _merged([arms], [_decision(one.name, two.name)], start) == [replace(_decision(one.name, two.name), round=3)]
    for gone in (
        _decision(one.name, two.name),
        _decision(one.name, three.name, arms=True),
        _decision(one.name, two.name, arms=True, fused=False),
        _decision("gone", "too", arms=True),
    ):
        assert _merged([gone], [], start) == []


def test_what_was_found_comes_first_and_in_order():
    one, two, _ = _nodes()
    start = [StartingGroup((Group.of(one), Group.of(two)))]
    arms, later = _decision(one.name, two.name, arms=True), [_decision("c", "d"), _decision("a", "b", REGION)]
    assert [(d.producer, d.round) for d in _merged([arms], later, start)] == [("c", 3), ("a", 0), (one.name, 1)]
