"""What a group says about the loops of its dispatch, as the value that the region carries
(`dispatch/fused_loops.py`)."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Sequence

from xdsl.ir import Operation

from fuseline.dispatch.fused_loops import Extent, FusedLoops, MemberLoops, OnlineReduction, Role
from fuseline.ir.dim import Dim, symbols
from fuseline.passes.fusion.group import Group
from fuseline.passes.fusion.inlining import with_inlined_members
from fuseline.passes.fusion.node import Node
from fuseline.passes.fusion.streamed_loops import OnlineReductionNodes, streamed_loops


def loops_of_group(
    group: Group, ops: Sequence[Operation], unnamed: Collection[str], streams: Sequence[OnlineReductionNodes] = ()
) -> FusedLoops:
    """The loops of a group whose members, and copies of views between them, are `ops`. `unnamed`: sizes that have a
    name nowhere else."""
    group = with_inlined_members(group)
    arms = group.arms or (group,)
    homes = {id(node.op): (number, node) for number, arm in enumerate(arms) for node in arm.members}
    members = _members(arms, ops, homes)
    grids = tuple(tuple(_named(extent, unnamed) for extent in arm.grid) for arm in arms)
    positions = {homes[id(op)][1]: i for i, op in enumerate(ops) if id(op) in homes}
    online = tuple(one for arm in arms for one in _online(arm, positions, streams or arm.online))
    return FusedLoops(grids, members, online).canonical()


def _named(extent: Dim, unnamed: Collection[str]) -> Extent:
    return extent if isinstance(extent, int) or not any(item.name in unnamed for item in symbols(extent)) else None


def _members(
    arms: Sequence[Group], ops: Sequence[Operation], homes: dict[int, tuple[int, Node]]
) -> tuple[MemberLoops, ...]:
    """From the last to the first: the copy of a view stands before the member that reads it, and is in the same arm."""
    found: list[MemberLoops] = []
    number = 0
    for op in reversed(ops):
        home = homes.get(id(op))
        if home is None:
            found.append(MemberLoops((), Role.VIEW, number))
            continue
        number, node = home
        inlined = node in arms[number].inlined
        found.append(
            MemberLoops((), Role.INLINED, number)
            if inlined
            else MemberLoops(arms[number].grid_loop_of[node], arm=number)
        )
    return tuple(reversed(found))


def _online(
    arm: Group, positions: dict[Node, int], streams: Iterable[OnlineReductionNodes]
) -> Iterator[OnlineReduction]:
    """The loops that placed members may be met block by block along, of every softmax that an arm holds, whether it has
    to or not; inlined ones have no loops of their own."""
    for stream in streams:
        if arm.member_set.issuperset(stream.nodes):
            found = streamed_loops(arm.members, arm.grid_loop_of.keys(), arm.results(), (stream,))
            loops = sorted((positions[node], loop) for node, loop in found if node in arm.grid_loop_of)
            if loops and stream.product in arm.grid_loop_of:
                yield OnlineReduction(tuple(loops), positions[stream.product], stream.points)
