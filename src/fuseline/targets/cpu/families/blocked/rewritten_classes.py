"""The loop classes of a dispatch after some of its members were put in place of others."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import replace

from xdsl.ir import Operation, SSAValue

from fuseline.dispatch.body_classes import BodyClasses
from fuseline.dispatch.fused_loops import FusedLoops, MemberLoops, OnlineReduction, member_loops, members_of
from fuseline.dispatch.member_classes import with_classes
from fuseline.dispatch.view import DispatchView


def rewritten_classes(
    loops: FusedLoops,
    online: OnlineReduction,
    old: Sequence[Operation],
    view: DispatchView,
    carried: Collection[SSAValue],
) -> BodyClasses:
    """The classes of `view`, whose members were `old` with `loops`. `online`: of these the reduction that it was
    rewritten for; `carried`: values that go from one of its blocks to the next.

    Raises FuselineError (E0901) where a grid loop of the old is none of the new.
    """
    body = view.entry.body.block
    new = _rewritten(loops, online, old, view)
    return BodyClasses(with_classes(new, body, view.shapes, view.entry.sym_name.data, carried), body, view.shapes)


def _rewritten(loops: FusedLoops, online: OnlineReduction, old: Sequence[Operation], view: DispatchView) -> FusedLoops:
    """The loops of a dispatch whose members were `old`, with what was put in place of some: what is new is placed, and
    its classes tell which of its loops are in the grid."""
    members = members_of(view.entry.body.block)
    known = dict(zip(old, loops.members, strict=True))
    numbers = {i: members.index(op) for i, op in enumerate(old) if op in members}
    met = replace(online, loops=tuple((member, loop) for member, loop in online.loops if member in numbers))
    return FusedLoops(
        loops.grids,
        tuple(known.get(op) or MemberLoops((None,) * len(member_loops(op, view.shapes))) for op in members),
        (met.renumbered(numbers),),
        tuple((numbers[member], operand) for member, operand in loops.along if member in numbers),
    )
