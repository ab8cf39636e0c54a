"""The units of a blocked dispatch: what each small kernel inside computes.

A heavy op starts a unit, and takes in the elementwise ops that follow it point by point. Everything else, reductions
and elementwise alike, runs in nests, as few as the order of the values allows.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field

from xdsl.dialects import linalg
from xdsl.ir import Operation, OpResult, SSAValue
from xdsl.ir.affine import AffineDimExpr

from fuseline.analysis.structured import StructuredOp, tensor_operands
from fuseline.targets.cpu.families.blocked.structure import Structure


@dataclass(eq=False)
class Unit:
    """Placed ops that one small kernel computes; `root` is the heavy one, None for a nest."""

    root: linalg.ops.GenericOp | None
    members: list[linalg.ops.GenericOp] = field(default_factory=list[linalg.ops.GenericOp])

    def makes(self, value: SSAValue) -> bool:
        """Whether the unit computes `value`."""
        return isinstance(value, OpResult) and value.op in self.members


def units_of(structure: Structure, placed: Sequence[linalg.ops.GenericOp] | None = None) -> list[Unit]:
    """The units that compute `placed` (all placed ops), in the order in which they run."""
    units: list[Unit] = []
    for op in structure.placed if placed is None else placed:
        if structure.heavy(op):
            units.append(Unit(op, [op]))
            continue
        last = max(
            (i for i, unit in enumerate(units) if any(unit.makes(v) for v in sources(structure, op))), default=-1
        )
        home = units[last] if last >= 0 and _joins(structure, units[last], op) else _nest_from(units, last)
        if home is None:
            home = Unit(None)
            units.append(home)
        home.members.append(op)
    for unit in units:
        if unit.root is not None:
            _give_away(structure, units, unit)
    return units


def _give_away(structure: Structure, units: Sequence[Unit], unit: Unit) -> None:
    """Move what follows a root, but is only read by one nest, there: unless that needs a value that nobody else reads
    back."""
    order = {op: i for i, op in enumerate(structure.placed)}
    for op in reversed(unit.members[1:]):
        homes = {id(other): other for value in op.results for other in readers(structure, units, value)}
        (home,) = homes.values() if len(homes) == 1 else (None,)
        inside = any(value in set(sources(structure, member)) for member in unit.members for value in op.results)
        if home is None or home.root is not None or inside or structure.returned & set(op.results):
            continue
        if all(_kept_anyway(structure, unit, op, value) for value in sources(structure, op) if unit.makes(value)):
            unit.members.remove(op)
            home.members = sorted([*home.members, op], key=order.__getitem__)


def _kept_anyway(structure: Structure, unit: Unit, op: Operation, value: SSAValue) -> bool:
    """Whether a value of the unit outlives it for others than `op`."""
    others = [member for member in structure.placed if member not in unit.members and member is not op]
    return value in structure.returned or any(value in set(sources(structure, member)) for member in others)


def sources(structure: Structure, op: Operation) -> Iterator[SSAValue]:
    """The placed values that an op reads, through rearrangements."""
    pending = list(tensor_operands(op))
    seen: set[SSAValue] = set()
    while pending:
        value = pending.pop()
        if value in seen or not isinstance(value, OpResult):
            continue
        seen.add(value)
        if value.op in structure.moved:
            pending += tensor_operands(value.op)
        elif structure.is_inside(value):
            yield value


def readers(structure: Structure, units: Iterable[Unit], value: SSAValue) -> list[Unit]:
    """The units that read a placed value, its own aside."""
    return [
        unit
        for unit in units
        if not unit.makes(value) and any(value in set(sources(structure, op)) for op in unit.members)
    ]


@dataclass(frozen=True, slots=True)
class Kept:
    """A value that is needed from unit number `first`, which makes it, to the last one that reads it: in scratch, or in
    a result (`stored`)."""

    value: SSAValue
    first: int
    last: int
    stored: bool


def kept_values(structure: Structure, units: Sequence[Unit]) -> list[Kept]:
    """What lies between units. A value that is a result as a whole takes no scratch: it is read back from there."""
    out: list[Kept] = []
    for first, unit in enumerate(units):
        for value in (value for op in unit.members for value in op.results):
            reading = readers(structure, units, value)
            if reading:
                out.append(
                    Kept(value, first, max(units.index(other) for other in reading), value in structure.returned)
                )
    return out


def most_kept(kept: Sequence[Kept], sizes: Sequence[float]) -> float:
    """The most that is needed at a time, where `sizes` are those of the kept values."""
    units = range(1 + max((one.last for one in kept), default=0))
    return max(
        sum(size for one, size in zip(kept, sizes, strict=True) if one.first <= unit <= one.last) for unit in units
    )


def _nest_from(units: Sequence[Unit], first: int) -> Unit | None:
    """A nest at or behind `first`."""
    return next((unit for unit in units[max(first, 0) :] if unit.root is None), None)


def _joins(structure: Structure, unit: Unit, op: linalg.ops.GenericOp) -> bool:
    """Whether an op may be computed with the last unit that it reads: in a nest always, behind a root where it follows
    point by point."""
    if unit.root is None:
        return True
    structured = StructuredOp(op)
    if structured.reduction:
        return False
    points = structure.parallel(unit.root)
    if structure.parallel(op) != points:
        return False
    return all(_in_step(structure, structured, value) for value in structured.inputs if _from(structure, unit, value))


def _from(structure: Structure, unit: Unit, value: SSAValue) -> bool:
    """Whether a value is the unit's, or rearranged from one of its."""
    if not isinstance(value, OpResult) or not structure.is_inside(value):
        return False
    return unit.makes(value) or (
        value.op in structure.moved and any(unit.makes(v) for v in sources(structure, value.op))
    )


def _in_step(structure: Structure, follower: StructuredOp, value: SSAValue) -> bool:
    """Whether every dimension of a value is read along its own axis, and every loop moves along one."""
    loops, map_ = structure.axes.of_op(follower.op), follower.input_maps[follower.inputs.index(value)]
    axes = structure.axes.of_value(value)
    plain = all(
        axis is None or (isinstance(expr, AffineDimExpr) and loops[expr.position] == axis)
        for axis, expr in zip(axes, map_.results, strict=True)
    )
    return plain and {axis for axis in axes if axis is not None} == structure.parallel(follower.op)
