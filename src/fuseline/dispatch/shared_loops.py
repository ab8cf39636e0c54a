"""Which loops of a body's members are one loop, read off the body alone: what `fuseline.loops` says is checked against
it.

The classes are those of `analysis/loop_classes.py`; reshapes and views are looked through. A class can be in a grid if
every placed member has it, once, in parallel, and nobody reads along it out of step: what a workgroup reads, it has
made itself. Members that no value joins may share any loops that run equally far. What could be shared and is not is
fusion's decision.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TypeAlias

from xdsl.dialects.builtin import TensorType
from xdsl.ir import Block, Operation, OpResult, SSAValue
from xdsl.ir.affine import AffineConstantExpr, AffineDimExpr

from fuseline.analysis.disjoint_sets import DisjointSets
from fuseline.analysis.loop_classes import LoopClasses, StepOf
from fuseline.analysis.moves import RESHAPES, AffineCoordinates, Coordinate, affine_sources, sources
from fuseline.analysis.shapes import ShapeAnalysis
from fuseline.analysis.structured import StructuredOp, captured_tensors, is_generic, loops_of
from fuseline.dispatch.fused_loops import FusedLoops, OnlineReduction, Role, member_loops, members_of
from fuseline.errors import FuselineError
from fuseline.ir.dim import Dim

Loop: TypeAlias = tuple[Operation, int]
Coordinates: TypeAlias = Sequence[Coordinate] | None
"""Those of a value that is read; None where all of it may be read."""


@dataclass(frozen=True)
class _Nest:
    """The loops of a member."""

    loops: tuple[Dim, ...]
    iterators: Sequence[str]


class SharedLoops:
    """The classes of the loops of `placed` members, and of `inlined` ones that depend on them. `views` are looked
    through; all of a value may be read through anything else.

    Where `arguments` are given (any number), loops that step along a dimension of one of them are one, too, and those
    that step along an inlined value that depends on no placed member; such values may be read in any way.
    """

    def __init__(
        self,
        placed: Sequence[Operation],
        inlined: Iterable[Operation],
        views: Iterable[Operation],
        shapes: ShapeAnalysis,
        arguments: Collection[SSAValue] | None = None,
    ) -> None:
        self.placed, self.shapes = placed, shapes
        self.nests = {op: _nest(op, shapes) for op in placed}
        self._views = set(views)
        self._reached: dict[Operation, tuple[OpResult, ...]] = {}
        self._links = DisjointSets[Operation]()
        self._along: dict[SSAValue, list[list[Loop]]] = {
            value: [[] for _ in shapes.dims(value)] for value in arguments or ()
        }
        inlined = list(inlined)
        between = [op for op in inlined if self._behind(op)]
        self._free = set(inlined).difference(between) if arguments is not None else set[Operation]()
        self._reached.clear()
        wanted = [op for op in inlined if op in self._free or op in between]
        self.nests |= {op: nest for op in wanted if (nest := _nest(op, shapes)).loops}
        reduced = [(loop, None) for op in between if op in self.nests for loop in _reduced(op, self.nests[op])]
        steps = [*reduced, *(step for op in self.nests for step in self._steps(op))]
        self.classes = LoopClasses(self.nests, steps, [loops for axes in self._along.values() for loops in axes])

    def parts(self) -> list[list[Operation]]:
        """The placed members that hang together through values."""
        found: dict[Operation, list[Operation]] = {}
        for op in self.placed:
            found.setdefault(self._links.of(op), []).append(op)
        return list(found.values())

    def _steps(self, reader: Operation) -> Iterator[StepOf[Operation]]:
        """Every loop that writes a dimension of what `reader` reads, with the loop that reads along it; None where that
        is done in another way."""
        for value, coordinates in _reads(reader, self.nests[reader].loops, self.shapes):
            self._go_along(reader, value, coordinates)
            for made, at in self._made(value, coordinates):
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
        if not self._along or coordinates is None:
            return
        sizes = self.shapes.dims(value)
        at = [AffineConstantExpr(0) if size == 1 else step for size, step in zip(sizes, coordinates, strict=True)]
        for axis, step in enumerate(at) if value in self._along else ():
            if isinstance(step, AffineDimExpr) and self.nests[reader].loops[step.position] == sizes[axis]:
                self._along[value][axis].append((reader, step.position))
        if isinstance(value, OpResult) and value.op not in self.nests:
            for one in sources(value.op, at, self.shapes, AffineCoordinates()) or ():
                self._go_along(reader, one.value, one.at)

    def _made(self, value: SSAValue, coordinates: Coordinates) -> Iterator[tuple[OpResult, Coordinates]]:
        """The values of placed members that are read where `value` is."""
        if not isinstance(value, OpResult):
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
            read = [value for value in _tensors(op) if isinstance(value, OpResult)]
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


def _tensors(op: Operation) -> list[SSAValue]:
    return [
        value
        for value in (*op.operands, *(captured_tensors(op) if op.regions else ()))
        if isinstance(value.type, TensorType)
    ]


def _written(value: OpResult) -> Sequence[int | None]:
    """The loop that writes each dimension of a member's result."""
    if is_generic(value.op):
        return loops_of(StructuredOp(value.op).output_maps[value.index].results)
    assert isinstance(value.type, TensorType)
    return range(len(value.type.get_shape()))


