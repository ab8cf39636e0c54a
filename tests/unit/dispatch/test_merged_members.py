"""What is said of the loops of members that became one op."""

from __future__ import annotations

from xdsl.dialects import arith
from xdsl.ir import OpResult, SSAValue

from fuseline.analysis.softmax_roles import SoftmaxRoles
from fuseline.analysis.structured import is_generic
from fuseline.dispatch.fused_loops import FusedLoops, MemberLoops, OnlineReduction, Role
from fuseline.dispatch.member_classes import with_classes
from fuseline.dispatch.merged_members import MergedMembers
from fuseline.dispatch.view import DispatchView
from fuseline.passes.dispatch.merged_body import Generic, merged
from tests.graphs.program import Program


def _op(value: SSAValue) -> Generic:
    assert isinstance(value, OpResult) and is_generic(value.op)
    return value.op


def _merged(view: DispatchView, producer: SSAValue, consumer: SSAValue, loops: tuple[int, ...]) -> MergedMembers:
    members = MergedMembers(view.entry.body.block)
    first, second = _op(producer), _op(consumer)
    new = merged(first, second, loops)
    members.merged(first, second, new, loops)
    return members


def test_an_op_has_the_loops_and_the_role_of_the_last_that_it_stands_for():
    p = Program((4, 6))
    a = p.unary(p.x[0])
    b = p.unary(a, arith.NegfOp, permutation=(1, 0))
    view = p.dispatch(p.reduce(b))
    said = FusedLoops(((6,),), (MemberLoops((), Role.INLINED), MemberLoops((0, None)), MemberLoops((0, None))))
    said = with_classes(said, view.entry.body.block, view.shapes)
    members = _merged(view, a, b, (1, 0))
    assert members.groups == [[0, 1], [2]]
    found = members.loops(said, view.shapes, "d")
    assert found == FusedLoops(((6,),), (MemberLoops((0, None)),) * 2, classes=((0, 1), (0, 1)))
    assert members.loops(FusedLoops(said.grids, said.members), view.shapes, "d").classes == ()


def test_what_goes_along_an_argument_still_does():
    p = Program((70, 5), (5,))
    a = p.unary(p.bias(p.x[0], p.x[1], 1))
    b = p.unary(a, arith.NegfOp)
    view = p.dispatch(b, p.reduce(p.x[0]))
    said = FusedLoops(((70,),), (MemberLoops((0, None)),) * 4, along=((0, 0), (3, 0)))
    members = _merged(view, a, b, (0, 1))
    assert members.groups == [[0], [1, 2], [3]]
    assert members.loops(said, view.shapes, "d").along == ((0, 0), (2, 0))
    new = _op(members.body.last_op.operands[0])  # pyright: ignore[reportOptionalMemberAccess]
    again = MergedMembers(members.body)
    first = _op(new.inputs[0])
    again.merged(first, new, merged(first, new, (0, 1)), (0, 1))
    said = FusedLoops(((70,),), (MemberLoops((0, None)),) * 3, along=((0, 0), (2, 0)))
    assert again.loops(said, view.shapes, "d").along == ((0, 0), (1, 0))


def test_a_loop_that_is_met_block_by_block_is_that_of_the_op():
    """Members that turn what they read have the loop at another place than what reads them."""
    p = Program((4, 6), (6, 3))
    a = p.unary(p.x[0])
    b = p.unary(a, arith.NegfOp, permutation=(1, 0))
    y = p.softmax(b)
    view = p.dispatch(y)
    count = len(MergedMembers(view.entry.body.block).before)
    placed = tuple(MemberLoops((None,)) for _ in range(count))
    online = OnlineReduction(((0, 0), (1, 1), (2, 1)), SoftmaxRoles(2, (3,), 4, 5), 8)
    members = _merged(view, a, b, (1, 0))
    found = members.loops(FusedLoops(((),), placed, (online,)), view.shapes, "d").online
    assert found == (OnlineReduction(((0, 1), (1, 1)), SoftmaxRoles(1, (2,), 3, 4), 8),)
