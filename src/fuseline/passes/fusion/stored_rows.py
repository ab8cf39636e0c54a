"""Rows of unknown length between roots: a block stores them where the next member reads them again.

    matmul(m, k) ──> matmul(m, n)         for blocks of m: all of k is stored, and read while it is near

No scratch is known to hold such a row. It becomes a result of the dispatch, as long as the run says: the tensor that
would lie between two dispatches, without the second dispatch.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from collections.abc import Set as AbstractSet
from dataclasses import dataclass

from xdsl.ir import SSAValue
from xdsl.ir.affine import AffineDimExpr

from fuseline.analysis.loop_classes import LoopClasses
from fuseline.analysis.structured import Kind
from fuseline.ir.costs import assumed_size
from fuseline.ir.dim import product, upper_bound
from fuseline.ir.reachable import reachable
from fuseline.ir.rounds import rounds
from fuseline.passes.fusion.cached import cached
from fuseline.passes.fusion.decision import WhyNot
from fuseline.passes.fusion.graph import FusionGraph
from fuseline.passes.fusion.loop_classes import Loop, loop_classes
from fuseline.passes.fusion.node import Node

STORED_BYTES = "stored_bytes"
"""The number in a rule's `Legal` that says how many bytes are stored although nobody outside reads them."""


@dataclass(frozen=True, eq=False)
class StoredRows:
    """Which values of a blocked group of unknown size are results for want of a bound; of any other one none is
    (`NO_ROWS`).

    `grid_loop_of` are the grid loops of the members that have places in the grid, `inlined` are the others, `results`
    the values that someone outside reads.
    """

    members: Sequence[Node]
    inlined: AbstractSet[Node]
    grid_loop_of: Mapping[Node, Sequence[int | None]]
    results: Sequence[SSAValue]

    @cached
    def values(self) -> tuple[SSAValue, ...]:
        """The values between members that no scratch is known to hold."""
        return tuple([value for node in self.members if self._is_long(node) for value in self._outliving(node)])

    @cached
    def added(self) -> tuple[SSAValue, ...]:
        """Those that nobody outside reads."""
        left = set(map(id, self.results)) if self.values else set[int]()
        return tuple([value for value in self.values if id(value) not in left])

    def refusal(self, at: str) -> WhyNot | None:
        """That of a group whose rows have to lie in scratch, None without any that none is known to hold."""
        detail = "rows between its members have a size without an upper bound"
        return WhyNot("unbounded-size", detail, at) if self.values else None

    @cached
    def placed(self) -> Mapping[Node, tuple[int | None, ...]]:
        """The grid loops that members evaluated where they are read have once their values are stored: a workgroup
        makes its own part of what it stores. Those that lack a loop of the grid have none here."""
        found = {node: self._grid_loops(node) for node in self._stored_where_read}
        return {node: loops for node, loops in found.items() if self._is_whole_grid(loops)}

    def has_place_for_all(self) -> bool:
        """Whether every member whose values are stored is in the grid, or can be."""
        return len(self.placed) == len(self._stored_where_read)

    @cached
    def _stored_where_read(self) -> list[Node]:
        """The members that are evaluated where they are read, and whose values are stored."""
        stored = set(map(id, self.values)) if self.inlined else set[int]()
        inlined = [node for node in self.members if node in self.inlined] if stored else []
        return [node for node in inlined if any(id(value) in stored for value in node.op.results)]

    def _grid_loops(self, node: Node) -> tuple[int | None, ...]:
        return tuple([self._grid.get(self._classes.of((node, loop))) for loop in range(len(node.loops))])

    def _is_whole_grid(self, loops: Sequence[int | None]) -> bool:
        return sorted(loop for loop in loops if loop is not None) == sorted(set(self._grid.values()))

    def bytes_added(self, graph: FusionGraph) -> int:
        """What is stored that nobody outside reads, in bytes."""
        return sum([assumed_size(graph.num_bytes(value)) for value in self.added])

    def _is_long(self, node: Node) -> bool:
        """Whether a placed member computes rows without a bound."""
        if node.moves:
            return False
        inlined = node in self.inlined
        if inlined and not self._follows_others(node):
            return False
        inner = self._inner_of_inlined(node) if inlined else self._inner(node)
        return upper_bound(product(node.loops[loop] for loop in inner if node.iterators[loop] == "parallel")) is None

    def _follows_others(self, node: Node) -> bool:
        """Whether what is evaluated where it is read depends on a placed member: a block computes it once."""
        pending, seen = [node], {node}
        while pending:
            made = {read.producer for read in pending.pop().reads if read.producer in self._inside}
            if not made <= self.inlined:
                return True
            fresh = [one for one in made if one is not None and one not in seen]
            seen.update(fresh)
            pending += fresh
        return False

    def _inner(self, node: Node) -> list[int]:
        """The loops of a placed member that run inside a workgroup."""
        return [loop for loop, grid in enumerate(self.grid_loop_of[node]) if grid is None]

    def _inner_of_inlined(self, node: Node) -> list[int]:
        """The loops of a member without places in the grid that are none of the grid's."""
        return [loop for loop in range(len(node.loops)) if self._classes.of((node, loop)) not in self._grid]

    @cached
    def _inside(self) -> AbstractSet[Node]:
        return set(self.members)

    @cached
    def _classes(self) -> LoopClasses[Node]:
        return loop_classes(self.members)

    @cached
    def _grid(self) -> Mapping[Loop, int]:
        """The loop of the grid by the class of the members' loops that are it."""
        placed = self.grid_loop_of.items()
        return {self._classes.of((node, loop)): g for node, at in placed for loop, g in enumerate(at) if g is not None}

    def _outliving(self, node: Node) -> list[SSAValue]:
        """The results of a member that others read after it, rather than with it, point by point."""
        inside = [read for read in node.readers if read.consumer in self._inside]
        if len({id(read.consumer) for read in inside}) == 1 and self._follows(inside[0].consumer, node):
            return []
        if not self._is_by_root(node) and all([self._is_beside(reader, node) for reader in self._placed_readers(node)]):
            return []
        return list({id(read.value): read.value for read in inside}.values())

    def _placed_readers(self, node: Node) -> set[Node]:
        """The members that read what `node` makes, themselves or by way of those that are evaluated where they are
        read."""
        return self._placed(node, lambda one: (read.consumer for read in one.readers))

    def _placed_sources(self, node: Node) -> set[Node]:
        """The members whose values `node` reads, itself or by way of those that are evaluated where they are read."""
        return self._placed(node, lambda one: (read.producer for read in one.reads if read.producer is not None))

    def _placed(self, node: Node, beside: Callable[[Node], Iterable[Node]]) -> set[Node]:
        """The members that `beside` leads to from `node`, over those that are evaluated where they are read."""

        def inside(one: Node) -> list[Node]:
            return [other for other in beside(one) if other in self._inside]

        return set(reachable(inside(node), lambda one: inside(one) if one in self.inlined else [])) - self.inlined

    def _is_by_root(self, node: Node) -> bool:
        """Whether a root makes what a member computes, or what it follows point by point."""
        for _ in rounds("what a member follows", most=len(self.members)):
            if node.heavy:
                break
            rows = [read.producer for read in node.reads if read.producer in self._inside]
            before = next((one for one in rows if one is not None and self._is_long(one)), None)
            if before is None or not self._follows(node, before):
                return False
            node = before
        return True

    def _is_beside(self, reader: Node, node: Node) -> bool:
        """Whether both are computed in one nest of loops: no root lies between them."""
        roots = [one.position for one in self.members if one.heavy]
        return not reader.heavy and not any(node.position < at < reader.position for at in roots)

    def _follows(self, reader: Node, node: Node) -> bool:
        """Whether a member is computed with `node`, the only one whose rows it reads, at each of its points."""
        if reader.kind is not Kind.ELEMENTWISE or reader.reads_elsewhere or reader in self.inlined:
            return False
        made = {read.producer for read in reader.reads if read.producer in self._inside}
        rows = [one for one in made if one is node or one is None or one.moves or self._is_long(one)]
        points = [node.loops[loop] for loop in node.parallel]
        in_step = rows == [node] and list(reader.loops) == points and _in_order(reader, node)
        return in_step and not self._waits(reader, node)

    def _waits(self, reader: Node, node: Node) -> bool:
        """Whether `reader` reads what follows a root behind `node` as well: that root runs first."""
        roots = [one.position for one in self.members if one.heavy and one.position > node.position]
        return any(at <= source.position for source in self._placed_sources(reader) for at in roots)


def _in_order(reader: Node, node: Node) -> bool:
    """Whether `reader` meets what `node` makes in the order of its own loops."""
    reads = [read for read in reader.reads if read.producer is node]
    return all(
        [at.position for at in read.coordinates if isinstance(at, AffineDimExpr)] == list(range(len(reader.loops)))
        for read in reads
    )


NO_ROWS = StoredRows((), frozenset(), {}, ())
"""Those of a group whose sizes are known, or which is no block."""
