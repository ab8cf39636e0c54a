"""Which loops of a dispatch are one loop: the axes of its values and the loops of its ops, joined where one reads the
other plainly.

An *axis* is a set of value dimensions and op loops that always have the same coordinate. Axes come from the values made
inside the dispatch; arguments may be read any way, so they join nothing. A dimension of size 1 belongs to no axis: its
coordinate is 0. Where reads would make two dimensions of one value the same axis (`x + transpose(x)`), they join
nothing either. What is evaluated where it is read joins last, where it can. Where fusion lets parts go along one
argument, all that step along a dimension of it do so together.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import pairwise

from xdsl.dialects import func, tensor
from xdsl.ir import Block, Operation, SSAValue
from xdsl.ir.affine import AffineDimExpr

from fuseline.analysis.disjoint_sets import DisjointSets
from fuseline.analysis.moves import affine_sources
from fuseline.analysis.shapes import ShapeAnalysis
from fuseline.analysis.structured import (
    StructuredOp,
    is_generic,
    tensor_operands,
)
from fuseline.dispatch.fused_loops import FusedLoops, member_loops, members_of
from fuseline.dispatch.is_internal import is_internal
from fuseline.dispatch.loop_ref import LoopRef
from fuseline.dispatch.result_places import returned, stored_places, unreshaped
from fuseline.errors import FuselineError
from fuseline.ir.dim import Dim


@dataclass(frozen=True)
class Grid:
    """A grid as it was decided. `loops`: per loop of it the loops of members that it is, those of structured ops, and
    dimensions of what others make. `along`: arguments that independent parts go along together."""

    loops: Sequence[Sequence[LoopRef]] = ()
    along: tuple[SSAValue, ...] = ()


NO_GRID = Grid()


class Axes:
    """The axes of a dispatch: `of_value(v)[i]` and `of_op(op)[i]` name the axis of a dimension or loop (None for size
    1).

    `given` is the grid as it was decided, whose loops are one axis each. `carried` are uninitialised values that
    another run of the body has filled.
    """

    def __init__(
        self, body: Block, shapes: ShapeAnalysis, given: Grid = NO_GRID, carried: Collection[SSAValue] = ()
    ) -> None:
        self.shapes, self.given = shapes, given
        self.ops = [op for op in body.ops if not isinstance(op, func.ReturnOp)]
        self._sets = DisjointSets[LoopRef]()
        self.extents: dict[LoopRef, Dim] = {}
        inside = _inside(body, shapes, carried)
        made = [link for op in self.ops for link in _made_links(op)]
        read = [link for op in self.ops for link in _read_links(shapes, op, inside.__contains__)]
        self._join([*made, *read])
        clashing = self._clashing()
        if clashing:
            roots = {node: self._sets.of(node) for link in read for node in link}
            self._sets = DisjointSets()
            self._join([*made, *((a, b) for a, b in read if roots[a] not in clashing)])
        if not self.join(link for nodes in given.loops for link in pairwise(nodes)):
            raise FuselineError("E0901", "the loops of the grid of a dispatch are no axes of its body")
        self._join_read_in_place(inside)
        for argument in given.along:
            read = [link for op in self.ops for link in _read_links(shapes, op, lambda value: True)]
            self.join(link for link in read if link[0][0] is argument)

    def _join_read_in_place(self, inside: Collection[SSAValue]) -> None:
        """Values that nobody has to make, and may be read in any way: joined where their readers agree, all at once or
        one value after the other."""
        rest: dict[SSAValue, list[tuple[LoopRef, LoopRef]]] = {}
        for op in self.ops:
            for link in _read_links(self.shapes, op, lambda value: is_internal(value) and value not in inside):
                rest.setdefault(link[0][0], []).append(link)
        if rest and not self.join(link for links in rest.values() for link in links):
            for links in rest.values():
                self.join(links)

    def join(self, links: Iterable[tuple[LoopRef, LoopRef]]) -> bool:
        """Join, where that makes no two dimensions of a value one axis; whether it was done."""
        before = self._sets.copy()
        self._join(links)
        if not self._clashing():
            return True
        self._sets = before
        return False

    def _join(self, links: Iterable[tuple[LoopRef, LoopRef]]) -> None:
        for node, other in links:
            self._sets.join(node, other)

    def _clashing(self) -> set[LoopRef]:
        """Axes that some value or op has twice."""
        found: set[LoopRef] = set()
        for op in self.ops:
            for result in op.results:
                found |= _twice(self.of_value(result))
            if is_generic(op):
                found |= _twice(self.of_op(op))
        return found

    def of_value(self, value: SSAValue) -> list[LoopRef | None]:
        """The axis of each dimension."""
        return [self._axis((value, i), size) for i, size in enumerate(self.shapes.dims(value))]

    def of_op(self, op: Operation) -> list[LoopRef | None]:
        """The axis of each loop of a structured op."""
        assert is_generic(op)
        return [self._axis((op, i), size) for i, size in enumerate(StructuredOp(op).loops(self.shapes))]

    @property
    def grid(self) -> tuple[LoopRef, ...]:
        """The axes of the grid that was given."""
        found = [self._axis(nodes[0], self._extent(nodes[0])) for nodes in self.given.loops if nodes]
        return tuple(axis for axis in found if axis is not None)

    def _extent(self, node: LoopRef) -> Dim:
        owner, loop = node
        dims = member_loops(owner, self.shapes) if isinstance(owner, Operation) else self.shapes.dims(owner)
        return dims[loop]

    def _axis(self, node: LoopRef, size: Dim) -> LoopRef | None:
        if size == 1:
            return None
        root = self._sets.of(node)
        self.extents[root] = size
        return root


def _inside(body: Block, shapes: ShapeAnalysis, carried: Collection[SSAValue]) -> set[SSAValue]:
    """The values that somebody makes before they are read: reductions, results, and what is made of such."""
    stored = {place.value for _, place in stored_places(body, shapes)}
    found = {unreshaped(value) for value in returned(body)} | stored | set(carried)
    for op in body.ops:
        reduces = is_generic(op) and bool(StructuredOp(op).reduction)
        if reduces or not found.isdisjoint(op.results) or not found.isdisjoint(tensor_operands(op)):
            found.update(op.results)
    return found


def grid_of(loops: FusedLoops, body: Block) -> Grid:
    """The grid of an entry function of one arm, units aside."""
    ops = members_of(body)
    found = [
        [
            (op if is_generic(op) else op.results[0], one.grid_loops.index(position))
            for op, one in zip(ops, loops.members, strict=True)
            if position in one.grid_loops
        ]
        for position, extent in enumerate(loops.grids[0])
        if extent != 1
    ]
    return Grid(found, tuple(ops[member].operands[operand] for member, operand in loops.along))


def _twice(axes: Sequence[LoopRef | None]) -> set[LoopRef]:
    return {axis for axis in axes if axis is not None and axes.count(axis) > 1}


def _made_links(op: Operation) -> Iterator[tuple[LoopRef, LoopRef]]:
    """An op's loops and the dimensions of its results."""
    if is_generic(op):
        for value, map_ in zip(op.results, StructuredOp(op).output_maps, strict=True):
            yield from (
                ((value, i), (op, e.position)) for i, e in enumerate(map_.results) if isinstance(e, AffineDimExpr)
            )


def _read_links(
    shapes: ShapeAnalysis, op: Operation, joins: Callable[[SSAValue], bool]
) -> Iterator[tuple[LoopRef, LoopRef]]:
    """The dimensions of what an op reads and its loops, or its result's dimensions."""
    if is_generic(op):
        structured = StructuredOp(op)
        for value, map_ in zip((*structured.inputs, *structured.outputs), structured.maps, strict=True):
            if joins(value):
                yield from (
                    ((value, i), (op, e.position)) for i, e in enumerate(map_.results) if isinstance(e, AffineDimExpr)
                )
        return
    for one in affine_sources(op, shapes) or ():
        if joins(one.value) or isinstance(op, tensor.ConcatOp):  # parts of one are made side by side, arguments too
            at = enumerate(one.at)
            yield from (((one.value, i), (op.results[0], c.position)) for i, c in at if isinstance(c, AffineDimExpr))
