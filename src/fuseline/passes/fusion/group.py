"""Groups: the blocks of the partition, each with the grid of loops that its members share.

A group will be one dispatch. Its **grid** is the list of parallel loops that every workgroup is a point of; each member
maps some of its loops to grid loops, and the rest run inside a workgroup. What lies between two members is then a value
per grid point, times the inner loops:

    softmax over (r, c):   max: r->g0, c inner      exp: r->g0, c inner      sum: r->g0, c inner
            div: r->g0, c inner
                           grid = (r,), the row of exp() lives in scratch
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence
from collections.abc import Set as AbstractSet
from dataclasses import dataclass, field

from xdsl.ir import SSAValue

from fuseline.analysis.structured import HEAVY
from fuseline.ir.costs import LINE_BYTES
from fuseline.ir.dim import Dim, add, mul, product, upper_bound
from fuseline.ir.element_types import element_bytes
from fuseline.passes.fusion.cached import cached
from fuseline.passes.fusion.group_body import GroupBody
from fuseline.passes.fusion.kept_values import kept_values, most_at_a_time
from fuseline.passes.fusion.loop_classes import Loop
from fuseline.passes.fusion.node import Node, Read, node_operations, root_rank
from fuseline.passes.fusion.stored_rows import NO_ROWS, StoredRows
from fuseline.passes.fusion.streamed_loops import OnlineReductionNodes, streamed_loops

BLOCK_POINTS = 8
"""Grid points that a workgroup of a blocked group has at the least: the rows of a register tile."""


@dataclass(eq=False)
class Group:
    """Members in program order; nothing of a group changes once it is made.

    `grid_loop_of[node][loop]` is the grid loop of a member's loop, None for an inner one; a member that is **read in
    place** (`inlined`) has no loops in the grid: it is evaluated where it is read. `arms` are independent groups, each
    with its own grid. `online` are softmaxes whose loop may be met block by block. `along`: the argument that parts
    of the group go along together, as a member that reads it and the number of its operand.
    """

    members: list[Node]
    grid: tuple[Dim, ...]
    grid_loop_of: dict[Node, tuple[int | None, ...]]
    inlined: set[Node] = field(default_factory=set[Node])
    arms: tuple[Group, ...] = ()
    online: tuple[OnlineReductionNodes, ...] = ()
    along: tuple[Node, int] | None = None

    @classmethod
    def of(cls, node: Node) -> Group:
        """The group of one node: its parallel loops are the grid."""
        position = {loop: i for i, loop in enumerate(node.parallel)}
        loops = tuple(position.get(loop) for loop in range(len(node.loops)))
        return cls([node], tuple(node.loops[loop] for loop in node.parallel), {node: loops})

    @cached
    def body(self) -> GroupBody:
        """What it consists of and where it touches others, in sets that grow with it."""
        return GroupBody.of(self.members, self.grid_loop_of, self.inlined)

    def form(self) -> Collection[Node]:
        """The group is one of the partition from now on; the nodes that are in another body for it."""
        return self.body.nodes

    @property
    def plain(self) -> Group:
        """The same group by itself, however it was formed."""
        return self

    @cached
    def size(self) -> int:
        """How many members there are."""
        return len(self.members)

    @cached
    def root(self) -> Node:
        """The op that the dispatch is built around: the heaviest member, the last of equals."""
        placed = [node for node in self.members if node not in self.inlined] or self.members
        return max(placed, key=root_rank)

    @cached
    def is_sequential(self) -> bool:
        """Whether a member is made in one walk by a kernel of its own."""
        return any(node.is_sequential for node in self.members)

    @cached
    def heavy(self) -> bool:
        """Whether any member is a contraction, convolution or pooling."""
        return any(node.kind in HEAVY for node in self.members)

    @cached
    def reduces(self) -> bool:
        """Whether any member reduces."""
        return any(node.reduces for node in self.members)

    @cached
    def moves(self) -> bool:
        """Whether all members only move data."""
        return all(node.moves for node in self.members)

    @cached
    def blocked(self) -> bool:
        """Whether a workgroup is a block of grid points whose values lie in scratch: a root is not alone in reducing,
        or keeps loops inside."""
        roots = self.placed_roots
        return bool(roots) and (
            self.reducing_count > 1
            or any(node.iterators[loop] == "parallel" for node in roots for loop in self._moving_inner(node))
        )

    @cached
    def placed_roots(self) -> frozenset[Node]:
        """The roots that are not read in place."""
        return frozenset([n for n in self.members if n.kind in HEAVY and n.reduces and n not in self.inlined])

    @cached
    def reducing_count(self) -> int:
        """How many members reduce that are not read in place."""
        return sum([node.reduces and node not in self.inlined for node in self.members])

    @cached
    def reads_elsewhere(self) -> bool:
        """Whether any member reads at another point than its own."""
        return any([node.reads_elsewhere for node in self.members])

    @cached
    def body_operations(self) -> int:
        """Operations of one evaluation of every member."""
        return sum([node_operations(node) for node in self.members])

    @cached
    def most_points(self) -> int:
        """Points of the largest member."""
        return max([node.points or 0 for node in self.members])

    @cached
    def unbounded(self) -> bool:
        """Whether nobody knows how many points some member has at most."""
        return any([node.points is None for node in self.members])

    @cached
    def unknown_pixels(self) -> bool:
        """Whether members are about images whose sizes only the run knows."""
        return any([node.unknown_pixels for node in self.members])

    @cached
    def root_points(self) -> int:
        """Points of all roots together."""
        return sum([node.points or 0 for node in self.members if node.heavy])

    def _moving_inner(self, node: Node) -> list[int]:
        return [loop for loop in self.inner(node) if node.loops[loop] != 1]

    @cached
    def fusable(self) -> bool:
        """Whether rules may speak about this group."""
        return self.members[0].fusable

    @cached
    def key(self) -> str:
        """Orders groups whatever the order of the program: the least member id."""
        return min(node.id for node in self.members)

    def inner(self, node: Node) -> list[int]:
        """The loops of a placed member that run inside a workgroup."""
        return [loop for loop, grid in enumerate(self.grid_loops(node)) if grid is None]

    def grid_loops(self, node: Node) -> tuple[int | None, ...]:
        """The grid loop of each loop of a placed member."""
        return self.grid_loop_of[node]

    def is_inlined(self, node: Node) -> bool:
        """Whether a member is evaluated where it is read."""
        return node in self.inlined

    def inlines(self, other: Group) -> bool:
        """Whether all members of `other` are evaluated where they are read."""
        return self.inlined.issuperset(other.members)

    def reads_from(self, other: Group) -> Sequence[Read]:
        """Every read of a value of `other` by a member of this group, in program order."""
        known = self._reads.get(other)
        if known is None:
            known = self._reads[other] = self.body.reads_from(other.body)
        return known

    @cached
    def _reads(self) -> dict[Group, list[Read]]:
        return {}

    def outside_reads(self) -> Iterator[Read]:
        """Every read of a value from outside."""
        mine = self.member_set
        for node in self.members:
            for read in node.reads:
                if read.producer not in mine:
                    yield read

    def results(self) -> Sequence[SSAValue]:
        """The values that someone outside reads, or that the function returns."""
        return self._results

    @cached
    def _results(self) -> tuple[SSAValue, ...]:
        mine = self.member_set
        found: dict[int, SSAValue] = {}  # by identity: the hash of a value is that in Python
        for node in self.members:
            for read in node.readers:
                if read.consumer not in mine:
                    found[id(read.value)] = read.value
            if node.escapes:
                found.update([(id(result), result) for result in node.op.results])
        return tuple(found.values())

    def buffers(self) -> set[SSAValue]:
        """What a dispatch of this group binds: the values it reads from outside, fills aside, and its results."""
        return {*self.body.inputs.values(), *self.body.results.values()}

    @cached
    def streamed(self) -> frozenset[Loop]:
        """The loops that a workgroup meets block by block."""
        return (
            streamed_loops(self.members, self.grid_loop_of.keys(), self.results(), self.online)
            if self.online
            else frozenset()
        )

    @cached
    def scratch_bytes(self) -> int | None:
        """The scratch one workgroup needs at most: every value between members that has inner loops, once per
        workgroup; None if unbounded.

        The workgroup of a blocked group has `BLOCK_POINTS` points at the least, or all there are, and runs member after
        member: what counts is what lies there at a time. Values of members that are read in place, and all-parallel
        values with one reader, need none: they are recomputed nowhere and kept in registers. Along a streamed loop a
        block is kept.
        """
        sizes = [(upper_bound(size), life) for size, life in self._kept_bytes()]
        bounded = [(bound, life) for bound, life in sizes if bound is not None]
        return self._at_a_time(bounded) if len(bounded) == len(sizes) else None

    @property
    def bounded_scratch_bytes(self) -> int:
        """That of the values whose size is bounded."""
        return self._at_a_time([(b, life) for size, life in self._kept_bytes() if (b := upper_bound(size)) is not None])

    def _at_a_time(self, sizes: Sequence[tuple[int, int]]) -> int:
        """What lies in scratch at a time; the members along a streamed loop run again and again."""
        in_turn = self.blocked and not self.streamed
        return most_at_a_time(sizes) if in_turn else sum([size for size, _ in sizes])

    def _kept_bytes(self) -> Iterator[tuple[Dim, int]]:
        points = min(BLOCK_POINTS, self._points or BLOCK_POINTS) if self.blocked else 1
        for one in kept_values(self.members, self.inner, self.inlined, self.streamed, self.online):
            yield add(mul(one.elements, points * element_bytes(one.value)), LINE_BYTES), one.life

    @cached
    def stored_rows(self) -> StoredRows:
        """The values between members that are results for want of a bound."""
        if not self.unbounded or not self.blocked or self.arms or self.streamed:
            return NO_ROWS
        return StoredRows(self.members, self.inlined, self.grid_loop_of, self.results())

    @property
    def scratch_beside_rows(self) -> int | None:
        """The scratch of one workgroup beside them, in bytes; None where nothing bounds it."""
        return self.bounded_scratch_bytes if self.stored_rows.values else self.scratch_bytes

    def bindings(self) -> int:
        """How many buffers a dispatch of this group binds."""
        return len(self.body.inputs) + len(self.body.results)

    def parallel_iterations(self) -> int | None:
        """How many grid points there are at most; None without a bound."""
        return self._points

    @cached
    def _points(self) -> int | None:
        return upper_bound(product(self.grid))

    @cached
    def member_set(self) -> AbstractSet[Node]:
        """The members."""
        return self.body.nodes
