"""The workgroup of a schedule under construction: its coordinates, its part of the inner axes, and where it keeps
values."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from types import MappingProxyType

from xdsl.ir import SSAValue

from fuseline.dispatch.is_internal import is_internal
from fuseline.dispatch.loop_ref import LoopRef
from fuseline.ir.dim import Dim, floor_div, upper_bound
from fuseline.targets.cpu.emit.body_emitter import BodyEmitter, ValueSource
from fuseline.targets.cpu.emit.coordinates import AnyIndex, Index
from fuseline.targets.cpu.emit.dtypes import dtype_of
from fuseline.targets.cpu.families.nests.column_prefetch import ColumnPrefetch
from fuseline.targets.cpu.families.nests.groups import Group
from fuseline.targets.cpu.families.nests.schedule import Schedule
from fuseline.targets.cpu.families.nests.stages import Destination, Stage
from fuseline.targets.cpu.kernel_ir.builder import KernelBuilder
from fuseline.targets.cpu.kernel_ir.types import MemRef, Operand, Value

Coordinates = dict[LoopRef, AnyIndex]


@dataclass
class Storage:
    """Where a stored value lies for later readers: a scratch buffer over the axes that are traversed inside a
    workgroup."""

    memory: MemRef
    sizes: list[Dim]
    kept: list[int]


class Workgroup:
    """One point of the grid of a schedule: its part of every axis, and the memory for what later groups read."""

    def __init__(
        self, schedule: Schedule, kernel: KernelBuilder, ahead: Mapping[SSAValue, ValueSource] = MappingProxyType({})
    ) -> None:
        self.schedule, self.kernel, self.ahead = schedule, kernel, ahead
        self.staging = schedule.staging
        self.axes = self.staging.axes
        self.e = BodyEmitter(kernel, self.staging.view)
        self.bounds: dict[LoopRef, tuple[Operand, Operand]] = {}
        self.grid: Coordinates = {}
        self.tile_span: tuple[Operand, Operand] = (0, 1)
        self.scratch: dict[SSAValue, Storage] = {}
        self.read_later = _read_later(schedule.groups)
        self.prefetch = ColumnPrefetch(kernel, schedule, self.e.buffers)

    # where the workgroup is -------------------------------------------------------------------------------------------

    def enter(self, number: Operand) -> None:
        """Begin workgroup `number`, which knows nothing of another."""
        self.e.known.clear()
        self.e.known.update(self.ahead)
        self._place(number)

    def _place(self, number: Operand) -> None:
        """The coordinates of workgroup `number`, and its chunk of the lane axis: in elements, or in groups of those
        that are interleaved."""
        kernel, schedule = self.kernel, self.schedule
        self.grid = {}
        rest = number
        if schedule.chunked is not None:
            rest = self._place_chunk(number)
        if schedule.grouped:
            self._place_groups()
        outermost, *inner = self._order() or [[]]
        for run in reversed(inner):
            extent = self._steps(run)
            self._place_run(run, kernel.rem(rest, extent))
            rest = kernel.div(rest, extent)
        if outermost:
            self._place_run(outermost, rest)

    def _order(self) -> list[list[LoopRef]]:
        """The runs of the grid, outermost first. A single row of tiles comes first: it counts from what is not known
        to be 0, as `TileRow` asks. Vectors that are moved go on beside those before, while the cache lines of all rows
        of a tile are near, before they come to other rows."""
        schedule = self.schedule
        runs = list(schedule.collapsed_loops)
        if schedule.tiled_loops:
            at = 0 if schedule.tiles == 1 else len(runs) - (1 if schedule.moved and runs else 0)
            runs.insert(at, schedule.tiled_loops)
        return runs

    def _steps(self, run: Sequence[LoopRef]) -> Operand:
        tiled = run is self.schedule.tiled_loops
        return self.e.buffers.operand(self.schedule.tiles) if tiled else self._run_extent(run)

    def _place_run(self, run: Sequence[LoopRef], here: Operand) -> None:
        if run is not self.schedule.tiled_loops:
            self.grid.update(self._along(run, Index(here)))
            return
        kernel, rows = self.kernel, self.schedule.tile
        lo = kernel.mul(here, rows)
        self.tile_span = (lo, kernel.min(kernel.add(lo, rows), self._run_extent(run)))

    def _place_chunk(self, number: Operand) -> Operand:
        kernel, schedule = self.kernel, self.schedule
        assert schedule.chunked is not None
        together = max(1, schedule.interleaved)
        extent, chunks = (
            self.e.buffers.operand(floor_div(schedule.lane_extent, together)),
            self.e.buffers.operand(schedule.chunks),
        )
        chunk = schedule.chunk // together
        if chunks == 1:
            self.bounds[schedule.chunked] = (0, extent)
            return number
        last = not schedule.collapsed_loops and not schedule.tiled_loops
        here = number if last else kernel.rem(number, chunks)
        lo = kernel.mul(here, chunk)
        whole = isinstance(extent, int) and extent % chunk == 0
        end = kernel.add(lo, chunk)
        self.bounds[schedule.chunked] = (lo, end if whole else kernel.min(end, extent))
        return number if last else kernel.div(number, chunks)

    def _place_groups(self) -> None:
        """The groups of columns behind the chunk, which are whole."""
        group, column = self.schedule.vector_loops
        width = self.e.buffers.operand(self.axes.extents[column])
        lo, hi = self.bounds[column]
        self.bounds[group] = (self.kernel.div(lo, width), self.kernel.div(hi, width))

    def tile_coordinates(self, at: Operand, stride: int = 0) -> Coordinates:
        """The coordinates that a step along the tiled run sets; stride 1: lanes run along it."""
        return self._along(self.schedule.tiled_loops, Index(at, stride))

    def _run_extent(self, run: Sequence[LoopRef]) -> Operand:
        return self.e.buffers.product([self.axes.extents[axis] for axis in run])

    def _along(self, run: Sequence[LoopRef], whole: AnyIndex) -> Coordinates:
        """The coordinates of a run's axes at linear index `whole`."""
        sizes = tuple(self.axes.extents[axis] for axis in run)
        return dict(zip(run, self.e.buffers.delinearize(whole, sizes), strict=True))

    def span(self, axis: LoopRef) -> tuple[Operand, Operand]:
        """The range of an inner axis in this workgroup."""
        found = self.bounds.get(axis)
        return found if found is not None else (0, self.e.buffers.operand(self.axes.extents[axis]))

    def lane_coordinates(self, axis: LoopRef, index: Index) -> Coordinates:
        """The coordinates that a step along the lane axis sets: its whole run's, when it is the chunked one."""
        return self._along(self.schedule.vector_loops, index) if axis == self.schedule.chunked else {axis: index}

    def traversed_with(self, axis: LoopRef | None) -> Sequence[LoopRef | None]:
        """The axes that a traversal of the lane axis `axis` steps along."""
        return self.schedule.vector_loops if axis is not None and axis == self.schedule.chunked else (axis,)

    def index_of(self, value: SSAValue, at: Coordinates) -> list[AnyIndex]:
        """The point `at` as coordinates of `value`."""
        return [Index(0) if axis is None else at[axis] for axis in self.axes.of_value(value)]

    # where values are kept --------------------------------------------------------------------------------------------

    def inside(self, value: SSAValue) -> list[int]:
        """The dimensions of `value` that vary within a workgroup."""
        return [i for i, axis in enumerate(self.axes.of_value(value)) if axis is not None and axis not in self.grid]

    def keep(
        self,
        value: SSAValue,
        index: Sequence[AnyIndex],
        result: Value,
        active: Operand | None,
        where: Sequence[Destination],
    ) -> None:
        """Write elements of a stored value to its place in the results, or to scratch if somebody reads it later."""
        for destination in where:
            self._write(destination, index, result, active)
        host = self.staging.hosts.get(value)
        if host is not None:
            self._write(host, index, result, active)
        elif not where and value in self.read_later and self.inside(value):
            storage = self._storage(value)
            flat = self.e.buffers.linear(self._local(value, index, result.type.lanes), storage.sizes, result.type.lanes)
            self.e.buffers.store(storage.memory, flat, result, active)

    def _write(self, destination: Destination, index: Sequence[AnyIndex], value: Value, active: Operand | None) -> None:
        buffers = self.e.buffers
        buffers.store(
            buffers.result(destination.position),
            buffers.placed(destination.box, index, value.type.lanes),
            value,
            active,
        )

    def _storage(self, value: SSAValue) -> Storage:
        found = self.scratch.get(value)
        if found is None:
            kept = self._kept(value)
            sizes: list[Dim] = [self._room(value, i) for i in kept]
            elements = 1
            for size in sizes:
                assert isinstance(size, int)
                elements *= size
            found = self.scratch[value] = Storage(self.kernel.scratch(dtype_of(value.type), elements), sizes, kept)
        return found

    def _kept(self, value: SSAValue) -> list[int]:
        """The dimensions that scratch needs: a chunked run of axes is one dimension, stood for by its first."""
        axes, run = self.axes.of_value(value), self.schedule.vector_loops
        return [i for i in self.inside(value) if axes[i] not in run[1:]]

    def _in_chunk(self, value: SSAValue, dimension: int) -> bool:
        run = self.schedule.vector_loops
        return bool(run) and self.axes.of_value(value)[dimension] == run[0]

    def _is_whole(self, value: SSAValue) -> bool:
        """Whether a value has all axes of the chunked run, or only its groups."""
        return self.schedule.vector_loops[-1] in self.axes.of_value(value)

    def _room(self, value: SSAValue, dimension: int) -> int:
        if self._in_chunk(value, dimension):
            if self._is_whole(value):
                return self.schedule.chunk
            width = self.axes.extents[self.schedule.vector_loops[-1]]
            assert isinstance(width, int)
            return -(-self.schedule.chunk // width)
        size = upper_bound(self.staging.view.shapes.dims(value)[dimension])
        assert size is not None
        return size

    def _local(self, value: SSAValue, index: Sequence[AnyIndex], lanes: int) -> list[AnyIndex]:
        """Coordinates within the workgroup's part of `value`."""
        out = list[AnyIndex]()
        for i in self._storage(value).kept:
            at = index[i]
            if self._in_chunk(value, i):
                at = self._in_run(value, index, lanes)
            out.append(at)
        return out

    def _in_run(self, value: SSAValue, index: Sequence[AnyIndex], lanes: int) -> Index:
        """The place in the chunk of the axes that `value` has of its run."""
        buffers, axes, run = self.e.buffers, self.axes.of_value(value), self.schedule.vector_loops
        own = [(at, axis) for at, axis in zip(index, axes, strict=True) if axis in run]
        flat = buffers.linear([at for at, _ in own], [self.axes.extents[axis] for _, axis in own], lanes)
        lo = self.bounds[run[-1] if self._is_whole(value) else run[0]][0]
        return buffers.plus(flat, Index(self.kernel.sub(0, lo)), lanes)

    def publish(self, stage: Stage) -> None:
        """Let later stages read what this one stored.

        An argument that is copied into a result is still read from its own buffer: other workgroups write the rest of
        the copy.
        """
        for value in stage.values:
            if not is_internal(value):
                continue
            places = stage.destinations.get(value)
            where = places[0] if places else self.staging.hosts.get(value)
            if where is not None:
                self.e.known[value] = lambda index, lanes, active, d=where: self._read(d, index, lanes, active)
            elif value in self.scratch:
                self.e.known[value] = lambda index, lanes, active, v=value: self._read_scratch(v, index, lanes, active)

    def _read(self, destination: Destination, index: Sequence[AnyIndex], lanes: int, active: Operand | None) -> Value:
        buffers = self.e.buffers
        return buffers.load(
            buffers.result(destination.position), buffers.placed(destination.box, index, lanes), lanes, active
        )

    def _read_scratch(self, value: SSAValue, index: Sequence[AnyIndex], lanes: int, active: Operand | None) -> Value:
        storage = self.scratch[value]
        flat = self.e.buffers.linear(self._local(value, index, lanes), storage.sizes, lanes)
        return self.e.buffers.load(storage.memory, flat, lanes, active)


def _read_later(groups: Sequence[Group]) -> set[SSAValue]:
    """Values that a stage of another group than their own reads."""
    home = {value: group for group in groups for stage in group.stages for value in stage.values}
    return {
        value for group in groups for stage in group.stages for value in stage.reads if home.get(value) is not group
    }
