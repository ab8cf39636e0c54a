"""Members that cost a group loops of its grid are read in place; what leaves, reduces, or depends on a reduction is
not."""

from __future__ import annotations

from fuseline.analysis.shapes import ShapeAnalysis
from fuseline.passes.fusion.graph import FusionGraph
from fuseline.passes.fusion.group import Group
from fuseline.passes.fusion.inlining import with_inlined_members
from fuseline.passes.fusion.merging import joined
from tests.unit.passes.fusion.programs import Program


def _over_rows(p: Program) -> Group:
    """All nodes of a program as one group over rows: the first loop of each."""
    nodes = FusionGraph(p.function.body.block, ShapeAnalysis()).nodes
    place = {node: (0, *[None] * (len(node.loops) - 1)) for node in nodes}
    return Group(list(nodes), (nodes[0].loops[0],), place)


def test_parts_of_a_concat_are_read_in_place_for_the_sake_of_its_columns():
    p = Program((6, 4), (6, 4))
    p.done(p.unary(p.concat(p.unary(p.x[0]), p.unary(p.x[1]))))
    group = _over_rows(p)
    found = with_inlined_members(group)
    assert (found.grid, found.members) == ((6, 8), group.members)
    assert found.inlined == set(group.members[:2])
    assert [found.grid_loop_of[node] for node in group.members[2:]] == [(0, 1), (0, 1)]
    assert with_inlined_members(found) is found


def test_a_member_that_has_the_loops_that_are_gained_keeps_its_place():
    p = Program((6, 4), (6, 4), (6, 8))
    wide = p.unary(p.x[2])
    p.done(p.binary(p.concat(p.unary(p.x[0]), p.unary(p.x[1])), wide))
    group = _over_rows(p)
    found = with_inlined_members(group)
    assert found.grid == (6, 8)
    assert [node.loops for node in found.inlined] == [(6, 4), (6, 4)]


def test_what_leaves_the_group_is_stored():
    p = Program((6, 4), (6, 4))
    part = p.unary(p.x[0])
    p.done(p.unary(p.concat(part, p.unary(p.x[1]))), part)
    group = _over_rows(p)
    assert with_inlined_members(group) is group


def test_what_depends_on_a_reduction_is_made_where_the_reduction_is():
    p = Program((6, 4))
    p.done(p.softmax(p.x[0]))
    group = _over_rows(p)
    assert with_inlined_members(group) is group


def test_each_arm_is_looked_at():
    p = Program((6, 4), (6, 4))
    p.done(p.unary(p.concat(p.unary(p.x[0]), p.unary(p.x[1]))))
    q = Program((6, 4))
    q.done(q.softmax(q.x[0]))
    found = with_inlined_members(joined([_over_rows(p), _over_rows(q)]))
    assert [arm.grid for arm in found.arms] == [(6, 8), (6,)]


def test_a_loop_that_pairs_of_members_gave_up_is_in_the_grid_where_all_share_it():
    p = Program((6, 4))
    part = p.unary(p.x[0])
    p.done(p.concat(part, part), part)
    group = _over_rows(p)
    nowhere = Group(group.members, (), {node: (None, None) for node in group.members})
    found = with_inlined_members(nowhere)
    assert (found.grid, found.grid_loop_of, found.inlined) == ((6,), group.grid_loop_of, set())
