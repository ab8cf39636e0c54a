"""Arms that go along one argument become one: which, over which loops, and what the record says."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from msgspec.structs import replace
from xdsl.dialects import math
from xdsl.ir import SSAValue

from fuseline.analysis.shapes import ShapeAnalysis
from fuseline.ir.build import dims_map
from fuseline.passes.fusion.finished import finished
from fuseline.passes.fusion.group import Group
from fuseline.passes.fusion.merging import joined
from fuseline.passes.fusion.node import Node
from fuseline.passes.fusion.shared_argument import SHARED_ARGUMENT, SHARED_POINTS, Traversal, along_arguments
from fuseline.report.edge_counts import count_edges
from fuseline.report.records import Decision

from .programs import Program, nodes_of


def _finished(p: Program) -> tuple[Group, list[Decision]]:
    (group,) = p.partition().groups
    return finished(group, ShapeAnalysis())


def _node(group: Group, value: SSAValue) -> Node:
    return next(node for node in group.members if node.op is value.owner)


def _points(decisions: list[Decision]) -> list[tuple[str, float]]:
    assert all(d.rule == "shared-argument" and d.arms for d in decisions)
    return [(d.code, d.numbers["points"]) for d in decisions]


def test_a_map_and_the_sums_of_rows_share_the_rows():
    p = Program((70, 5))
    mapped, sums = p.unary(p.x[0]), p.reduce(p.x[0])
    group, decisions = _finished(p.done(mapped, sums))
    assert (group.arms, group.grid) == ((), (70,))
    assert group.grid_loop_of == {_node(group, mapped): (0, None), _node(group, sums): (0, None)}
    assert group.along == (group.members[0], 0)
    assert _points(decisions) == [("fused", 70.0)]


def test_a_transposed_reader_has_the_same_loops_in_another_order():
    p = Program((9, 10))
    plain, turned = p.unary(p.x[0]), p.unary(p.x[0], math.TanhOp, permutation=(1, 0))
    group, _ = _finished(p.done(plain, turned))
    assert group.grid == (9, 10)
    assert (group.grid_loop_of[_node(group, plain)], group.grid_loop_of[_node(group, turned)]) == ((0, 1), (1, 0))


@pytest.mark.parametrize(
    ("part", "grid"),
    [
        (lambda p: p.unary(p.x[0], math.TanhOp), (70, 71)),
        (lambda p: p.unary(p.x[0], permutation=(1, 0)), (70, 71)),
        (lambda p: p.reduce(p.x[0]), (70,)),
        (lambda p: p.reduce(p.x[0], axis=0), (71,)),
        (lambda p: p.slice(p.x[0], [0, 3], [70, 2]), (70,)),
        (lambda p: p.pad(p.x[0], [1, 0], [0, 0]), None),
        (lambda p: p.gathered(p.x[0], p.x[1], 3, 71), None),
    ],
    ids=["map", "turned", "rows", "columns", "some columns", "pad", "picked"],
)
def test_along_what_a_part_steps(part: Callable[[Program], SSAValue], grid: tuple[int, ...] | None):
    p = Program((70, 71), (3, 71))
    nodes = nodes_of(p.done(p.unary(p.x[0]), part(p)))
    group, decisions = finished(joined([Group.of(node) for node in nodes]), ShapeAnalysis())
    assert (group.grid if group.along else None) == grid
    assert [d.code for d in decisions] == ["few-steps" if grid is None else "fused"]


def test_along_what_some_rows_step():
    p = Program((2, 70, 71))
    nodes = nodes_of(p.done(p.unary(p.x[0]), p.slice(p.x[0], [0, 1, 0], [2, 66, 71])))
    group, decisions = finished(joined([Group.of(node) for node in nodes]), ShapeAnalysis())
    assert group.along and group.grid == (2, 71) and [d.code for d in decisions] == ["fused"]


def test_units_are_no_loops_of_the_grid():
    p = Program((1, 70))
    group, _ = _finished(p.done(p.unary(p.x[0]), p.unary(p.x[0], math.TanhOp)))
    assert group.grid == (70,) and set(group.grid_loop_of.values()) == {(None, 0)}


def test_halves_of_one_argument_step_along_its_rows():
    p = Program((70, 8))
    left, right = p.columns(p.x[0], 0, 4), p.columns(p.x[0], 4, 4)
    group, decisions = _finished(p.done(p.unary(left), p.unary(right, math.TanhOp)))
    assert group.grid == (70,) and _points(decisions) == [("fused", 70.0)]


def test_sums_of_rows_and_of_columns_have_no_steps_in_common():
    p = Program((80, 80))
    group, decisions = _finished(p.done(p.reduce(p.x[0]), p.reduce(p.x[0], axis=0)))
    assert len(group.arms) == 2 and not any(arm.along for arm in group.arms)
    assert _points(decisions) == [("few-steps", 1.0)]
    assert [decision.verdict for decision in decisions] == ["side-by-side"], "one launch runs both: nothing is missed"
    counts = count_edges(decisions)
    assert counts.missed == {} and (counts.fused, counts.side_by_side) == (0, 1)
    both = [replace(decisions[0], rule="same-space", verdict="fused", code="fused"), *decisions]
    assert count_edges(both).side_by_side == 1, "what put them into one dispatch counts once"


def test_five_rows_occupy_five_threads_at_most():
    p = Program((5, 70))
    group, decisions = _finished(p.done(p.unary(p.x[0]), p.reduce(p.x[0])))
    assert len(group.arms) == 2 and _points(decisions) == [("few-steps", 5.0)]


def test_all_of_a_small_argument_is_enough():
    p = Program((3, 4))
    group, decisions = _finished(p.done(p.unary(p.x[0]), p.unary(p.x[0], math.TanhOp)))
    assert group.grid == (3, 4) and _points(decisions) == [("fused", 12.0)]


def test_steps_count_where_an_arm_has_them_in_its_grid():
    """The softmax reads every element of a row, but its grid are the 16 rows."""
    p = Program((16, 32))
    group, decisions = _finished(p.done(p.softmax(p.x[0]), p.unary(p.x[0])))
    assert len(group.arms) == 2 and _points(decisions) == [("few-steps", 16.0)]


def test_what_is_read_along_two_loops_at_once_is_no_step():
    p = Program((80, 80))
    group, decisions = _finished(p.done(p.binary(p.x[0], p.x[0], dims_map(2, [1, 0])), p.unary(p.x[0])))
    assert len(group.arms) == 2 and _points(decisions) == [("few-steps", 1.0)]


def test_products_of_one_operand_stay_apart():
    p = Program((200, 9), (9, 5), (9, 5))
    group, decisions = _finished(p.done(p.matmul(p.x[0], p.x[1]), p.matmul(p.x[0], p.x[2])))
    assert len(group.arms) == 2 and decisions == []


def test_what_is_gathered_is_not_walked():
    p = Program((90, 4), (3, 4))
    numbers = p.x[1]
    group, decisions = _finished(p.done(p.gathered(p.x[0], numbers, 3, 4), p.unary(p.x[0])))
    assert len(group.arms) == 2 and _points(decisions) == [("few-steps", 1.0)]


def test_other_arguments_are_nothing_in_common():
    p = Program((9, 10), (9, 10))
    group, decisions = _finished(p.done(p.unary(p.x[0]), p.unary(p.x[1])))
    assert len(group.arms) == 2 and decisions == []


def test_any_of_the_largest_arguments_will_do():
    p = Program((9, 10), (9, 10))
    group, decisions = _finished(p.done(p.unary(p.x[1]), p.add(p.x[0], p.x[1])))
    assert group.grid == (9, 10) and _points(decisions) == [("fused", 90.0)]
    assert group.along is not None and group.along[0].op.operands[group.along[1]] is p.x[1]


def test_a_smaller_argument_does_not_count():
    p = Program((9, 10), (10,))
    group, decisions = _finished(p.done(p.bias(p.x[0], p.x[1], 1), p.unary(p.x[1])))
    assert len(group.arms) == 2 and decisions == []


def test_a_concat_copies_the_argument_on_the_way():
    p = Program((9, 10))
    made = p.unary(p.x[0])
    group, _ = _finished(p.done(p.concat(p.x[0], made)))
    (arm,) = [arm for arm in group.arms if arm.along]
    assert arm.members == [_node(group, made)] and arm.grid == (9, 10)


def test_a_concat_that_copies_something_else_changes_nothing():
    p = Program((9, 10), (9, 3))
    group, _ = _finished(p.done(p.concat(p.x[1], p.unary(p.x[0]))))
    assert group.arms and not any(arm.along for arm in group.arms)


def _alone(p: Program) -> tuple[Group, ...]:
    return tuple(Group.of(node) for node in nodes_of(p))


def test_what_two_go_along_is_what_both_do():
    p = Program((70, 5), (70, 5))
    one, two = _alone(p.done(p.unary(p.x[0]), p.unary(p.x[1])))
    x, y = p.x
    first, second = Traversal((one,), {x: ({0: 0, 1: 1},), y: ({0: 0},)}), Traversal((two,), {x: ({1: 0},)})
    both = first.with_(second)
    assert both.arms == (one, two) and both.along == {x: ({0: 0, 1: 1}, {1: 0})}
    assert (first.axes(x), first.axes(y), both.axes(x)) == ([0, 1], [0], [1])
    shapes = ShapeAnalysis()
    assert (first.points(x, shapes), first.points(y, shapes), both.points(x, shapes)) == (350, 70, 5)
    assert both.only([y]).along == {} and first.only([y]).along == {y: ({0: 0},)}
    assert first.only([x, y]) == first
    assert not both.with_(Traversal((two,), {y: ({0: 0},)})).along


@pytest.mark.parametrize(
    ("shape", "steps", "enough"),
    [
        ((SHARED_POINTS, 3), {0: 0}, True),
        ((SHARED_POINTS - 1, 3), {0: 0}, False),
        ((SHARED_POINTS - 1, 3), {0: 0, 1: 1}, True),
        ((5, 3), {0: 0, 1: 1}, True),
        ((5, 3), {0: 0}, False),
        ((SHARED_POINTS, 3), {}, False),
    ],
)
def test_steps_are_enough_from_a_number_on_or_where_they_are_all(
    shape: tuple[int, int], steps: dict[int, int], enough: bool
):
    p = Program(shape)
    (arm,) = _alone(p.done(p.unary(p.x[0])))
    assert bool(Traversal((arm,), {p.x[0]: (steps,)}).worthwhile(ShapeAnalysis()).along) == enough


def test_the_argument_with_most_steps_comes_first_and_what_no_operand_is_none():
    p = Program((70, 90), (70, 90), (70, 90))
    (arm,) = _alone(p.done(p.add(p.x[0], p.x[1])))
    along = {p.x[0]: ({0: 0},), p.x[1]: ({1: 1},), p.x[2]: ({0: 0, 1: 1},)}
    assert list(Traversal((arm,), along).worthwhile(ShapeAnalysis()).along) == [p.x[1], p.x[0]]


def test_arms_that_a_group_does_not_have_are_not_looked_for():
    p = Program((70, 5))
    (arm,) = _alone(p.done(p.unary(p.x[0])))
    assert along_arguments(arm, ShapeAnalysis()) == (arm, [])


def test_arms_become_one_or_stay_and_are_told():
    p = Program((70, 5), (80, 80))
    rows = [p.unary(p.x[0]), p.reduce(p.x[0])]
    turned = [p.reduce(p.x[1]), p.reduce(p.x[1], axis=0)]
    whole = joined(_alone(p.done(*rows, *turned)))
    group, decisions = along_arguments(whole, ShapeAnalysis())
    assert sorted(len(arm.members) for arm in group.arms) == [1, 1, 2]
    (both,) = [arm for arm in group.arms if len(arm.members) == 2]
    assert (
        both.grid == (70,)
        and both.along is not None
        and {node.op for node in both.members} == {value.owner for value in rows}
    )
    assert sorted((one.rule, one.verdict, one.code) for one in decisions) == [
        (SHARED_ARGUMENT, "fused", "fused"),
        (SHARED_ARGUMENT, "side-by-side", "few-steps"),
    ]
    assert {node.op for node in whole.members} == {node.op for node in group.members}
