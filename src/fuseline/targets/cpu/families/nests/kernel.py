"""Emission of a schedule: the grid's loop, the groups' loops inside, the stages at each point.

The families loop_nest, elementwise and rows build the same kind of kernel and differ in what they accept.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from xdsl.ir import SSAValue
from xdsl.ir.affine import AffineDimExpr

from fuseline.analysis.structured import StructuredOp
from fuseline.ir.dim import Dim, floor_div, upper_bound
from fuseline.targets.cpu.emit.access import AnyIndex, Index, Split, dtype_of
from fuseline.targets.cpu.emit.evaluator import Evaluator, point_key
from fuseline.targets.cpu.families.combining import combiners
from fuseline.targets.cpu.families.iteration import Node, is_internal
from fuseline.targets.cpu.families.nests.crossed_tiles import CrossedTiles
from fuseline.targets.cpu.families.nests.groups import Group
from fuseline.targets.cpu.families.nests.interleaving import Interleaved
from fuseline.targets.cpu.families.nests.lane_loops import LaneLoop
from fuseline.targets.cpu.families.nests.reducing import LaneReduction, reduce_points, walk
from fuseline.targets.cpu.families.nests.schedule import Schedule
from fuseline.targets.cpu.families.nests.stages import Destination, Stage, body_cost, element_types
from fuseline.targets.cpu.families.nests.tiling import TileRow
from fuseline.targets.cpu.kernel_ir.builder import KernelBuilder
from fuseline.targets.cpu.kernel_ir.types import BITS, MemRef, Operand, Value

CHEAP_BODY = 8
"""Bodies of fewer operations are repeated over several vectors, to hide the latency of the accumulating op."""

UNROLL = 4

Coordinates = dict[Node, AnyIndex]


@dataclass
class Storage:
    """Where a stored value lies for later readers: a scratch buffer over the axes that are walked inside a workgroup."""

    memory: MemRef
    sizes: list[Dim]
    kept: list[int]


class NestEmitter:
    """Builds one kernel from a schedule."""

    def __init__(self, schedule: Schedule, kernel: KernelBuilder) -> None:
        self.schedule, self.kernel = schedule, kernel
        self.staging = schedule.staging
        self.axes = self.staging.axes
        self.e = Evaluator(kernel, self.staging.view)
        self.bounds: dict[Node, tuple[Operand, Operand]] = {}
        self.grid: Coordinates = {}
        self.tile_span: tuple[Operand, Operand] = (0, 1)
        self.scratch: dict[SSAValue, Storage] = {}
        self.read_later = _read_later(schedule.groups)

    def emit(self) -> None:
        """The loop over this thread's workgroups."""
        self.kernel.loop(self.kernel.begin, self.kernel.end, 1, self._workgroup)

    def _workgroup(self, number: Operand) -> None:
        self.e.known.clear()
        self._place(number)
        for group in self.schedule.groups:
            GroupEmitter(self, group).emit()

    # where the workgroup is ------------------------------------------------------------------------------------------------------------

    def _place(self, number: Operand) -> None:
        """The coordinates of workgroup `number`, and its chunk of the lane axis: in elements, or in groups of those that are interleaved."""
        kernel, schedule = self.kernel, self.schedule
        self.grid = {}
        rest = number
        if schedule.chunked is not None:
            rest = self._place_chunk(number)
        if schedule.tile_run:
            rest = self._place_tiles(rest)
        for i, run in reversed(list(enumerate(schedule.runs))):
            extent = self._run_extent(run)
            here = rest if i == 0 else kernel.rem(rest, extent)
            rest = rest if i == 0 else kernel.div(rest, extent)
            self.grid.update(self._along(run, Index(here)))

    def _place_chunk(self, number: Operand) -> Operand:
        kernel, schedule = self.kernel, self.schedule
        assert schedule.chunked is not None
        together = max(1, schedule.interleaved)
        extent, chunks = self.e.frame.operand(floor_div(schedule.lane_extent, together)), self.e.frame.operand(schedule.chunks)
        chunk = schedule.chunk // together
        if chunks == 1:
            self.bounds[schedule.chunked] = (0, extent)
            return number
        last = not schedule.runs and not schedule.tile_run
        here = number if last else kernel.rem(number, chunks)
        lo = kernel.mul(here, chunk)
        whole = isinstance(extent, int) and extent % chunk == 0
        end = kernel.add(lo, chunk)
        self.bounds[schedule.chunked] = (lo, end if whole else kernel.min(end, extent))
        return number if last else kernel.div(number, chunks)

    def _place_tiles(self, number: Operand) -> Operand:
        kernel, schedule = self.kernel, self.schedule
        extent, tiles = self._run_extent(schedule.tile_run), self.e.frame.operand(schedule.tiles)
        here = kernel.rem(number, tiles) if schedule.runs else number
        lo = kernel.mul(here, schedule.tile)
        self.tile_span = (lo, kernel.min(kernel.add(lo, schedule.tile), extent))
        return kernel.div(number, tiles) if schedule.runs else number

    def tile_coordinates(self, at: Operand, stride: int = 0) -> Coordinates:
        """The coordinates that a step along the tiled run sets; stride 1: lanes run along it."""
        return self._along(self.schedule.tile_run, Index(at, stride))

    def _run_extent(self, run: Sequence[Node]) -> Operand:
        return self.e.frame.product([self.axes.extents[axis] for axis in run])

    def _along(self, run: Sequence[Node], whole: AnyIndex) -> Coordinates:
        """The coordinates of a run's axes at linear index `whole`."""
        sizes = tuple(self.axes.extents[axis] for axis in run)
        return dict(zip(run, self.e.frame.split(whole, sizes), strict=True))

    def span(self, axis: Node) -> tuple[Operand, Operand]:
        """The range of an inner axis in this workgroup."""
        found = self.bounds.get(axis)
        return found if found is not None else (0, self.e.frame.operand(self.axes.extents[axis]))

    def lane_coordinates(self, axis: Node, index: Index) -> Coordinates:
        """The coordinates that a step along the lane axis sets: its whole run's, when it is the chunked one."""
        return self._along(self.schedule.lane_run, index) if axis == self.schedule.chunked else {axis: index}

    def index_of(self, value: SSAValue, at: Coordinates) -> list[AnyIndex]:
        """The point `at` as coordinates of `value`."""
        return [Index(0) if axis is None else at[axis] for axis in self.axes.of_value(value)]

    # where values are kept -------------------------------------------------------------------------------------------------------------

    def inside(self, value: SSAValue) -> list[int]:
        """The dimensions of `value` that vary within a workgroup."""
        return [i for i, axis in enumerate(self.axes.of_value(value)) if axis is not None and axis not in self.grid]

    def keep(self, value: SSAValue, index: Sequence[AnyIndex], result: Value, active: Operand | None, where: Sequence[Destination]) -> None:
        """Write elements of a stored value to its place in the results, or to scratch if somebody reads it later."""
        for destination in where:
            self._write(destination, index, result, active)
        host = self.staging.hosts.get(value)
        if host is not None:
            self._write(host, index, result, active)
        elif not where and value in self.read_later and self.inside(value):
            storage = self._storage(value)
            flat = self.e.frame.linear(self._local(value, index, result.type.lanes), storage.sizes, result.type.lanes)
            self.e.frame.store(storage.memory, flat, result, active)

    def _write(self, destination: Destination, index: Sequence[AnyIndex], value: Value, active: Operand | None) -> None:
        frame = self.e.frame
        frame.store(frame.result(destination.position), frame.placed(destination.place, index, value.type.lanes), value, active)

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
        axes, run = self.axes.of_value(value), self.schedule.lane_run
        return [i for i in self.inside(value) if axes[i] not in run[1:]]

    def _in_chunk(self, value: SSAValue, dimension: int) -> bool:
        run = self.schedule.lane_run
        return bool(run) and self.axes.of_value(value)[dimension] == run[0]

    def _room(self, value: SSAValue, dimension: int) -> int:
        if self._in_chunk(value, dimension):
            return self.schedule.chunk
        size = upper_bound(self.staging.view.shapes.dims(value)[dimension])
        assert size is not None
        return size

    def _local(self, value: SSAValue, index: Sequence[AnyIndex], lanes: int) -> list[AnyIndex]:
        """Coordinates within the workgroup's part of `value`."""
        frame, out = self.e.frame, list[AnyIndex]()
        for i in self._storage(value).kept:
            at = index[i]
            if self._in_chunk(value, i):
                whole = at.whole if isinstance(at, Split) else at
                lo = self.bounds[self.schedule.lane_run[-1]][0]
                at = frame.plus(frame.resolve(whole, lanes), Index(self.kernel.sub(0, lo)), lanes)
            out.append(at)
        return out

    def publish(self, stage: Stage) -> None:
        """Let later stages read what this one stored.

        An argument that is copied into a result is still read from its own buffer: other workgroups write the rest of the copy.
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
        frame = self.e.frame
        return frame.load(frame.result(destination.position), frame.placed(destination.place, index, lanes), lanes, active)

    def _read_scratch(self, value: SSAValue, index: Sequence[AnyIndex], lanes: int, active: Operand | None) -> Value:
        storage = self.scratch[value]
        flat = self.e.frame.linear(self._local(value, index, lanes), storage.sizes, lanes)
        return self.e.frame.load(storage.memory, flat, lanes, active)


def _read_later(groups: Sequence[Group]) -> set[SSAValue]:
    """Values that a stage of another group than their own reads."""
    home = {value: group for group in groups for stage in group.stages for value in stage.values}
    return {value for group in groups for stage in group.stages for value in stage.reads if home.get(value) is not group}


class GroupEmitter:
    """The loops of one group and what its stages do at each point."""

    def __init__(self, nest: NestEmitter, group: Group) -> None:
        self.nest, self.group = nest, group
        self.kernel, self.e = nest.kernel, nest.e
        types = {t for stage in group.stages for t in element_types(nest.staging, stage)}
        masked = all(max(BITS[t], 8) in self.kernel.machine.masked_bits for t in types)
        lanes = group.lanes if group.lane_axis is not None or group.lane_reduction is not None else 1
        self.lane_loop = LaneLoop(self.kernel, lanes, unroll=self._unroll(), masked=masked)
        across = self.lane_loop if group.lane_axis is not None else LaneLoop(self.kernel, 1)
        self.together = {stage: self._lane_reduction(stage, across) for stage in group.together}

    def _unroll(self) -> int:
        reducing = [stage for stage in self.group.stages if stage.op is not None]
        inlined = {op for stage in self.group.stages for op in self.nest.staging.inlined(stage)}
        cheap = sum(body_cost(op) for op in inlined) < CHEAP_BODY
        return UNROLL if reducing and cheap else 1

    def _lane_reduction(self, stage: Stage, lane_loop: LaneLoop) -> LaneReduction:
        assert stage.op is not None
        found = combiners(stage.op)
        assert found is not None
        return LaneReduction(self.e, stage.op, found, lane_loop)

    def emit(self) -> None:
        """All loops of the group, then what it hands to later groups."""
        carried = [value for reduction in self.together.values() for value in reduction.initial()]
        outer = [axis for axis in self.group.inner if axis != self.group.lane_axis]
        state = self._nest(outer, dict(self.nest.grid), carried)
        self._finish(list(state))
        for stage in self.group.stages:
            self.nest.publish(stage)

    def _nest(self, outer: Sequence[Node], at: Coordinates, carried: Sequence[Value]) -> Sequence[Value]:
        if outer:
            lo, hi = self.nest.span(outer[0])
            axis = outer[0]

            def step(i: Operand, *state: Value) -> Sequence[Value]:
                return self._nest(outer[1:], {**at, **self.nest.lane_coordinates(axis, Index(i))}, state)

            return self.kernel.loop(lo, hi, 1, step, carried)
        if self.group.lane_axis is None:
            return self._points([at], 1, None, carried)
        return self._along_lanes(self.group.lane_axis, at, carried)

    def _along_lanes(self, axis: Node, at: Coordinates, carried: Sequence[Value]) -> Sequence[Value]:
        lo, hi = self.nest.span(axis)
        if self.nest.schedule.crossed:
            CrossedTiles(self.nest, self.group.stages, self.lane_loop).emit(axis, at, lo, hi)
            return carried
        if self.nest.schedule.interleaved:
            Interleaved(self.nest, self.group.stages, self.lane_loop).emit(at, lo, hi)
            return carried

        def body(starts: list[Operand], lanes: int, active: Operand | None, state: tuple[Value, ...]) -> Sequence[Value]:
            stride = 1 if lanes > 1 else 0
            points = [{**at, **self.nest.lane_coordinates(axis, Index(start, stride))} for start in starts]
            if self.nest.schedule.tile_run:
                self._tiles(points[0], lanes, active)
                return state
            return self._points(points, lanes, active, state)

        return self.lane_loop.run(lo, hi, body, carried)

    def _tiles(self, at: Coordinates, lanes: int, active: Operand | None) -> None:
        """All rows of the workgroup's tiles at one place of the lane axis: whole tiles, then single rows."""
        kernel, (lo, hi) = self.kernel, self.nest.tile_span

        def row(t: Operand) -> None:
            self._points([{**at, **self.nest.tile_coordinates(t)}], lanes, active, [])

        def tile(t: Operand) -> None:
            for number in range(lanes):
                self.e.frame.tile = TileRow(kernel, t, number, lanes)
                row(kernel.add(t, number))
            self.e.frame.tile = None

        whole = lo
        if lanes > 1 and active is None:
            whole = kernel.add(lo, kernel.mul(kernel.div(kernel.sub(hi, lo), lanes), lanes))
            kernel.loop(lo, whole, lanes, tile)
        kernel.loop(whole, hi, 1, row)

    # stages at a point -----------------------------------------------------------------------------------------------------------------

    def _points(self, points: Sequence[Coordinates], lanes: int, active: Operand | None, carried: Sequence[Value]) -> Sequence[Value]:
        state, at = list(carried), 0
        for stage in self.group.stages:
            if stage in self.together:
                width = len(self.together[stage].initial())
                state[at : at + width] = self._accumulate(stage, points, lanes, active, state[at : at + width])
                at += width
            elif stage.op is None:
                for point in points:
                    self._element(stage, point, lanes, active)
            elif self.group.lane_reduction is not None and stage.reduction and combiners(stage.op) is not None:
                self._reduce_across(stage, points[0])
            else:
                self._reduce(stage, points, lanes, active)
        return state

    def _element(self, stage: Stage, point: Coordinates, lanes: int, active: Operand | None) -> None:
        (value,) = stage.values
        index = self.nest.index_of(value, point)
        self._made(stage, value, index, self.e.value_at(value, index, lanes, active), active)

    def _made(self, stage: Stage, value: SSAValue, index: Sequence[AnyIndex], result: Value, active: Operand | None) -> None:
        """Keep a value just made, and let the rest of the group (or, where nothing varies inside, of the workgroup) have it at once."""
        if not self.nest.inside(value):
            self.e.known[value] = lambda *_, r=result: r
        self.kernel.remember(point_key(value, index, result.type.lanes, active), result)
        self.nest.keep(value, index, result, active, stage.destinations.get(value, []))

    def _loops(self, stage: Stage, point: Coordinates) -> list[AnyIndex]:
        """The point as loops of the stage's op; reduction loops that the group does not walk are at 0."""
        assert stage.op is not None
        view = StructuredOp(stage.op)
        axes = self.nest.axes.of_op(stage.op)
        loops: list[AnyIndex] = [Index(0)] * view.rank
        for i, axis in enumerate(axes):
            if axis is not None and axis in point:
                loops[i] = point[axis]
        for expr, axis in zip(view.output_maps[0].results, self.nest.axes.of_value(stage.values[0]), strict=True):
            if isinstance(expr, AffineDimExpr) and axis is not None:
                loops[expr.position] = point[axis]
        return loops

    def _reduce(self, stage: Stage, points: Sequence[Coordinates], lanes: int, active: Operand | None) -> None:
        assert stage.op is not None
        loops = [self._loops(stage, point) for point in points]
        results = reduce_points(self.e, StructuredOp(stage.op), loops, lanes, active)
        for point, values in zip(points, results, strict=True):
            for value, result in zip(stage.values, values, strict=True):
                self._made(stage, value, self.nest.index_of(value, point), result, active)

    def _reduce_across(self, stage: Stage, point: Coordinates) -> None:
        """One point, the lanes along the reduction loop that is contiguous in memory."""
        assert stage.op is not None
        reduction = self._lane_reduction(stage, self.lane_loop)
        view, axes = StructuredOp(stage.op), self.nest.axes.of_op(stage.op)
        extents = [self.e.frame.operand(size) for size in view.loops(self.e.view.shapes)]
        across = self._across(stage, axes)
        base = self._loops(stage, point)

        def visit(taps: Any, state: Sequence[Value]) -> Sequence[Value]:
            def body(starts: list[Operand], lanes: int, active: Operand | None, inner: tuple[Value, ...]) -> Sequence[Value]:
                stride = 1 if lanes > 1 else 0
                here = [[self._tap(i, c, taps, across, start, stride) for i, c in enumerate(base)] for start in starts]
                return reduction.update(inner, here, lanes, active)

            return self.lane_loop.run(0, extents[across], body, tuple(state))

        others = [(loop, extents[loop]) for loop in view.reduction if loop != across]
        state = walk(self.e, others, {}, reduction.initial(), visit)
        for value, result in zip(stage.values, reduction.finish(state, base), strict=True):
            self._made(stage, value, self.nest.index_of(value, point), result, None)

    def _across(self, stage: Stage, axes: Sequence[Node | None]) -> int:
        """The reduction loop for the lanes: the group's choice, or the innermost one of a stage that lacks it."""
        assert stage.op is not None
        loops = StructuredOp(stage.op).reduction
        chosen = [i for i in loops if axes[i] is not None and axes[i] == self.group.lane_reduction]
        return chosen[0] if chosen else loops[-1]

    def _tap(self, i: int, coordinate: AnyIndex, taps: Any, across: int, start: Operand, stride: int) -> AnyIndex:
        if i == across:
            return Index(start, stride)
        return Index(taps[i]) if i in taps else coordinate

    # reductions over the group's own loops -----------------------------------------------------------------------------------------------

    def _accumulate(self, stage: Stage, points: Sequence[Coordinates], lanes: int, active: Operand | None, state: Sequence[Value]) -> Sequence[Value]:
        reduction = self.together[stage]
        return reduction.update(state, [self._loops(stage, point) for point in points], lanes, active)

    def _finish(self, state: list[Value]) -> None:
        at = 0
        for stage, reduction in self.together.items():
            width = len(reduction.initial())
            results = reduction.finish(state[at : at + width], self._loops(stage, self.nest.grid))
            at += width
            for value, result in zip(stage.values, results, strict=True):
                self._made(stage, value, self.nest.index_of(value, self.nest.grid), result, None)
