"""What a group says about the loops of its dispatch, as the value that the region carries
(`dispatch/fused_loops.py`)."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Sequence

from xdsl.ir import Operation, OpResult

from fuseline.dispatch.fused_loops import Extent, FusedLoops, MemberLoops, OnlineReduction, Role
from fuseline.ir.dim import Dim, symbols
from fuseline.passes.fusion.group import Group
from fuseline.passes.fusion.node import Node
from fuseline.passes.fusion.streamed_loops import OnlineReductionNodes, streamed_loops


def loops_of_group(
    group: Group, ops: Sequence[Operation], unnamed: Collection[str], streams: Sequence[OnlineReductionNodes] = ()
) -> FusedLoops:
    """The loops of a finished group whose members, and copies of views between them, are `ops`. `unnamed`: sizes that
    have a name nowhere else."""
    arms = group.arms or (group,)
    homes = {id(node.op): (number, node) for number, arm in enumerate(arms) for node in arm.members}
    members = _members(arms, ops, homes)
    grids = tuple(tuple(_named(extent, unnamed) for extent in arm.grid) for arm in arms)
    positions = {homes[id(op)][1]: i for i, op in enumerate(ops) if id(op) in homes}
    online = tuple(one for arm in arms for one in _online(arm, positions, streams or arm.online))
    along = tuple((positions[arm.along[0]], arm.along[1]) for arm in arms if arm.along is not None)
    return FusedLoops(grids, members, online, along).canonical()


def _named(extent: Dim, unnamed: Collection[str]) -> Extent:
    return extent if isinstance(extent, int) or not any(item.name in unnamed for item in symbols(extent)) else None


def _members(
    arms: Sequence[Group], ops: Sequence[Operation], homes: dict[int, tuple[int, Node]]
) -> tuple[MemberLoops, ...]:
    return tuple(_member(arms, op, homes) for op in ops)


def _member(arms: Sequence[Group], op: Operation, homes: dict[int, tuple[int, Node]]) -> MemberLoops:
    home = homes.get(id(op))
    if home is None:
        return MemberLoops((), Role.VIEW, _arm_of_view(op, homes))
    number, node = home
    if node in arms[number].inlined:
        return MemberLoops((), Role.INLINED, number)
    return MemberLoops(arms[number].grid_loop_of[node], arm=number)


def _arm_of_view(op: Operation, homes: dict[int, tuple[int, Node]]) -> int:
    """The copy of a view is in the arm that makes what it is a view of."""
    while id(op) not in homes:
        source = op.operands[0]
        assert isinstance(source, OpResult)
        op = source.op
    return homes[id(op)][0]


def _online(
    arm: Group, positions: dict[Node, int], streams: Iterable[OnlineReductionNodes]
) -> Iterator[OnlineReduction]:
    """The loops that placed members may be met block by block along, of every softmax that an arm holds, whether it has
    to or not; inlined ones have no loops of their own."""
    for stream in streams:
        if arm.member_set >= set(stream.nodes):
            found = streamed_loops(
                arm.members, arm.grid_loop_of.keys(), [*arm.results(), *arm.stored_rows.added], (stream,)
            )
            loops = sorted((positions[node], loop) for node, loop in found if node in arm.grid_loop_of)
            if loops and stream.product in arm.grid_loop_of:
                yield OnlineReduction(tuple(loops), stream.roles.mapped(positions.__getitem__), stream.points)
