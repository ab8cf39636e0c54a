"""Which loops of a body's members are one loop, read off the body alone: what `fuseline.loops` says is checked against
it.

The classes are those of `analysis/loop_classes.py`; reshapes and views are looked through. A class can be in a grid if
every placed member has it, once, in parallel, and nobody reads along it out of step: what a workgroup reads, it has
made itself. Members that no value joins may share any loops that run equally far. What could be shared and is not is
fusion's decision.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import TypeAlias

from xdsl.dialects.builtin import TensorType
from xdsl.ir import Operation, OpResult, SSAValue
from xdsl.ir.affine import AffineConstantExpr, AffineDimExpr

from fuseline.analysis.disjoint_sets import DisjointSets
from fuseline.analysis.indexing_maps import loops_of
from fuseline.analysis.loop_classes import LoopClasses, StepOf
from fuseline.analysis.moves import RESHAPES, AffineCoordinates, sources
from fuseline.analysis.operand_reads import Coordinates, operand_reads
from fuseline.analysis.shapes import ShapeAnalysis
from fuseline.analysis.structured import StructuredOp, is_generic, tensor_operands
from fuseline.dispatch.fused_loops import FusedLoops, Role, member_loops
from fuseline.ir.dim import Dim

Loop: TypeAlias = tuple[Operation, int]


@dataclass(frozen=True)
class _Nest:
    """The loops of a member."""

    loops: tuple[Dim, ...]
    iterators: Sequence[str]


class SharedLoops:
    """The classes of the loops of `placed` members, and of `inlined` ones that depend on them. `views` are looked
    through; all of a value may be read through anything else.

    Where they `go_along` arguments, loops that step along a dimension of one of these are one, too, and those that step
    along an inlined value that depends on no placed member; such values may be read in any way.
    """

    def __init__(
        self,
        placed: Sequence[Operation],
        inlined: Iterable[Operation],
        views: Iterable[Operation],
        shapes: ShapeAnalysis,
        arguments: Iterable[SSAValue] = (),
        go_along: bool = False,
    ) -> None:
        self.placed, self.shapes = placed, shapes
        self.nests = {op: _nest(op, shapes) for op in placed}
        self._views = set(views)
        self._reached: dict[Operation, tuple[OpResult, ...]] = {}
        self._links = DisjointSets[Operation]()
        self.along: dict[SSAValue, list[list[Loop]]] = {value: [[] for _ in shapes.dims(value)] for value in arguments}
        inlined = list(inlined)
        self._body = next((op.parent for op in (*placed, *inlined)), None)
        between = [op for op in inlined if self._behind(op)]
        self._free = set(inlined).difference(between)
        self._reached.clear()
        self.nests |= {op: nest for op in inlined if (nest := _nest(op, shapes)).loops}
        steps = [step for op in self.nests for step in self._steps(op)]
        self.kept_steps = [step for step in steps if step[0][0] not in self._free]
        self.free_steps = [step for step in steps if step[0][0] in self._free]
        self._reduced = [(loop, None) for op in between if op in self.nests for loop in _reduced(op, self.nests[op])]
        self._go_together = go_along

    @cached_property
    def classes(self) -> LoopClasses[Operation]:
        """The classes that a grid is chosen from."""
        steps = [*self._reduced, *self.kept_steps, *(self.free_steps if self._go_together else ())]
        alike = [loops for axes in self.along.values() for loops in axes] if self._go_together else []
        return LoopClasses(self.nests, steps, alike)

    def components(self) -> list[list[Operation]]:
        """The placed members that hang together through values."""
        found: dict[Operation, list[Operation]] = {}
        for op in self.placed:
            found.setdefault(self._links.of(op), []).append(op)
        return list(found.values())

    def in_step(self, steps: Iterable[StepOf[Operation]]) -> list[tuple[Loop, Loop]]:
        """Of `steps`, the loops that are read in step, with the readers' loops that run equally far; loops of extent 1
        aside."""
        return [(made, read) for made, read in steps if read and self._moves(made) and self._equal(made, read)]

    def _moves(self, loop: Loop) -> bool:
        return self.nests[loop[0]].loops[loop[1]] != 1

    def _steps(self, reader: Operation) -> Iterator[StepOf[Operation]]:
        """Every loop that writes a dimension of what `reader` reads, with the loop that reads along it; None where that
        is done in another way."""
        for value, coordinates in operand_reads(reader, self.shapes, moves=bool(self.nests[reader].loops)):
            self._go_along(reader, value, coordinates)
            for made, at in self._made(value, coordinates):
                if made.op not in self._free:
                    self._links.join(made.op, reader)
                for axis, loop in enumerate(_written(made)):
                    step = at[axis] if at is not None else None
                    read = (reader, step.position) if isinstance(step, AffineDimExpr) else None
                    if loop is not None and (made.op not in self._free or self._equal((made.op, loop), read)):
                        yield (made.op, loop), read

    def _equal(self, loop: Loop, other: Loop | None) -> bool:
        return other is not None and self.nests[loop[0]].loops[loop[1]] == self.nests[other[0]].loops[other[1]]

    def _go_along(self, reader: Operation, value: SSAValue, coordinates: Coordinates) -> None:
        """Note the loops of `reader` that step along an argument, which `value` is or has been moved from."""
        if not self.along or coordinates is None:
            return
        sizes = self.shapes.dims(value)
        at = [AffineConstantExpr(0) if size == 1 else step for size, step in zip(sizes, coordinates, strict=True)]
        for axis, step in enumerate(at) if value in self.along else ():
            if isinstance(step, AffineDimExpr) and self.nests[reader].loops[step.position] == sizes[axis]:
                self.along[value][axis].append((reader, step.position))
        if isinstance(value, OpResult) and value.op not in self.nests:
            for one in sources(value.op, at, self.shapes, AffineCoordinates()) or ():
                self._go_along(reader, one.value, one.at)

    def _made(self, value: SSAValue, coordinates: Coordinates) -> Iterator[tuple[OpResult, Coordinates]]:
        """The values of placed members that are read where `value` is."""
        if not isinstance(value, OpResult) or value.op.parent is not self._body:
            return
        if value.op in self.nests:
            yield value, coordinates
            return
        looked = type(value.op) in RESHAPES or value.op in self._views
        found = (
            sources(value.op, coordinates, self.shapes, AffineCoordinates())
            if looked and coordinates is not None
            else None
        )
        if found is not None:
            yield from (one for source in found for one in self._made(source.value, source.at))
        else:
            yield from ((made, None) for made in self._behind(value.op))

    def _behind(self, op: Operation) -> tuple[OpResult, ...]:
        """The values of placed members that `op`, which is none, depends on."""
        known = self._reached.get(op)
        if known is None:
            results = [value for value in tensor_operands(op) if isinstance(value, OpResult)]
            read = [value for value in results if value.op.parent is self._body]
            found = [
                made for value in read for made in ((value,) if value.op in self.nests else self._behind(value.op))
            ]
            known = self._reached[op] = tuple(dict.fromkeys(found))
        return known


def _nest(op: Operation, shapes: ShapeAnalysis) -> _Nest:
    loops = member_loops(op, shapes)
    return _Nest(loops, StructuredOp(op).iterators if is_generic(op) else ("parallel",) * len(loops))


def _reduced(op: Operation, nest: _Nest) -> Iterator[Loop]:
    """The loops of an inlined member that want all of what it reads."""
    yield from ((op, loop) for loop, kind in enumerate(nest.iterators) if kind != "parallel")


def _written(value: OpResult) -> Sequence[int | None]:
    """The loop that writes each dimension of a member's result."""
    if is_generic(value.op):
        return loops_of(StructuredOp(value.op).output_maps[value.index].results)
    assert isinstance(value.type, TensorType)
    return range(len(value.type.get_shape()))


def shared_of_arm(
    loops: FusedLoops, members: Sequence[Operation], arm: int, shapes: ShapeAnalysis, carried: Iterable[SSAValue] = ()
) -> SharedLoops:
    """What the members of an arm share. `carried`: values that are gone along as arguments are."""
    mine = [(op, one.role) for op, one in zip(members, loops.members, strict=True) if one.arm == arm]
    placed, inlined, views = (
        [op for op, has in mine if has is role] for role in (Role.PLACED, Role.INLINED, Role.VIEW)
    )
    along = [members[member].operands[operand] for member, operand in loops.along if loops.members[member].arm == arm]
    return SharedLoops(placed, inlined, views, shapes, [*along, *carried])
