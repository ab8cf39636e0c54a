"""What a round of fusion starts from where an earlier one left regions: each is a group with the loops that its members
share, or several groups, where it has independent arms.

The arms are open: each may merge with others, and those of one region are joined again in the end. Where that came to
more dispatches than there were, the round starts with `closed` groups in their place, which stay as they are.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from typing import Protocol, TypeVar

from xdsl.ir import Operation

from fuseline.dispatch.fused_loops import FusedLoops, OnlineReduction, Role
from fuseline.ir.dim import Dim
from fuseline.passes.fusion.graph import FusionGraph
from fuseline.passes.fusion.group import Group
from fuseline.passes.fusion.loop_classes import loop_classes
from fuseline.passes.fusion.merging import joined
from fuseline.passes.fusion.node import Node
from fuseline.passes.fusion.separate_arms import independent_components
from fuseline.passes.fusion.streamed_loops import OnlineReductionNodes


@dataclass(frozen=True, eq=False)
class StartingGroup:
    """The groups that one region is at the start of a round: its arms, or, `closed`, all of it."""

    groups: tuple[Group, ...]
    closed: bool = False

    @property
    def nodes(self) -> frozenset[Node]:
        """The members of the region."""
        return frozenset(node for group in self.groups for node in group.members)

    def shut(self) -> StartingGroup:
        """The same where several arms are one group that nothing merges with."""
        return StartingGroup((joined(self.groups),), closed=True) if len(self.groups) > 1 else self


def starting_group(
    ops: Sequence[Operation], loops: FusedLoops, graph: FusionGraph, streams: Iterable[OnlineReductionNodes]
) -> StartingGroup:
    """The groups of a region whose members were `ops`, with these loops; `streams` are the softmaxes of `graph`, which
    has the ops as nodes (views aside)."""
    nodes = [graph.node_of(op) for op in ops]
    arms = [_arm(nodes, loops, arm, streams) for arm in range(len(loops.grids))]
    groups = [group for arm in arms if arm.members for group in _apart(arm)]
    return StartingGroup(tuple(sorted(groups, key=lambda group: group.members[0].position)))


def _apart(arm: Group) -> Sequence[Group]:
    """The parts that only an argument brings together, or the one that a pass left of them: what they go along is found
    again when they are joined."""
    return independent_components(replace(arm, along=None)) if arm.along is not None else [arm]


def _arm(nodes: Sequence[Node | None], loops: FusedLoops, arm: int, streams: Iterable[OnlineReductionNodes]) -> Group:
    mine = {i: node for i, node in enumerate(nodes) if node is not None and loops.members[i].arm == arm}
    grid_loop_of = {
        node: loops.members[i].grid_loops for i, node in mine.items() if loops.members[i].role is Role.PLACED
    }
    inlined = {node for i, node in mine.items() if loops.members[i].role is Role.INLINED}
    members = sorted(mine.values(), key=lambda node: node.position)
    along = next(((mine[member], operand) for member, operand in loops.along if member in mine), None)
    online = _online(nodes, loops.online, members, streams)
    return Group(members, _grid(loops, arm, grid_loop_of), grid_loop_of, inlined, online=online, along=along)


def _grid(loops: FusedLoops, arm: int, grid_loop_of: dict[Node, tuple[int | None, ...]]) -> tuple[Dim, ...]:
    """The extents in the names that the graph has for sizes."""
    extents = {
        grid: node.loops[loop] for node, at in grid_loop_of.items() for loop, grid in enumerate(at) if grid is not None
    }
    return tuple(extents.get(grid, said if said is not None else 1) for grid, said in enumerate(loops.grids[arm]))


def _online(
    nodes: Sequence[Node | None],
    online: Sequence[OnlineReduction],
    members: Sequence[Node],
    streams: Iterable[OnlineReductionNodes],
) -> tuple[OnlineReductionNodes, ...]:
    """The softmaxes that are met block by block, as the graph knows them."""
    products = {nodes[one.product] for one in online}
    inside = frozenset(members)
    return tuple(stream for stream in streams if stream.product in products and inside.issuperset(stream.nodes))


def in_step(start: StartingGroup) -> StartingGroup:
    """The same where members have loops of the grid that are evaluated where they are read and run over all its
    loops: of a region whose loops were derived, which speaks of what is kept only."""
    return StartingGroup(tuple(_in_step(group) for group in start.groups))


def _in_step(group: Group) -> Group:
    classes = loop_classes(group.members)
    at = {classes.of((n, loop)): g for n, loops in group.grid_loop_of.items() for loop, g in enumerate(loops)}
    grid = {class_: g for class_, g in at.items() if g is not None and group.grid[g] != 1}
    if not classes.broken.isdisjoint(grid) or len(grid) != sum(extent != 1 for extent in group.grid):
        return group
    grid_loop_of = {
        node: tuple(grid.get(classes.of((node, loop))) for loop in range(len(node.loops)))
        for node in group.inlined
        if not node.moves
    }
    grid_loop_of = {node: loops for node, loops in grid_loop_of.items() if set(grid.values()) <= set(loops)}
    return replace(group, grid_loop_of=group.grid_loop_of | grid_loop_of, inlined=group.inlined - grid_loop_of.keys())


def with_single_nodes(graph: FusionGraph, starting: Iterable[StartingGroup]) -> list[Group]:
    """All groups at the start of a round, each before those that read from it: what no region holds is alone."""
    given = [group for start in starting for group in start.groups]
    taken = {node for group in given for node in group.members}
    alone = [Group.of(node) for node in graph.nodes if node not in taken]
    return sorted([*given, *alone], key=lambda group: group.members[0].position)


class _Groups(Protocol):
    """A partition."""

    groups: list[Group]


P = TypeVar("P", bound=_Groups)


def no_more_groups(
    run: Callable[[Sequence[StartingGroup]], P], graph: FusionGraph, start: Sequence[StartingGroup]
) -> P:
    """The partition that `run` makes of a start: with the arms of regions open, or closed where it came to more groups
    than there were; or of no start at all, where that comes to fewer groups and keeps each region together."""
    found = run(start)
    before = len(graph.nodes) - sum(len(region.nodes) - 1 for region in start)
    if len(found.groups) > before:
        found = run([region.shut() for region in start])
    afresh = run(()) if start else found
    return afresh if len(afresh.groups) < len(found.groups) and _keeps(afresh.groups, start) else found


def _keeps(groups: Sequence[Group], start: Iterable[StartingGroup]) -> bool:
    """Whether what was one dispatch is in one dispatch."""
    home = {node: i for i, group in enumerate(groups) for node in group.members}
    return all(len({home[node] for node in region.nodes}) == 1 for region in start)
