"""What lies in scratch between the members of a group, and while which members it does, where a workgroup runs one
after the other.

    product(m, n) ──> scale(m, n) ──> product(m, k)        the first product is kept until the second has run, for what
                                                           scales is evaluated there
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import reduce
from operator import and_, or_

from xdsl.ir import SSAValue
from xdsl.ir.affine import AffineDimExpr

from fuseline.analysis.structured import HEAVY
from fuseline.ir.dim import Dim, minimum, product
from fuseline.passes.fusion.loop_classes import Loop
from fuseline.passes.fusion.node import Node, Read
from fuseline.passes.fusion.streamed_loops import OnlineReductionNodes


@dataclass(frozen=True, slots=True)
class KeptValue:
    """A value that lies in scratch, `elements` of it for each grid point, while members run that are bits of `life`
    (`lives`)."""

    value: SSAValue
    elements: Dim
    life: int


def kept_values(
    members: Sequence[Node],
    inner: Callable[[Node], Sequence[int]],
    inlined: Collection[Node] = (),
    streamed: Collection[Loop] = (),
    online: Sequence[OnlineReductionNodes] = (),
) -> Iterator[KeptValue]:
    """The values that lie in scratch between `members`, in program order: those of reductions, and what is read more
    often than once, if they have loops inside a workgroup; but what a root's epilogue hands out at once.

    Args:
        inner: those loops, of a member that is not `inlined`.
        inlined: members that are read in place.
        streamed: the loops that are met block by block, for the softmax `online`: a block is kept.
    """
    carried = {stream.product for stream in online} if streamed else set[Node]()
    mine, kept, elements = set(members), dict[Node, Collection[SSAValue]](), dict[Node, Dim]()
    for node in members:
        if node not in inlined and ((read := _read_later(mine, node)) or node in carried):
            kept[node] = read or node.op.results
            elements[node] = product(
                minimum(node.loops[loop], online[0].points) if (node, loop) in streamed else node.loops[loop]
                for loop in inner(node)
                if node.iterators[loop] == "parallel"
            )
    lying = [node for node in kept if elements[node] != 1]
    life = lives(members, kept) if lying else {}  # asked of every candidate, most of which have nothing there
    for node in lying:
        yield from (KeptValue(value, elements[node], life[node]) for value in kept[node])


def lives(members: Sequence[Node], kept: Collection[Node]) -> Mapping[Node, int]:
    """While which of `members` the value of each may lie there, in whatever order they run: bit `i` stands for the one
    of number `i`. Any order in which values are made before they are read may be given; only the numbers depend on it.

    What is not `kept` is evaluated where it is read: what it reads is needed as long as itself.
    """
    bit = {node: 1 << i for i, node in enumerate(members)}
    before, after, over = dict[Node, int](), dict.fromkeys(members, 0), dict[Node, int]()
    for node in members:
        made = [read.producer for read in node.reads if read.producer in bit]
        before[node] = reduce(or_, [before[one] | bit[one] for one in made], 0)
    for node in reversed(members):
        inside = [read.consumer for read in node.readers if read.consumer in bit]
        after[node] = reduce(or_, [after[one] | bit[one] for one in inside], 0)
        ends = [after[one] if one in kept else over[one] for one in inside]
        over[node] = reduce(and_, ends) if ends else after[node]
    every = (1 << len(members)) - 1
    return {node: every & ~before[node] & ~over[node] for node in members}


def most_at_a_time(sizes: Sequence[tuple[int, int]]) -> int:
    """The most that sizes come to while one member runs; each has the members while which it may lie there, as bits."""
    every = reduce(or_, [life for _, life in sizes], 0)
    members = [number for number in range(every.bit_length()) if every >> number & 1]
    return max([sum([size for size, life in sizes if life >> number & 1]) for number in members], default=0)


def _read_later(members: Collection[Node], node: Node) -> Collection[SSAValue]:
    """The values of a member that lie in scratch for others."""
    inside = [read for read in node.readers if read.consumer in members]
    if len(inside) == 1 and (not node.reduces or (node.kind in HEAVY and _leaves_at_once(members, inside[0]))):
        return ()
    return dict.fromkeys(read.value for read in inside)


def _leaves_at_once(members: Collection[Node], read: Read) -> bool:
    """Whether what is read is stored as a result, as an epilogue point by point makes it: it never leaves registers."""
    inside = [read]
    for _ in members:
        if len(inside) != 1 or not _is_pointwise(inside[0]):
            break
        inside = [later for later in inside[0].consumer.readers if later.consumer in members]
    return not inside


def _is_pointwise(read: Read) -> bool:
    """Whether a node makes each element of one that it reads, at whatever order of its loops."""
    plain = not read.regrouped and all(isinstance(at, AffineDimExpr) for at in read.coordinates)
    return plain and not read.consumer.reduces and len(read.coordinates) == len(read.consumer.loops)
