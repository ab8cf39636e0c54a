"""The plan of a blocked dispatch: the block, and a plan of some other family for each unit."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

from xdsl.dialects import tensor
from xdsl.ir import BlockArgument, OpResult, SSAValue

from fuseline.analysis.structured import tensor_operands
from fuseline.dispatch.result_places import place_of
from fuseline.dispatch.view import DispatchView
from fuseline.ir import dim as d
from fuseline.ir.dim import Dim
from fuseline.targets.cpu.emit.coordinates import static_upper_bound
from fuseline.targets.cpu.emit.dtypes import dtype_of
from fuseline.targets.cpu.families.blocked.block import Choice
from fuseline.targets.cpu.families.blocked.entry import Sink, UnitEntry, UnitWriter
from fuseline.targets.cpu.families.blocked.phases import Stream
from fuseline.targets.cpu.families.blocked.streaming import Carried
from fuseline.targets.cpu.families.blocked.structure import Structure
from fuseline.targets.cpu.families.blocked.tiles import Tile, Tiling
from fuseline.targets.cpu.families.blocked.units import Kept, Unit, most_kept, readers
from fuseline.targets.cpu.families.family import Family, Plan
from fuseline.targets.cpu.kernel_ir.types import BYTES
from fuseline.targets.target import PackedLayout, Refusal


@dataclass(frozen=True)
class PlannedUnit:
    """A unit with the family that lowers it. `arguments` and `sinks` are what its bindings are in the dispatch, `extra`
    the first of its own."""

    family: Family
    plan: Plan
    arguments: tuple[SSAValue, ...]
    sinks: tuple[Sink, ...]
    extra: int


@dataclass(frozen=True, slots=True)
class StreamedUnits:
    """Units `first` to `end` run for every tile of a streamed loop; `carried` go from one to the next, each with its
    elements in a block at most."""

    tile: Tile
    first: int
    end: int
    carried: tuple[tuple[Carried, int], ...]


@dataclass(frozen=True, kw_only=True)
class BlockedPlan(Plan):
    """Units in order, the tiles of the grid in order, and the values that lie in scratch with the last unit that reads
    each."""

    units: tuple[PlannedUnit, ...]
    tiles: tuple[Tile, ...]
    buffers: Mapping[SSAValue, int]
    last_reader: Mapping[SSAValue, int]
    streamed: StreamedUnits | None = None


@dataclass(frozen=True)
class Form:
    """One way to evaluate a dispatch block by block: its units, what lies between them, and the tiles with their
    price."""

    structure: Structure
    units: tuple[Unit, ...]
    kept: tuple[Kept, ...]
    choice: Choice
    stream: Stream | None = None

    @property
    def tiling(self) -> Tiling:
        """The tiles of all loops."""
        return Tiling(self.structure, self.choice.tiles)

    @property
    def tiles(self) -> tuple[Tile, ...]:
        """The tiles of the grid, outermost first."""
        return tuple(
            tile for axis, tile in self.choice.tiles.items() if self.stream is None or axis != self.stream.axis
        )

    @property
    def streamed(self) -> StreamedUnits | None:
        """The part that runs for every block of a streamed loop."""
        stream, tiling = self.stream, self.tiling
        if stream is None:
            return None
        carried = tuple((one, scratch_elements(tiling, one.state) or 0) for one in stream.carried)
        return StreamedUnits(tiling.tiles[stream.axis], stream.first, stream.end, carried)

    def last_readers(self, planned: Sequence[PlannedUnit]) -> dict[SSAValue, int]:
        """The last unit that needs each argument of a unit: what is read in the blocks of a streamed loop lives until
        the last unit there."""
        found = {value: i for i, unit in enumerate(planned) for value in unit.arguments}
        if self.stream is None:
            return found
        first, last = self.stream.first, self.stream.end - 1
        made = {sink.value: i for i, unit in enumerate(planned) for sink in unit.sinks}
        found = {value: max(i, last) if i >= first > made.get(value, first) else i for value, i in found.items()}
        found |= {one.following: last for one in self.stream.carried}
        return found | {one.state: self.stream.last_reader(one) for one in self.stream.carried}


Choose = Callable[[DispatchView], "tuple[Family, Plan]"]


def sinks_of(structure: Structure, tiling: Tiling) -> dict[SSAValue, list[Sink]] | Refusal:
    """Where the values that leave the dispatch go."""
    view = structure.view
    found: dict[SSAValue, list[Sink]] = {}
    for position, result in enumerate(view.results):
        place = place_of(view.shapes, result)
        parts = _parts(structure, place.value)
        if parts is None or (place.sliced and len(parts) > 1):
            return Refusal("result-moved", f"result {position} is an argument, or rearranged on the way out")
        for value, axis, offset in parts:
            box = tiling.box_of(value)
            dims = place.dims if len(parts) == 1 else view.shapes.dims(place.value)
            at = [d.add(x, y) for x, y in zip(box.offsets, place.offsets or (0,) * len(box.offsets), strict=True)]
            at[axis] = d.add(at[axis], offset)
            found.setdefault(value, []).append(Sink(value, position, dims, tuple(at)))
    return found


def _parts(structure: Structure, value: SSAValue) -> list[tuple[SSAValue, int, Dim]] | None:
    """A computed result is its own only part; those of a concat lie one behind the other along an axis."""
    if not isinstance(value, OpResult):
        return None
    if value.op in structure.placed:
        return [(value, 0, 0)] if structure.view.shapes.dims(value) else None
    if not isinstance(value.op, tensor.ConcatOp):
        return None
    axis, offset = value.op.dim.value.data, 0
    out: list[tuple[SSAValue, int, Dim]] = []
    for part in value.op.inputs:
        if not isinstance(part, OpResult) or part.op not in structure.placed:
            return None
        out.append((part, axis, offset))
        offset = d.add(offset, structure.view.shapes.dims(part)[axis])
    return out


def write_units(form: Form, sinks: Mapping[SSAValue, Sequence[Sink]]) -> list[UnitEntry]:
    """The entry functions of the units."""
    tiling, units, structure = form.tiling, form.units, form.structure
    handed_on = {one.following for one in form.stream.carried} if form.stream is not None else set[SSAValue]()
    read_back = {
        value
        for value, places in sinks.items()
        if readers(structure, units, value) and _whole(structure, value, places)
    }
    packable = _packable(structure, units)
    out: list[UnitEntry] = []
    for number, unit in enumerate(units):
        mine = [
            sink
            for op in unit.members
            for value in op.results
            for sink in _outputs(structure, units, value, sinks, read_back, handed_on)
        ]
        writer = UnitWriter(tiling, unit.members, read_back, packable)
        out.append(writer.write(f"{structure.view.entry.sym_name.data}_unit_{number}", unit.members, mine))
    return out


def _whole(structure: Structure, value: SSAValue, places: Sequence[Sink]) -> bool:
    """Whether the first result that holds a value holds nothing else: it can be read back from there."""
    return places[0].dims == structure.view.shapes.dims(value)


def _outputs(
    structure: Structure, units: Sequence[Unit], value: SSAValue, sinks: Mapping[SSAValue, Sequence[Sink]],
    read_back: set[SSAValue],
    handed_on: set[SSAValue],
) -> list[Sink]:  # fmt: skip
    out = list(sinks.get(value, ()))
    if value not in read_back and (value in handed_on or readers(structure, units, value)):
        out.append(Sink(value))
    return out


def _packable(structure: Structure, units: Sequence[Unit]) -> set[SSAValue]:
    """Constant arguments that only one unit reads: their bytes may be laid out for it."""
    found: set[SSAValue] = set()
    for argument in structure.view.tensors:
        if structure.view.is_constant(argument) and sum(_reads(structure, unit, argument) for unit in units) == 1:
            found.add(argument)
    return found


def _reads(structure: Structure, unit: Unit, argument: BlockArgument) -> bool:
    """Whether a unit reads an argument itself, in place or rearranged."""
    pending = [value for op in unit.members for value in tensor_operands(op)]
    seen: set[SSAValue] = set()
    while pending:
        value = pending.pop()
        if value is argument:
            return True
        if isinstance(value, OpResult) and value not in seen and value.op not in structure.placed:
            seen.add(value)
            pending += tensor_operands(value.op)
    return False


def scratch_elements(tiling: Tiling, value: SSAValue) -> int | None:
    """Elements of the block's part of a value at most; None without a bound."""
    return static_upper_bound(tiling.box_of(value).sizes)


