"""Which loops of several nodes are one loop.

The classes of a whole group at once, where `merging.align` compares two groups loop by loop: for merges of more than
two.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import TypeAlias

from xdsl.ir.affine import AffineDimExpr

from fuseline.analysis.loop_classes import LoopClasses, StepOf
from fuseline.passes.fusion.node import Node

Loop: TypeAlias = tuple[Node, int]


def loop_classes(members: Iterable[Node], alike: Sequence[Loop] = ()) -> LoopClasses[Node]:
    """The classes of the loops of `members`; `alike` are loops that are known to be one."""
    nests = {node: node for node in members}
    return LoopClasses(nests, _steps(nests), [alike])


def _steps(members: Iterable[Node]) -> Iterator[StepOf[Node]]:
    """Every loop that writes a dimension inside, with the loop of a reader that runs along it."""
    inside = set(members)
    for producer, read in ((read.producer, read) for node in members for read in node.reads):
        if producer is None or producer not in inside:
            continue
        written = producer.written[producer.result_index(read.value)]
        for loop, coordinate in zip(written, read.coordinates, strict=False):  # an opaque op has no loops
            if loop is not None:
                plain = isinstance(coordinate, AffineDimExpr)
                yield (producer, loop), (read.consumer, coordinate.position) if plain else None
