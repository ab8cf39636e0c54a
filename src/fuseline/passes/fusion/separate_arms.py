"""The parts of a finished group that only concats bring together: each is an arm, and writes its slice of the result.

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
    """The group with an arm for each part that hangs together without its seams; as it is where that is one part."""
    seams = seams_of(group)
    parts = _parts(group, seams) if seams else []
    if len(parts) + len(copied(group, seams)) < 2:
        return group
    arms = [_arm(_home(group, part), part, seams) for part in parts]
    return joined([*arms, *(Group.of(seam) for seam in group.members if seam in seams)])


def independent_parts(group: Group) -> list[Group]:
    """The parts of a group without arms that share no value, each over all loops that its members share."""
    parts = _parts(group, frozenset())
    return [_arm(group, part, frozenset()) for part in parts] if len(parts) > 1 else [group]


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


def _parts(group: Group, seams: frozenset[Node]) -> list[list[Node]]:
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


def _home(group: Group, part: Sequence[Node]) -> Group:
    return next((arm for arm in group.arms if part[0] in arm.member_set), group)


def _arm(home: Group, part: list[Node], seams: frozenset[Node]) -> Group:
    """A part of `home` over all loops that its members share; what it writes into a concat is made somewhere now."""
    if len(part) == len(home.members):
        return home
    inside = frozenset(part)
    written = {node for node in part if any(read.consumer in seams for read in node.readers)}
    inlined = {node for node in part if node in home.inlined and node not in written}
    online = tuple(stream for stream in home.online if inside.issuperset(stream.nodes))
    placed = [node for node in part if node not in inlined]
    classes = loop_classes(part)
    whole = replace(home.plain, members=part, inlined=inlined, arms=(), online=online)
    return over(whole, placed, classes.shared(placed), classes)
