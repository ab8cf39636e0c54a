"""Parts of a group that only concats hold together are arms of their own."""

from __future__ import annotations

from collections.abc import Sequence

from fuseline.passes.fusion.group import Group
from fuseline.passes.fusion.merging import inline_into, joined
from fuseline.passes.fusion.node import Node
from fuseline.passes.fusion.separate_arms import copied, seams_of, with_separate_arms

from .programs import Program, nodes_of


def _read_in_place(nodes: Sequence[Node]) -> Group:
    """The last node with all others read in place."""
    group = Group.of(nodes[-1])
    for node in reversed(nodes[:-1]):
        group = inline_into(Group.of(node), group)
    return group


def test_the_parts_of_a_concat_have_grids_of_their_own():
    p = Program((6, 5), (6, 3))
    first, second, concat = nodes_of(p.done(p.concat(p.unary(p.x[0]), p.unary(p.x[1]))))
    group = with_separate_arms(_read_in_place([first, second, concat]))
    assert [arm.members for arm in group.arms] == [[first], [second], [concat]]
    assert [arm.grid for arm in group.arms] == [(6, 5), (6, 3), (6, 8)]
    assert not any(arm.inlined for arm in group.arms)
    assert group.arms[0].grid_loop_of == {first: (0, 1)}


def test_what_a_part_reads_in_place_it_still_does():
    p = Program((6, 5), (6, 3))
    inner, first, second, concat = nodes_of(p.done(p.concat(p.unary(p.unary(p.x[0])), p.unary(p.x[1]))))
    group = with_separate_arms(_read_in_place([inner, first, second, concat]))
    assert (group.arms[0].members, group.arms[0].inlined) == ([inner, first], {inner})


def test_a_part_and_a_copy_are_apart():
    p = Program((6, 5), (6, 3))
    made, concat = nodes_of(p.done(p.concat(p.unary(p.x[0]), p.x[1])))
    group = with_separate_arms(_read_in_place([made, concat]))
    assert [arm.members for arm in group.arms] == [[made], [concat]]
    assert copied(group, seams_of(group)) == [p.x[1]]


def test_parts_that_hang_together_stay():
    p = Program((6, 5))
    made = p.unary(p.x[0])
    group = _read_in_place(nodes_of(p.done(p.concat(made, p.unary(made)))))
    assert with_separate_arms(group) is group


def test_a_concat_that_is_read_inside_is_no_seam():
    p = Program((6, 5), (6, 3))
    group = _read_in_place(nodes_of(p.done(p.unary(p.concat(p.unary(p.x[0]), p.unary(p.x[1]))))))
    assert seams_of(group) == frozenset() and with_separate_arms(group) is group


def test_a_concat_of_a_concat_is_two_seams():
    p = Program((6, 5), (6, 3))
    inner = p.concat(p.unary(p.x[0]), p.unary(p.x[1]))
    first, second, within, around = nodes_of(p.done(inner, p.concat(inner, p.x[1])))
    group = joined([Group.of(first), Group.of(second), Group.of(within), Group.of(around)])
    assert seams_of(group) == {within, around}
    assert [arm.members for arm in with_separate_arms(group).arms] == [[first], [second], [within], [around]]


def test_arms_that_are_so_already_keep_their_loops():
    p = Program((6, 5), (6, 3))
    first, second, concat = nodes_of(p.done(p.concat(p.unary(p.x[0]), p.unary(p.x[1]))))
    narrow = Group([first], (6,), {first: (0, None)})
    group = with_separate_arms(joined([narrow, Group.of(second), Group.of(concat)]))
    assert group.arms[0] is narrow
