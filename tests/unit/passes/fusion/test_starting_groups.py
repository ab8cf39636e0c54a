"""What a round starts from: the groups of regions, open or closed, and everything else by itself."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import pytest
from xdsl.ir.affine import AffineExpr, AffineMap

from fuseline.analysis.shapes import ShapeAnalysis
from fuseline.dispatch.fused_loops import FusedLoops, MemberLoops, Role
from fuseline.ir.build import dims_map
from fuseline.passes.fusion.graph import FusionGraph
from fuseline.passes.fusion.group import Group
from fuseline.passes.fusion.merging import joined
from fuseline.passes.fusion.node import Node
from fuseline.passes.fusion.starting_groups import (
    StartingGroup,
    in_step,
    no_more_groups,
    starting_group,
    with_single_nodes,
)

from .programs import Program


def _graph(p: Program) -> tuple[FusionGraph, list[Node]]:
    graph = FusionGraph(p.function.body.block, ShapeAnalysis())
    return graph, sorted(graph.nodes, key=lambda node: node.position)


def _two_arms() -> tuple[FusionGraph, list[Node]]:
    """The exp of rows and its sum; beside them an op of its own."""
    p = Program(("r", 32), (16, 8))
    e = p.unary(p.x[0])
    return _graph(p.done(p.reduce(e), p.unary(p.x[1])))


def _four() -> tuple[FusionGraph, list[Node]]:
    p = Program((16, 8))
    return _graph(p.done(*[p.unary(p.x[0]) for _ in range(4)]))


def test_a_region_is_a_group_per_arm_in_program_order():
    graph, (exp, total, other) = _two_arms()
    row = MemberLoops((0, None), arm=1)
    loops = FusedLoops(((16, 8), (None,)), (MemberLoops((0, 1)), row, row))
    start = starting_group([other.op, exp.op, total.op], loops, graph, [])
    assert [group.members for group in start.groups] == [[exp, total], [other]] and not start.closed
    assert [group.grid for group in start.groups] == [(exp.loops[0],), (16, 8)]
    assert start.groups[0].grid_loop_of == {exp: (0, None), total: (0, None)}
    assert start.groups[1].grid_loop_of == {other: (0, 1)}
    assert start.nodes == {exp, total, other}


def test_members_are_placed_read_in_place_or_no_nodes_at_all():
    graph, (exp, total, _) = _two_arms()
    view = next(op for op in exp.op.parent.ops if graph.node_of(op) is None)  # pyright: ignore[reportOptionalMemberAccess]
    members = (MemberLoops((), Role.VIEW), MemberLoops((), Role.INLINED), MemberLoops((0, None)))
    (group,) = starting_group([view, exp.op, total.op], FusedLoops(((None,),), members), graph, []).groups
    assert (group.members, group.inlined) == ([exp, total], {exp})
    assert group.grid_loop_of == {total: (0, None)}


def test_an_extent_that_no_member_has_is_as_it_was_said():
    graph, (_, _, other) = _two_arms()
    (group,) = starting_group([other.op], FusedLoops(((None, 8, 3),), (MemberLoops((None, 1)),)), graph, []).groups
    assert group.grid == (1, 8, 3)


def test_an_arm_without_members_is_no_group():
    graph, (_, _, other) = _two_arms()
    start = starting_group([other.op], FusedLoops(((4,), (16, 8)), (MemberLoops((0, 1), arm=1),)), graph, [])
    assert [group.members for group in start.groups] == [[other]]


def test_parts_that_only_an_argument_brings_together_start_apart():
    graph, (first, second, *_) = _four()
    one = MemberLoops((0, 1))
    loops = FusedLoops(((16, 8),), (one, one))
    (both,) = starting_group([first.op, second.op], loops, graph, []).groups
    assert both.members == [first, second] and both.along is None
    along = starting_group([first.op, second.op], FusedLoops(((16, 8),), (one, one), along=((1, 0),)), graph, [])
    assert [group.members for group in along.groups] == [[first], [second]]


def test_the_part_that_is_left_of_several_goes_along_nothing():
    """A pass between two rounds may leave one part of those that an argument brought together."""
    graph, (first, *_) = _four()
    along = FusedLoops(((16, 8),), (MemberLoops((0, 1)),), along=((0, 0),))
    (group,) = starting_group([first.op], along, graph, []).groups
    assert group.members == [first] and group.along is None


def test_a_region_is_shut_by_making_its_arms_one():
    _, (first, second, *_) = _four()
    one, two = Group.of(first), Group.of(second)
    single = StartingGroup((one,))
    assert single.shut() is single
    shut = StartingGroup((one, two)).shut()
    assert shut.closed and shut.nodes == {first, second}
    assert [group.arms for group in shut.groups] == [(one, two)]


def _inlined_before_sum(p: Program) -> tuple[Node, Node, Group]:
    _, (first, total) = _graph(p)
    return first, total, Group([first, total], (total.loops[0],), {total: (0, None)}, {first})


def test_what_is_read_in_place_gets_its_place_in_the_grid():
    p = Program((16, 32))
    first, total, group = _inlined_before_sum(p.done(p.reduce(p.unary(p.x[0]))))
    (made,) = in_step(StartingGroup((group,))).groups
    assert made.grid_loop_of == {first: (0, None), total: (0, None)} and made.inlined == set()
    assert (made.members, made.grid) == (group.members, group.grid)
    assert group.inlined == {first}


def test_what_moves_data_stays_where_it_is_read():
    p = Program((32, 16))
    first, total, group = _inlined_before_sum(p.done(p.reduce(p.moved(p.x[0], (1, 0), 16, 32))))
    (made,) = in_step(StartingGroup((group,))).groups
    assert made.inlined == {first} and made.grid_loop_of == {total: (0, None)}


def test_what_runs_over_part_of_the_grid_stays_where_it_is_read():
    p = Program((16, 32), (32,))
    _, (row, total) = _graph(p.done(p.bias(p.x[0], p.unary(p.x[1]), 1)))
    (made,) = in_step(StartingGroup((Group([row, total], (16, 32), {total: (0, 1)}, {row}),))).groups
    assert made.inlined == {row}


FIRST_COLUMN = AffineMap(2, 0, (AffineExpr.dimension(0), AffineExpr.constant(0)))


@pytest.mark.parametrize("again", [dims_map(2, [1, 0]), FIRST_COLUMN])
def test_a_group_that_reads_out_of_step_is_left_as_it_is(again: AffineMap):
    p = Program((16, 16))
    e = p.unary(p.x[0])
    _, (exp, both) = _graph(p.done(p.binary(e, e, again)))
    group = Group([exp, both], (16, 16), {both: (0, 1)}, {exp})
    (made,) = in_step(StartingGroup((group,))).groups
    assert made is group


def test_what_no_region_holds_is_alone_in_program_order():
    graph, (first, second, third, fourth) = _four()
    region = StartingGroup((Group.of(third), Group.of(second)))
    groups = with_single_nodes(graph, [region])
    assert [group.members for group in groups] == [[first], [second], [third], [fourth]]
    assert groups[1] is region.groups[1] and groups[2] is region.groups[0]
    assert [group.members for group in with_single_nodes(graph, [region.shut()])] == [
        [first],
        [second, third],
        [fourth],
    ]


@dataclass
class _Found:
    groups: list[Group]


ALONE, FIRST, MORE, ALL, APART = (
    [[0], [1], [2], [3]],
    [[0, 1], [2], [3]],
    [[0, 1, 2], [3]],
    [[0, 1, 2, 3]],
    [[0], [1, 2, 3]],
)
"""Partitions of four nodes, the first two of which were one dispatch; the last one takes them apart."""


def _rounds(*partitions: list[list[int]]) -> tuple[_Found, list[StartingGroup], list[Sequence[StartingGroup]]]:
    """The partition that is taken of four nodes of which two are arms of one region, and all starts that were tried:
    the runs come to `partitions` in turn."""
    graph, nodes = _four()
    single = [Group.of(node) for node in nodes]
    start, tried = [StartingGroup((single[0], single[1])), StartingGroup((single[2],))], list[Sequence[StartingGroup]]()

    def run(given: Sequence[StartingGroup]) -> _Found:
        tried.append(given)
        sets = ([single[number] for number in one] for one in partitions[len(tried) - 1])
        return _Found([one[0] if len(one) == 1 else joined(one) for one in sets])

    return no_more_groups(run, graph, start), start, tried


@pytest.mark.parametrize("partition", [FIRST, MORE, ALL])
def test_a_round_that_makes_no_more_groups_keeps_its_arms_open(partition: list[list[int]]):
    found, start, tried = _rounds(partition, ALONE)
    assert len(found.groups) == len(partition) and len(tried) == 2 and tried[0] is start and not tried[1]


def test_a_round_that_makes_more_groups_starts_again_with_closed_ones():
    found, start, tried = _rounds(ALONE, MORE, ALONE)
    assert len(found.groups) == 2 and [len(regions) for regions in tried] == [2, 2, 0]
    assert [region.closed for region in tried[1]] == [True, False]
    assert tried[1][1] is start[1] and tried[1][0].nodes == start[0].nodes


def test_what_a_round_comes_to_without_regions_counts_where_it_keeps_them_together():
    assert len(_rounds(FIRST, MORE)[0].groups) == 2
    assert len(_rounds(FIRST, ALL)[0].groups) == 1
    assert len(_rounds(FIRST, APART)[0].groups) == 3
    assert len(_rounds(FIRST, FIRST)[0].groups) == 3
