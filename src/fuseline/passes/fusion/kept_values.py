"""What lies in scratch between the members of a group, and while which members it does, where a workgroup runs one
after the other.

    product(m, n) ──> scale(m, n) ──> product(m, k)        the first product is kept until the second has run, for what
                                                           scales is evaluated there
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass

from xdsl.ir import SSAValue

from fuseline.ir.dim import Dim, minimum, product
from fuseline.passes.fusion.loop_classes import Loop
from fuseline.passes.fusion.node import Node
from fuseline.passes.fusion.streamed_loops import OnlineReductionNodes


@dataclass(frozen=True, slots=True)
class KeptValue:
    """A value that lies in scratch, `elements` of it for each grid point, while the members of the numbers `life`
    run."""

    value: SSAValue
    elements: Dim
    life: range


def kept_values(
    members: Sequence[Node],
    inner: Mapping[Node, Sequence[int]],
    streamed: Collection[Loop] = (),
    online: Sequence[OnlineReductionNodes] = (),
) -> Iterator[KeptValue]:
    """The values that lie in scratch between `members`, in program order: those of reductions, and what is read more
    often than once, if they have loops inside a workgroup.

    Args:
        inner: those loops, of each member that is not read in place.
        streamed: the loops that are met block by block, for the softmax `online`: a block is kept.
    """
    carried = {stream.product for stream in online} if streamed else set[Node]()
    mine = set(members)
    kept = {node: read for node in inner if (read := _read_later(mine, node)) or node in carried}
    life = lives(members, kept)
    for node, read in kept.items():
        extents = [
            minimum(node.loops[loop], online[0].points) if (node, loop) in streamed else node.loops[loop]
            for loop in inner[node]
            if node.iterators[loop] == "parallel"
        ]
        elements = product(extents)
        if elements != 1:
            yield from (KeptValue(value, elements, life[node]) for value in (read or node.op.results))


def lives(members: Sequence[Node], kept: Collection[Node]) -> Mapping[Node, range]:
    """The numbers of the members while which the values of each of `members`, which are in program order, are needed.

    What is not `kept` is evaluated where it is read: what it reads is needed as long as itself.
    """
    number = {node: i for i, node in enumerate(members)}
    last = dict[Node, int]()
    for node in reversed(members):
        inside = [read.consumer for read in node.readers if read.consumer in number]
        ends = [number[reader] if reader in kept else last[reader] for reader in inside]
        last[node] = max(ends, default=number[node])
    return {node: range(number[node], last[node] + 1) for node in members}


def most_at_a_time(sizes: Sequence[tuple[int, range]]) -> int:
    """The peak of the sum of sizes, each needed while some members run."""
    begun = {life.start for _, life in sizes}
    return max([sum([size for size, life in sizes if number in life]) for number in begun], default=0)


def _read_later(members: Collection[Node], node: Node) -> Collection[SSAValue]:
    """The values of a member that lie in scratch for others."""
    inside = [read.value for read in node.readers if read.consumer in members]
    return dict.fromkeys(inside) if node.reduces or len(inside) > 1 else ()
