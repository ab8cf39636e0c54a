"""Groups of the fusion graph as a target sees them, and its answer as a refusal, a reason or an error."""

from __future__ import annotations

from collections.abc import Sequence

import pytest

from fuseline.analysis.shapes import ShapeAnalysis
from fuseline.analysis.structured import Kind
from fuseline.dispatch.candidate import DispatchCandidate
from fuseline.dispatch.fused_loops import Extent, FusedLoops, MemberLoops, Role
from fuseline.errors import FuselineError
from fuseline.ir.dim import symbol
from fuseline.passes.dispatch.legality import GroupCandidate, TargetVeto
from fuseline.passes.dispatch.region_loops import loops_of_group
from fuseline.passes.fusion.group import Group
from fuseline.passes.fusion.merging import align, inline_into, joined, merged
from fuseline.targets.target import Refusal
from tests.unit.passes.fusion.programs import Program
from tests.unit.passes.fusion.test_rule_answers import graph_of

SHAPES = ShapeAnalysis()


def chain() -> tuple[Program, list[Group]]:
    """A product and two exponentials of it, one after the other."""
    p = Program((6, 3), (3, 8))
    product = p.matmul(p.x[0], p.x[1])
    first = p.unary(product)
    p.done(p.unary(first))
    return p, graph_of(p)[1]


def _rows(size: int | str = 6) -> list[Group]:
    """exp, the sums of its rows, and what both give."""
    p = Program((size, 5))
    e = p.unary(p.x[0])
    p.done(p.by_row(e, p.reduce(e), lambda b: b.args[1]))
    return graph_of(p)[1]


def _together(groups: Sequence[Group]) -> Group:
    found = groups[0]
    for group in groups[1:]:
        found = merged(found, group, align(found, group))
    return found


def test_one_group_is_a_dispatch_of_one_part():
    p, groups = chain()
    whole = GroupCandidate((_together(groups),), SHAPES)
    assert [(m.kind, m.reduces, m.inlined) for m in whole.members] == [
        (Kind.CONTRACTION, True, False),
        (Kind.ELEMENTWISE, False, False),
        (Kind.ELEMENTWISE, False, False),
    ]
    assert list(whole.operands) == list(p.x) and whole.has_root and list(whole.arms) == [whole]
    assert list(whole.results) == [groups[-1].root.op.results[0]]
    assert whole.loops == FusedLoops(((6, 8),), (MemberLoops((0, 1, None)), MemberLoops((0, 1)), MemberLoops((0, 1))))
    assert whole.scratch_bytes == 0
    assert not GroupCandidate((groups[1],), SHAPES).has_root
    assert whole.operations > GroupCandidate((groups[0],), SHAPES).operations > 0


def test_a_member_that_is_read_in_place_has_no_loops():
    _, groups = chain()
    found = GroupCandidate((inline_into(groups[1], groups[2]),), SHAPES)
    assert [member.inlined for member in found.members] == [True, False]
    assert found.loops.members == (MemberLoops((), Role.INLINED), MemberLoops((0, 1)))


def test_several_groups_are_arms_with_loops_of_their_own():
    p = Program((6, 3), (3, 8), (3, 4))
    p.done(p.matmul(p.x[0], p.x[1]), p.matmul(p.x[0], p.x[2]))
    groups = graph_of(p)[1]
    both = GroupCandidate(tuple(groups), SHAPES)
    assert [len(arm.members) for arm in both.arms] == [1, 1] and len(both.members) == 2
    assert list(both.operands) == list(p.x)  # what both read is read once
    assert both.loops.grids == ((6, 8), (6, 4)) and [member.arm for member in both.loops.members] == [0, 1]
    assert both.operations == sum(arm.operations for arm in both.arms)  # pyright: ignore[reportUnknownMemberType]


@pytest.mark.parametrize(
    ("size", "unnamed", "extent"),
    [(6, ["r"], 6), ("r", [], symbol("r")), ("r", ["n"], symbol("r")), ("r", ["n", "r"], None)],
)
def test_an_extent_without_a_name_is_left_open(size: int | str, unnamed: list[str], extent: Extent):
    whole = _together(_rows(size))
    loops = loops_of_group(whole, [node.op for node in whole.members], unnamed)
    assert loops == FusedLoops(((extent,),), (MemberLoops((0, None)),) * 3)


def test_a_copy_of_a_view_is_in_the_arm_that_makes_what_it_is_a_view_of():
    """The concat that reads it is an arm of its own, for which the other writes its part."""
    p = Program((6, 3), (3, 8), (4, 8))
    product = p.matmul(p.x[0], p.x[1])
    part = p.slice(product, [2, 0], [4, 8])
    p.done(p.concat(part, p.unary(p.x[2]), axis=0))
    groups = [group for group in graph_of(p)[1] if not group.moves or group.root.op is not part.owner]
    ops = [group.root.op for group in groups]
    loops = loops_of_group(joined(groups), [ops[0], part.owner, *ops[1:]], ())  # pyright: ignore[reportArgumentType]
    assert [(member.role, member.arm) for member in loops.members] == [
        (Role.PLACED, 0),
        (Role.VIEW, 0),
        (Role.PLACED, 1),
        (Role.PLACED, 2),
    ]


def _at_most(most: int) -> TargetVeto:
    def legal(candidate: DispatchCandidate) -> Refusal | None:
        count = len(candidate.members)
        return Refusal("too-many", f"{count} of {most}", {"members": float(count)}) if count > most else None

    return TargetVeto(legal, SHAPES)


def test_a_veto_names_the_last_root_and_keeps_the_numbers():
    _, groups = chain()
    assert _at_most(1)(groups[:1]) is None and _at_most(1).refusal(groups[:1]) is None
    found = _at_most(1)(groups)
    assert found is not None
    assert (found.code, found.detail, found.at) == ("target", "too-many: 3 of 1", groups[-1].root.name)
    assert found.numbers == {"members": 3.0}
    assert _at_most(1).refusal(groups) == Refusal("too-many", "3 of 1", {"members": 3.0})


def test_arms_of_a_group_are_shown_as_arms():
    p = Program((6, 3), (3, 8), (3, 4))
    p.done(p.matmul(p.x[0], p.x[1]), p.matmul(p.x[0], p.x[2]))
    seen: list[int] = []
    TargetVeto(lambda candidate: seen.append(len(candidate.arms)), SHAPES)([joined(graph_of(p)[1])])
    assert seen == [2]


def test_a_group_that_must_stand_and_may_not_is_an_error():
    _, groups = chain()
    _at_most(1).require(groups)
    whole = _together(groups)
    with pytest.raises(FuselineError, match=rf"3 ops around {whole.root.name}: too-many: 3 of 1") as caught:
        _at_most(1).require([groups[0], whole])
    assert (caught.value.code, caught.value.node) == ("E0307", "n1, n2, n3")
    with pytest.raises(FuselineError, match=rf"\]: {groups[0].root.name}: too-many: 1 of 0") as alone:
        _at_most(0).require(groups[:1])
    assert alone.value.node == "n1"