def scratch_bytes(tiling: Tiling, kept: Sequence[Kept]) -> int | None:
    """Bytes of the block's parts of what lies in scratch at a time, at most; None without a bound."""
    sizes: list[int] = []
    held = [one for one in kept if not one.stored]
    for one in held:
        elements = scratch_elements(tiling, one.value)
        if elements is None:
            return None
        sizes.append(elements * BYTES[dtype_of(one.value.type)])
    return int(most_kept(held, sizes))


def plan_units(
    view: DispatchView, entries: Sequence[UnitEntry], choose: Choose
) -> tuple[list[PlannedUnit], dict[int, PackedLayout], list[bytes]]:
    """A family and a plan for each unit, and what they ask of the dispatch's constants."""
    planned: list[PlannedUnit] = []
    layouts: dict[int, PackedLayout] = {}
    extras: list[bytes] = []
    first = len(view.tensors) + len(view.results)
    for entry in entries:
        family, plan = choose(DispatchView(entry.entry, serial=True))
        planned.append(PlannedUnit(family, plan, entry.arguments, entry.sinks, first + len(extras)))
        extras += plan.extra_constants
        for position, layout in plan.constant_layouts.items():
            argument = entry.arguments[position]
            assert isinstance(argument, BlockArgument)
            layouts[view.tensors.index(argument)] = layout
    return planned, layouts, extras
