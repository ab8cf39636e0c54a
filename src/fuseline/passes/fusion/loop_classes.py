"""Which loops of several nodes are one loop: joined where one node reads, plainly, what another writes along it.

The classes of a whole group at once, where `group.align` compares two groups loop by loop: for merges of more than two.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import TypeAlias

from xdsl.ir.affine import AffineDimExpr

from fuseline.passes.fusion.node import Node, Read

Loop: TypeAlias = tuple[Node, int]


class LoopClasses:
    """The classes of the loops of `members`; `alike` are loops that are known to be one. A loop of extent 1 belongs to
    a class of its own."""

    def __init__(self, members: Iterable[Node], alike: Sequence[Loop] = ()) -> None:
        self.members = tuple(members)
        self._inside = set(self.members)
        self._parent: dict[Loop, Loop] = {}
        for written, read in self._steps():
            if read is not None:
                self._parent[self.of(written)] = self.of(read)
        for loop in alike[1:]:
            self._parent[self.of(loop)] = self.of(alike[0])
        self.broken = frozenset(self._broken())

    def of(self, loop: Loop) -> Loop:
        """The representative of a loop's class."""
        while (above := self._parent.get(loop, loop)) != loop:
            loop = above
        return loop

    def has(self, node: Node, class_: Loop) -> list[int]:
        """The loops of a node that are in a class."""
        return [loop for loop in range(len(node.loops)) if self.of((node, loop)) == class_]

    def shared(self, placed: Sequence[Node]) -> list[Loop]:
        """The classes that every one of `placed` has once, as a parallel loop, in the order of the last one's loops,
        units aside."""
        order = [self.of((placed[-1], loop)) for loop in placed[-1].parallel if placed[-1].loops[loop] != 1]
        return [
            class_
            for class_ in order
            if class_ not in self.broken and all(self._steps_along(node, class_) for node in placed)
        ]

    def _steps_along(self, node: Node, class_: Loop) -> bool:
        loops = self.has(node, class_)
        return len(loops) == 1 and node.iterators[loops[0]] == "parallel"

    def _reads(self) -> Iterator[tuple[Node, Read]]:
        for node in self.members:
            yield from ((read.producer, read) for read in node.reads if read.producer in self._inside)

    def _steps(self) -> Iterator[tuple[Loop, Loop | None]]:
        """Every loop that writes a dimension inside, with the loop of a reader that runs along it; None where it is
        read in another way."""
        for producer, read in self._reads():
            for written, coordinate in zip(
                producer.written[producer.result_index(read.value)], read.coordinates, strict=False
            ):  # an opaque op has no loops
                if written is not None and producer.loops[written] != 1:
                    yield (
                        (producer, written),
                        (read.consumer, coordinate.position) if isinstance(coordinate, AffineDimExpr) else None,
                    )

    def _broken(self) -> Iterator[Loop]:
        """Classes along which some value is read out of step, or that some node has twice."""
        for written, read in self._steps():
            if read is None or read[0].loops[read[1]] != written[0].loops[written[1]]:
                yield self.of(written)
        for node in self.members:
            found = [self.of((node, loop)) for loop in range(len(node.loops))]
            yield from (class_ for class_ in found if found.count(class_) > 1)
