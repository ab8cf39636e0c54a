"""The target's veto: asked before a merge of any kind is applied, and on record where it refuses one."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace

import pytest

from fuseline.analysis.shapes import ShapeAnalysis
from fuseline.errors import FuselineError
from fuseline.passes.fusion.checked_rule import checked
from fuseline.passes.fusion.decision import Answer, Legal, WhyNot
from fuseline.passes.fusion.driver import Partition
from fuseline.passes.fusion.graph import FusionGraph
from fuseline.passes.fusion.group import Group
from fuseline.passes.fusion.limits import Veto
from fuseline.passes.fusion.plan import FusionPlan
from fuseline.passes.fusion.plan_constraints import PlanMatcher
from fuseline.passes.fusion.planned_driver import guided_partition
from fuseline.passes.fusion.rule import FusionRule, Merge, builtin_rules

from .programs import TARGET, Program

STREAMING = replace(TARGET, streamed_points=64)


def _chain() -> Program:
    p = Program((64, 64), (64, 64))
    return p.done(p.unary(p.unary(p.matmul(p.x[0], p.x[1]))))


def _attention() -> Program:
    p = Program(("q", 32), (32, "k"), ("k", 32))
    return p.done(p.matmul(p.softmax(p.matmul(p.x[0], p.x[1])), p.x[2]))


def _concat() -> Program:
    p = Program((64, 64), (64, 32), (64, 48))
    return p.done(p.concat(p.matmul(p.x[0], p.x[1]), p.matmul(p.x[0], p.x[2])))


def _projections() -> Program:
    p = Program((512, 64), *[(64, 32 + 16 * i) for i in range(5)])
    return p.done(*[p.matmul(p.x[0], w) for w in p.x[1:]])


def _of_members(most: int) -> Veto:
    """Takes dispatches of `most` ops, arms included."""

    def veto(groups: Sequence[Group]) -> WhyNot | None:
        count = sum(len(group.members) for group in groups)
        return (
            WhyNot("target", f"members: {count}", groups[-1].root.name, {"members": float(count)})
            if count > most
            else None
        )

    return veto


def _partition(p: Program, veto: Veto, plan: FusionPlan | None = None, streams: bool = False) -> Partition:
    graph = FusionGraph(p.function.body.block, ShapeAnalysis())
    guide = PlanMatcher(plan).guide(graph) if plan is not None else None
    return guided_partition(graph, builtin_rules(), STREAMING if streams else TARGET, "default", guide, veto)


def _sizes(result: Partition) -> list[int]:
    return sorted(len(group.members) for group in result.groups)


@pytest.mark.parametrize(("most", "sizes"), [(1, [1, 1, 1]), (2, [1, 2]), (3, [3])])
def test_no_group_is_larger_than_the_target_takes(most: int, sizes: list[int]):
    result = _partition(_chain(), _of_members(most))
    assert _sizes(result) == sizes
    refused = [d for d in result.decisions if d.verdict == "missed"]
    assert len(refused) == len(sizes) - 1
    assert {(d.code, d.numbers["members"] > most) for d in refused} <= {("target", True)}
    assert all(d.detail.startswith("members: ") and d.at for d in refused)


def test_a_softmax_that_would_stream_is_shown_to_the_target():
    assert _sizes(_partition(_attention(), _of_members(99), streams=True)) == [6]
    result = _partition(_attention(), _of_members(2), streams=True)
    assert max(_sizes(result)) == 2
    assert ("streamed-softmax", "target") in {(d.rule, d.code) for d in result.decisions}


def test_the_parts_of_a_concat_are():
    assert [len(group.arms) for group in _partition(_concat(), _of_members(3)).groups] == [3]
    result = _partition(_concat(), _of_members(2))
    assert all(len(group.arms) < 3 for group in result.groups)
    assert ("concat-slices", "target") in {(d.rule, d.code) for d in result.decisions}


@pytest.mark.parametrize(("most", "arms"), [(5, [5]), (2, [0, 2, 2]), (1, [0] * 5)])
def test_groups_side_by_side_are_as_many_as_the_target_takes(most: int, arms: list[int]):
    result = _partition(_projections(), _of_members(most))
    assert sorted(len(group.arms) for group in result.groups) == arms
    refused = [d for d in result.decisions if d.verdict == "missed"]
    assert {(d.rule, d.code, d.arms) for d in refused} == ({("shared-operand", "target", True)} if most < 5 else set())


def test_a_pair_that_is_together_in_the_end_is_not_said_to_be_apart():
    """The first run of arms is full, and the next one begins with what was refused: nobody is beside itself."""
    for most in (1, 2, 3):
        result = _partition(_projections(), _of_members(most))
        home = {node.name: group for group in result.groups for node in group.members}
        pairs = [(d.producer, d.consumer) for d in result.decisions if d.verdict == "missed"]
        assert pairs and len(set(pairs)) == len(pairs)
        assert all(home[first] is not home[second] for first, second in pairs)


class _Everything(FusionRule):
    """Finds every merge legal."""

    name = "everything"

    def matches(self, merge: Merge, graph: FusionGraph) -> Answer:
        return Legal()


def test_a_rule_from_outside_cannot_waive_it():
    def groups(veto: Veto) -> list[int]:
        graph = FusionGraph(_chain().function.body.block, ShapeAnalysis())
        return _sizes(guided_partition(graph, [checked(_Everything())], TARGET, "default", None, veto))

    assert groups(_of_members(3)) == [3]
    assert groups(_of_members(2)) == [1, 2]


def _plan_of_all(p: Program) -> FusionPlan:
    return FusionPlan(groups=(tuple(node.id for node in FusionGraph(p.function.body.block, ShapeAnalysis()).nodes),))


@pytest.mark.parametrize("program", [_chain, _projections, _concat])
def test_a_plan_that_asks_for_what_the_target_refuses_is_refused_with_its_reason(program: Callable[[], Program]):
    plan = _plan_of_all(program())
    assert len(_partition(program(), _of_members(99), plan).groups) == 1
    with pytest.raises(FuselineError, match=r"E0703.*cannot be one dispatch.*target: members: "):
        _partition(program(), _of_members(2), plan)


def test_what_a_plan_leaves_of_a_join_is_asked_about_again():
    """The target takes these arms all at once, or not at all: a plan that keeps two of them apart leaves none
    together."""
    nodes = sorted(FusionGraph(_projections().function.body.block, ShapeAnalysis()).nodes, key=lambda node: node.id)

    def all_or_one(groups: Sequence[Group]) -> WhyNot | None:
        names = {node.name for group in groups for node in group.members}
        return WhyNot("target", "some", "") if names == {node.name for node in nodes[1:]} else None

    assert [len(group.arms) for group in _partition(_projections(), all_or_one).groups] == [5]
    result = _partition(_projections(), all_or_one, FusionPlan(forbid=((nodes[0].id, nodes[1].id),)))
    assert all({node.name for node in group.members} != {node.name for node in nodes[1:]} for group in result.groups)
