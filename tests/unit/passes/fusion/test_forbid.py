"""A rule from outside forbids: whatever other rules say, its groups stay apart, in every kind of merge, and the record
gives its name and its code."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import pytest
from xdsl.dialects.builtin import TensorType, f16, f32
from xdsl.dialects.math import TanhOp

from fuseline.analysis.shapes import ShapeAnalysis
from fuseline.errors import FuselineError
from fuseline.passes.fusion.checked_rule import checked
from fuseline.passes.fusion.decision import Answer, Forbid, Legal, NotApplicable, WhyNot
from fuseline.passes.fusion.driver import Partition
from fuseline.passes.fusion.graph import FusionGraph
from fuseline.passes.fusion.node import Node
from fuseline.passes.fusion.plan import FusionPlan
from fuseline.passes.fusion.plan_constraints import PlanMatcher
from fuseline.passes.fusion.planned_driver import guided_partition
from fuseline.passes.fusion.rule import FusionRule, Merge, builtin_rules, order_rules

from .programs import TARGET, Program

LEVELS = ("default", "aggressive")
Judge = Callable[[Merge], bool]


class _Everything(FusionRule):
    """Finds every merge legal."""

    name = "everything"

    def matches(self, merge: Merge, graph: FusionGraph) -> Answer:
        return Legal()


def _forbidding(bad: Judge) -> FusionRule:
    class Forbids(FusionRule):
        """Forbids what `bad` finds bad."""

        name = "forbids"

        def matches(self, merge: Merge, graph: FusionGraph) -> Answer:
            return Forbid("not here!", "my machine", merge.consumer.root.name) if bad(merge) else NotApplicable()

    return checked(Forbids())


def _partition(
    p: Program, *rules: FusionRule, level: str = "default", plan: FusionPlan | None = None, streams: bool = False
) -> Partition:
    graph = FusionGraph(p.function.body.block, ShapeAnalysis())
    guide = PlanMatcher(plan).guide(graph) if plan is not None else None
    target = replace(TARGET, streamed_points=64) if streams else TARGET
    return guided_partition(graph, order_rules([*builtin_rules(), *rules]), target, level, guide)


def _anything(merge: Merge) -> bool:
    return True


def _more_than(most: int) -> Judge:
    return lambda merge: len(merge.members) > most


def _has_tanh(node: Node) -> bool:
    return any(isinstance(op, TanhOp) for op in node.op.walk())


def _tanh(merge: Merge) -> bool:
    return any(map(_has_tanh, merge.members))


def _halves(merge: Merge) -> bool:
    types = [result.type for node in merge.members for result in node.op.results]
    return any(isinstance(type_, TensorType) and type_.element_type == f16 for type_ in types)


def _sizes(result: Partition) -> list[int]:
    return sorted(len(group.members) for group in result.groups)


def _chain() -> Program:
    p = Program((33, 47), (47, 29))
    return p.done(p.unary(p.unary(p.unary(p.matmul(p.x[0], p.x[1])), TanhOp)))


def _attention() -> Program:
    p = Program(("q", 32), (32, "k"), ("k", 32))
    return p.done(p.matmul(p.softmax(p.matmul(p.x[0], p.x[1])), p.x[2]))


def _concat() -> Program:
    p = Program((64, 64), (64, 32), (64, 48))
    return p.done(p.concat(p.matmul(p.x[0], p.x[1]), p.matmul(p.x[0], p.x[2])))


def _projections() -> Program:
    p = Program((512, 64), *[(64, 32 + 16 * i) for i in range(5)])
    return p.done(*[p.matmul(p.x[0], w) for w in p.x[1:]])


def _moved() -> Program:
    p = Program((24, 40), (40, 24))
    return p.done(p.matmul(p.moved(p.x[1], (1, 0), 24, 40), p.unary(p.pad(p.x[0], (8, 0), (8, 0)))))


def _halved() -> Program:
    p = Program((17, 9), (17, 9), arguments=[f32, f16])
    whole = p.unary(p.unary(p.x[0]))
    p.element = f16
    return p.done(whole, p.unary(p.unary(p.x[1])))


ALL = (_chain, _attention, _concat, _projections, _moved)


@pytest.mark.parametrize("level", LEVELS)
@pytest.mark.parametrize("program", ALL)
def test_what_forbids_everything_leaves_one_op_per_group(program: Callable[[], Program], level: str):
    assert max(_sizes(_partition(program(), checked(_Everything()), level=level, streams=True))) > 1
    result = _partition(program(), checked(_Everything()), _forbidding(_anything), level=level, streams=True)
    assert max(_sizes(result)) == 1
    told = {(d.rule, d.code, d.detail) for d in result.decisions if d.verdict == "missed" and d.code != "cycle"}
    assert ("forbids", "not here!", "my machine") in told


@pytest.mark.parametrize("level", LEVELS)
@pytest.mark.parametrize("most", [1, 2, 3])
@pytest.mark.parametrize("program", ALL)
def test_no_group_is_larger_than_a_rule_allows(program: Callable[[], Program], most: int, level: str):
    result = _partition(program(), _forbidding(_more_than(most)), level=level, streams=True)
    assert max(_sizes(result)) <= most


@pytest.mark.parametrize("level", LEVELS)
def test_an_op_is_forbidden_to_share_a_group(level: str):
    result = _partition(_chain(), _forbidding(_tanh), checked(_Everything()), level=level)
    (alone,) = [group for group in result.groups if any(map(_has_tanh, group.members))]
    assert len(alone.members) == 1
    assert {d.code for d in result.decisions if d.verdict == "missed"} == {"not here!"}


@pytest.mark.parametrize("level", LEVELS)
def test_an_element_type_is_forbidden(level: str):
    assert max(_sizes(_partition(_halved(), level=level))) > 1
    result = _partition(_halved(), _forbidding(_halves), level=level)
    assert _sizes(result) == [1, 1, 2]


def test_the_record_of_arms_kept_apart_names_the_rule():
    result = _partition(_projections(), _forbidding(_more_than(2)))
    assert sorted(len(group.arms) for group in result.groups) == [0, 2, 2]
    assert {(d.rule, d.code, d.arms) for d in result.decisions if d.verdict == "missed"} == {
        ("forbids", "not here!", True)
    }


@pytest.mark.parametrize("program", ALL)
def test_whatever_a_rule_asks_of_a_merge_has_an_answer(program: Callable[[], Program]):
    seen: list[bool] = []

    def look(merge: Merge) -> bool:
        seen.append(merge.joint)
        assert len(merge.shared.members) == len(merge.inlined.members) == len(merge.members)
        return merge.scratch == -1 or (merge.regrouped and merge.leaks and not merge.alignment.pairs)

    look_at = _partition(program(), _forbidding(look), streams=True)
    assert _sizes(look_at) == _sizes(_partition(program(), streams=True))
    assert seen and (any(seen) or program in (_chain, _moved))


def test_groups_that_nothing_joins_are_shown_without_reads():
    seen: list[bool] = []

    def look(merge: Merge) -> bool:
        seen.append(bool(merge.reads))
        return False

    assert _partition(_projections(), _forbidding(look)).groups[0].arms
    assert seen and not any(seen)


def _plan_of_all(p: Program) -> FusionPlan:
    return FusionPlan(groups=(tuple(node.id for node in FusionGraph(p.function.body.block, ShapeAnalysis()).nodes),))


@pytest.mark.parametrize("program", [_chain, _projections, _concat])
def test_a_plan_that_asks_for_what_a_rule_forbids_is_refused(program: Callable[[], Program]):
    plan = _plan_of_all(program())
    assert len(_partition(program(), plan=plan).groups) == 1
    with pytest.raises(FuselineError, match=r"E0703.*cannot be one dispatch.*not here!: my machine") as caught:
        _partition(program(), _forbidding(_anything), plan=plan)
    assert "why-not" not in (caught.value.hint or "")


def test_forbid_and_legal_of_two_rules_is_no_error_whatever_their_order():
    class Last(_Everything):
        """The same, asked last."""

        name = "last"
        after = ("forbids",)

    for other in (_Everything(), Last()):
        result = _partition(_chain(), checked(other), _forbidding(_anything))
        assert {(d.rule, d.code) for d in result.decisions} == {("forbids", "not here!")}


@pytest.mark.parametrize("code", ["", "  ", "two\nlines", None, 7])
def test_a_code_is_one_line(code: object):
    class Wrong(FusionRule):
        """Forbids without a code."""

        name = "wrong"

        def matches(self, merge: Merge, graph: FusionGraph) -> Answer:
            return Forbid(code, "no")  # pyright: ignore[reportArgumentType]

    with pytest.raises(FuselineError, match=r"E0704.*a Forbid has a code of one line") as caught:
        _partition(_chain(), checked(Wrong()))
    assert caught.value.node == "wrong"


def test_why_not_keeps_to_the_known_codes():
    with pytest.raises(KeyError):
        WhyNot("not here!", "my machine")
