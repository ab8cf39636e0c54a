"""Members that cost a finished group loops of its grid, and can be evaluated where they are read instead.

    %m = (%ids != 0)  (c)       %y = %rows[r] & %m[%indices[c]]  (r, c)
                                with %m in scratch: no grid; with %m read in place: (r, c)

A workgroup makes each value that it keeps, so that a member without a loop of the others takes it from the grid of all.
What depends on nothing that is computed inside, reduces nothing and does not leave can be inlined; that is done only
where the grid gains by it.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace

from fuseline.analysis.loop_classes import LoopClasses
from fuseline.passes.fusion.group import Group
from fuseline.passes.fusion.loop_classes import Loop, loop_classes
from fuseline.passes.fusion.node import Node


def with_inlined_members(group: Group) -> Group:
    """The group, or the same members over a larger grid (of each arm where it has several): over all loops that they
    share, merges of pairs aside, and those that they share without the members that can be inlined."""
    if group.arms:
        return replace(group, arms=tuple(with_inlined_members(arm) for arm in group.arms))
    found = _wider(group.plain, frozenset())
    return _wider(found, _free_members(found))


def _wider(group: Group, free: frozenset[Node]) -> Group:
    """The group over the loops that all but `free` members share, where that are more than it has."""
    kept = [node for node in group.members if node not in group.inlined and node not in free]
    if _loops_of_extent(group) >= min((_moving(node) for node in kept), default=0):
        return group
    classes = loop_classes([node for node in group.members if node not in free])
    shared = classes.shared(kept)
    return _over(group, free, shared, classes) if len(shared) > _loops_of_extent(group) else group


def _free_members(group: Group) -> frozenset[Node]:
    """The placed members that may be evaluated anywhere: all they read of the group is such members, or read in place
    already."""
    results = set(group.results())
    found = set[Node]()
    for node in group.members:
        made = [read.producer for read in node.reads if read.producer in group.member_set]
        leaves = any(result in results for result in node.op.results)
        if (
            not node.reduces
            and node.fusable
            and not leaves
            and all(producer in found or producer in group.inlined for producer in made)
        ):
            found.add(node)
    return frozenset(found - group.inlined)


def _loops_of_extent(group: Group) -> int:
    return sum(extent != 1 for extent in group.grid)


def _moving(node: Node) -> int:
    return sum(node.loops[loop] != 1 for loop in node.parallel)


def over(group: Group, placed: Iterable[Node], shared: list[Loop], classes: LoopClasses[Node]) -> Group:
    """The group over the loops `shared`, which all of `placed` have."""
    number = {class_: i for i, class_ in enumerate(shared)}
    grid_loop_of = {
        node: tuple(number.get(classes.of((node, loop))) for loop in range(len(node.loops))) for node in placed
    }
    return replace(group, grid=tuple(class_[0].loops[class_[1]] for class_ in shared), grid_loop_of=grid_loop_of)


def _over(group: Group, free: frozenset[Node], shared: list[Loop], classes: LoopClasses[Node]) -> Group:
    """The group over the loops `shared`: free members that have them all, in step, keep their grid loops."""
    found = over(group, [node for node in group.grid_loop_of if node not in free], shared, classes)
    grid_loop_of = found.grid_loop_of
    everything = loop_classes(group.members)
    wider = {everything.of(loop): i for i, loop in enumerate(shared)}
    for node in group.members if everything.broken.isdisjoint(wider) else ():
        loops = tuple(wider.get(everything.of((node, loop))) for loop in range(len(node.loops)))
        if node in free and sorted(loop for loop in loops if loop is not None) == list(range(len(shared))):
            grid_loop_of[node] = loops
    return replace(found, inlined=group.inlined | {node for node in free if node not in grid_loop_of})
