"""What a group consists of and where it touches others, in sets that grow in place: a merge moves what the smaller
group has into the larger one's, so that all merges together move each node a logarithmic number of times."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from collections.abc import Set as AbstractSet
from dataclasses import dataclass, field
from typing import TypeAlias

from xdsl.ir import SSAValue

from fuseline.passes.fusion.node import Node, Read

Entry: TypeAlias = tuple[int, int, Read]
"""A read from outside, behind what orders it: the position of its reader, and its number among the reader's reads."""

Renumbering: TypeAlias = "Mapping[int | None, int]"
"""The new number of each grid loop that stays one."""


@dataclass(eq=False)
class GroupBody:
    """`grid_loop_of` has the grid loop of each loop of the nodes that are not `inlined`.

    `entering`: the reads of each producer outside, the first of them first. `inputs`: what is read from outside, fills
    aside; `results`: what is read there or returned; both by identity, for the hash of a value is that in Python.
    `leaving`: the nodes with such results; `sized`: those that take sizes from others, or give them.
    """

    nodes: set[Node]
    grid_loop_of: dict[Node, tuple[int | None, ...]]
    inlined: set[Node]
    entering: dict[Node, list[Entry]] = field(default_factory=dict[Node, "list[Entry]"])
    inputs: dict[int, SSAValue] = field(default_factory=dict[int, SSAValue])
    results: dict[int, SSAValue] = field(default_factory=dict[int, SSAValue])
    leaving: set[Node] = field(default_factory=set[Node])
    sized: list[Node] = field(default_factory=list[Node])

    @classmethod
    def of(
        cls, members: Sequence[Node], grid_loop_of: Mapping[Node, tuple[int | None, ...]], inlined: Iterable[Node]
    ) -> GroupBody:
        """The body of `members`, which are in program order."""
        body = cls(set(members), dict(grid_loop_of), set(inlined))
        for node in members:
            body._enter(node)
            body._leave(node)
        body.sized = [node for node in members if node.sized_by or node.sizes]
        return body

    def _enter(self, node: Node) -> None:
        for number, read in enumerate(node.reads):
            if read.producer in self.nodes:
                continue
            if not read.filled:
                self.inputs[id(read.value)] = read.value
            if read.producer is not None:
                self.entering.setdefault(read.producer, []).append((node.position, number, read))

    def _leave(self, node: Node) -> None:
        left = [read.value for read in node.readers if read.consumer not in self.nodes]
        if node.escapes:
            left += node.op.results
        if left:
            self.leaving.add(node)
            self.results.update([(id(value), value) for value in left])

    def sources_in(self, other: GroupBody) -> list[Node]:
        """The nodes of `other` that this one reads from."""
        if len(self.entering) <= len(other.leaving):
            return [node for node in self.entering if node in other.nodes]
        return [node for node in other.leaving if node in self.entering]

    def reads_from(self, other: GroupBody) -> list[Read]:
        """Every read of a value of `other`, in program order."""
        entries = [entry for node in self.sources_in(other) for entry in self.entering[node]]
        if len(entries) > 1:
            entries.sort()
        return [read for _, _, read in entries]

    def producers(self) -> Iterator[Node]:
        """The nodes outside that are read, or that sizes are taken from, in the order of the first that does."""
        if len(self.entering) > 1:
            yield from sorted(self.entering, key=lambda node: self.entering[node][0])
        else:
            yield from self.entering
        for node in _in_order(self.sized):
            yield from node.sized_by

    def consumers(self) -> Iterator[Node]:
        """The nodes that read results, or take sizes, some of them nodes of this body."""
        for node in _in_order(self.leaving):
            for read in node.readers:
                yield read.consumer
        for node in _in_order(self.sized):
            yield from node.sizes

    # growing ----------------------------------------------------------------------------------------------------------

    def renumber(self, numbers: Renumbering) -> None:
        """Give the grid loops other numbers; those without one become inner loops."""
        for node, loops in self.grid_loop_of.items():
            self.grid_loop_of[node] = tuple(map(numbers.get, loops))

    def inline(self) -> None:
        """All nodes are evaluated where they are read."""
        self.inlined.update(self.grid_loop_of)
        self.grid_loop_of.clear()

    def detach(self, producer: GroupBody, kept_inside: Iterable[int]) -> list[Node]:
        """Forget the reads from `producer`, which no longer come from outside, and those of its results that are
        `kept_inside`; the nodes that were read."""
        sources = self.sources_in(producer)
        for node in sources:
            for _, _, read in self.entering.pop(node):
                self.inputs.pop(id(read.value), None)
        for value in kept_inside:
            del producer.results[value]
        return sources

    def absorb(self, other: GroupBody) -> None:
        """Take in all of another body, which is not to be used any more."""
        self.nodes |= other.nodes
        self.grid_loop_of.update(other.grid_loop_of)
        self.inlined |= other.inlined
        self.inputs.update(other.inputs)
        self.results.update(other.results)
        self.leaving |= other.leaving
        self.sized += other.sized
        for node, entries in other.entering.items():
            known = self.entering.get(node)
            self.entering[node] = entries if known is None else _together(known, entries)

    def settle(self, read: Iterable[Node]) -> None:
        """Of the nodes that became `read` inside, those that nobody outside needs do not leave any more."""
        for node in read:
            if not node.escapes and all([reader.consumer in self.nodes for reader in node.readers]):
                self.leaving.discard(node)


def _in_order(nodes: Collection[Node]) -> Collection[Node]:
    return sorted(nodes, key=lambda node: node.position) if len(nodes) > 1 else nodes


def _together(one: list[Entry], other: list[Entry]) -> list[Entry]:
    """The entries of both, the first of them first; the longer list grows."""
    long, short = (one, other) if len(one) >= len(other) else (other, one)
    if short[0] < long[0]:
        long[0], short[0] = short[0], long[0]
    long += short
    return long


def is_stored(read: Read, inside: Sequence[AbstractSet[Node]]) -> bool:
    """Whether the value that is read is stored whatever else is `inside`: the caller gets it, or a node outside reads
    it."""
    node = read.producer
    assert node is not None
    if node.escapes:
        return True
    for other in node.readers:  # which may be thousands, the first of them outside
        if other.value is read.value and not any([other.consumer in members for members in inside]):
            return True
    return False
