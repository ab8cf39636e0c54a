"""The components of a finished group that only concats bring together: each is an arm, and writes its slice of the
result.

    %a = exp(%x)      an arm: writes columns 0..
    %b = abs(%y)      an arm: writes the columns behind
    %c = concat(%a, %b), which nobody inside reads: an arm of its own, for what is copied

The groups that `concat-slices` joined are arms already; here are those that took a concat in on the way.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import replace

from xdsl.ir import SSAValue

from fuseline.analysis.disjoint_sets import DisjointSets
from fuseline.analysis.structured import Kind
from fuseline.dispatch.arms import MOST_PARTS
from fuseline.passes.fusion.group import Group
from fuseline.passes.fusion.inlining import over
from fuseline.passes.fusion.loop_classes import loop_classes
from fuseline.passes.fusion.merging import joined
from fuseline.passes.fusion.node import Node


def with_separate_arms(group: Group) -> Group:
    """The group with an arm for each component that is left without its seams; as it is where that is one."""
    seams = seams_of(group)
    components = _components(group, seams) if seams else []
    if len(components) + len(copied(group, seams)) < 2:
        return group
    arms = [_arm(_home(group, component), component, seams) for component in components]
    return joined([*arms, *(Group.of(seam) for seam in group.members if seam in seams)])


def independent_components(group: Group) -> list[Group]:
    """The components of a group without arms that share no value, each over all loops that its members share."""
    components = _components(group, frozenset())
    return [_arm(group, component, frozenset()) for component in components] if len(components) > 1 else [group]


def seams_of(group: Group) -> frozenset[Node]:
    """The concats of a group that nobody inside reads but other such concats: they only say where values lie."""
    found = set[Node]()
    for node in reversed(group.members) if any(node.kind is Kind.CONCAT for node in group.members) else ():
        inside = [read.consumer for read in node.readers if read.consumer in group.member_set]
        if node.kind is Kind.CONCAT and len(node.op.operands) <= MOST_PARTS:
            if all(reader in found and node.op.results[0] in reader.op.operands for reader in inside):
                found.add(node)
    return frozenset(found)


def copied(group: Group, seams: Collection[Node]) -> list[SSAValue]:
    """What the seams of a group copy, for nobody inside makes it."""
    return list(
        dict.fromkeys(
            read.value
            for seam in group.members
            if seam in seams
            for read in seam.reads
            if read.producer not in group.member_set
        )
    )


def _components(group: Group, seams: frozenset[Node]) -> list[list[Node]]:
    """The members that hang together through values, seams aside, in program order."""
    links = DisjointSets[Node]()
    for node in group.members:
        for read in node.reads if node not in seams else ():
            if read.producer is not None and read.producer in group.member_set:
                links.join(read.producer, node)
    found: dict[Node, list[Node]] = {}
    for node in group.members:
        if node not in seams:
            found.setdefault(links.of(node), []).append(node)
    return list(found.values())


def _home(group: Group, component: Sequence[Node]) -> Group:
    return next((arm for arm in group.arms if component[0] in arm.member_set), group)


def _arm(home: Group, component: list[Node], seams: frozenset[Node]) -> Group:
    """A component of `home` over all loops that its members share; what it writes into a concat is made somewhere
    now."""
    if len(component) == len(home.members):
        return home
    inside = frozenset(component)
    written = {node for node in component if any(read.consumer in seams for read in node.readers)}
    inlined = {node for node in component if node in home.inlined and node not in written}
    online = tuple(stream for stream in home.online if inside.issuperset(stream.nodes))
    placed = [node for node in component if node not in inlined]
    classes = loop_classes(component)
    whole = replace(home.plain, members=component, inlined=inlined, arms=(), online=online)
    return over(whole, placed, classes.shared(placed), classes)