def _reads(op: Operation, extents: Sequence[Dim], shapes: ShapeAnalysis) -> Iterator[tuple[SSAValue, Coordinates]]:
    """What a placed member reads, in coordinates of its loops; an init that the body ignores is not read."""
    if is_generic(op):
        structured = StructuredOp(op)
        for value, map_, argument in zip(structured.operands, structured.maps, structured.body.args, strict=True):
            if argument.first_use is not None:
                yield value, map_.results
        yield from ((value, None) for value in captured_tensors(op))
        return
    found = affine_sources(op, shapes) if extents else None
    yield from (
        ((one.value, one.at) for one in found) if found is not None else ((value, None) for value in _tensors(op))
    )


# what is claimed ------------------------------------------------------------------------------------------------------


def require_shared(loops: FusedLoops, body: Block, shapes: ShapeAnalysis, node: str, code: str = "E0901") -> None:
    """Raises FuselineError (`code`) where the members of `body` do not share what the loops of the dispatch `node` say
    they share."""
    problem = next(_problems(loops, body, shapes), None)
    if problem is not None:
        raise FuselineError(code, f"fusion and the body of the dispatch disagree: {problem}", node=node)


def _problems(loops: FusedLoops, body: Block, shapes: ShapeAnalysis) -> Iterator[str]:
    members = members_of(body)
    for arm, grid in enumerate(loops.grids):
        numbers = [i for i, member in enumerate(loops.members) if member.arm == arm]
        placed = [i for i in numbers if loops.members[i].role is Role.PLACED]
        inlined, views = (
            [members[i] for i in numbers if loops.members[i].role is role] for role in (Role.INLINED, Role.VIEW)
        )
        shared = SharedLoops([members[i] for i in placed], inlined, views, shapes)
        for position in (position for position, extent in enumerate(grid) if extent != 1):
            claimed = {
                members[i]: loops.members[i].grid_loops.index(position)
                for i in placed
                if position in loops.members[i].grid_loops
            }
            yield from _grid_loop_problems(shared, claimed, grid[position], f"grid loop {position} of arm {arm}")
        for one in loops.online:
            if one.product in placed:
                yield from _online_problems(shared, members, one)


def _grid_loop_problems(
    shared: SharedLoops, claimed: Mapping[Operation, int], extent: Dim | None, what: str
) -> Iterator[str]:
    if len(claimed) != len(shared.placed):
        yield f"{what} is a loop of {len(claimed)} of {len(shared.placed)} members"
        return
    for part in shared.parts():
        classes = {shared.classes.of((op, claimed[op])) for op in part}
        if len(classes) > 1 or not all(shared.classes.is_shared(class_, part) for class_ in classes):
            yield f"{what} is no loop that all members share"
    for op, loop in claimed.items() if extent is not None else ():
        if shared.nests[op].loops[loop] != extent:
            yield f"{what} runs to {extent}, a loop of {op.name} to {shared.nests[op].loops[loop]}"


def _online_problems(shared: SharedLoops, members: Sequence[Operation], one: OnlineReduction) -> Iterator[str]:
    claimed = {(members[member], loop) for member, loop in one.loops}
    classes = {shared.classes.of(loop) for loop in claimed}
    found = {(op, loop) for op in shared.placed for class_ in classes for loop in shared.classes.along(op, class_)}
    reduced = {op for op, loop in found if shared.nests[op].iterators[loop] == "reduction"}
    reductions = {members[member] for member in one.roles.reductions}
    if classes & shared.classes.broken or found != claimed or not reductions <= reduced:
        yield "the loop of an online reduction is not what the members have along it"
