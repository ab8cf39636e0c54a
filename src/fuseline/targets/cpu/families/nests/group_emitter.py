"""Emission of a group of stages: the loops inside a workgroup, and the stages at each point."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from xdsl.ir import SSAValue
from xdsl.ir.affine import AffineDimExpr

from fuseline.analysis.structured import StructuredOp, is_generic
from fuseline.dispatch.loop_ref import LoopRef
from fuseline.ir.dim import upper_bound
from fuseline.targets.cpu.combinators.lanes import LaneLoop, is_masked
from fuseline.targets.cpu.combinators.unroll import unroll
from fuseline.targets.cpu.emit.coordinates import AnyIndex, Index
from fuseline.targets.cpu.emit.puller import point_key
from fuseline.targets.cpu.families.combining import combiners
from fuseline.targets.cpu.families.nests.groups import Group
from fuseline.targets.cpu.families.nests.interleaved_stores import InterleavedStores
from fuseline.targets.cpu.families.nests.recompute_cost import body_cost
from fuseline.targets.cpu.families.nests.reducing import LaneReduction, for_each_point, reduce_together
from fuseline.targets.cpu.families.nests.register_transpose import RegisterTranspose
from fuseline.targets.cpu.families.nests.side_by_side import traversals
from fuseline.targets.cpu.families.nests.stages import Stage, element_types
from fuseline.targets.cpu.families.nests.tiling import TileRow
from fuseline.targets.cpu.families.nests.whole_rows import only_reduces, vectors_of
from fuseline.targets.cpu.families.nests.workgroup import Coordinates, Workgroup
from fuseline.targets.cpu.kernel_ir.types import Operand, Value

CHEAP_BODY = 8
"""Bodies of fewer operations are repeated over several vectors, to hide the latency of the accumulating op."""

UNROLL = 4


class GroupEmitter:
    """The loops of one group and what its stages do at each point."""

    def __init__(self, workgroup: Workgroup, group: Group) -> None:
        self.workgroup, self.group = workgroup, group
        self.kernel, self.e = workgroup.kernel, workgroup.e
        types = {t for stage in group.stages for t in element_types(workgroup.staging, stage)}
        masked = is_masked(self.kernel, *types)
        lanes = group.lanes if group.lane_axis is not None or group.lane_reduction is not None else 1
        self.lane_loop = LaneLoop(self.kernel, lanes, unroll=self._unroll(group.stages), masked=masked)
        self.across_loops = {
            stage: LaneLoop(self.kernel, lanes, unroll=1 if self._ends_soon() else self._unroll([stage]), masked=masked)
            for stage in group.stages
            if stage.reduction and group.lane_reduction is not None
        }
        across = self.lane_loop if group.lane_axis is not None else LaneLoop(self.kernel, 1)
        self.together = {stage: self._lane_reduction(stage, across) for stage in group.together}
        alone = {*group.together, *(group.stages if group.lane_reduction is not None else ())}
        self.traversals = traversals(group.stages, alone, self.e.view.shapes)

    def _unroll(self, stages: Sequence[Stage]) -> int:
        reducing = [stage for stage in stages if stage.op is not None]
        inlined = {op for stage in reducing for op in self.workgroup.staging.inlined(stage)}
        cheap = sum(body_cost(op) for op in inlined if is_generic(op)) < CHEAP_BODY
        return UNROLL if reducing and cheap else 1

    def _ends_soon(self) -> bool:
        """Whether what lanes are reduced along is shorter than several vectors, which would be added up in the end."""
        assert self.group.lane_reduction is not None
        extent = upper_bound(self.workgroup.axes.extents[self.group.lane_reduction])
        return extent is not None and extent < UNROLL * self.group.lanes

    def _lane_reduction(self, stage: Stage, lane_loop: LaneLoop) -> LaneReduction:
        assert stage.op is not None
        found = combiners(stage.op)
        assert found is not None
        return LaneReduction(self.e, stage.op, found, lane_loop)

    def emit(self) -> None:
        """All loops of the group, then what it hands to later groups."""
        carried = [value for reduction in self.together.values() for value in reduction.initial()]
        along = self.workgroup.traversed_with(self.group.lane_axis)
        outer = [axis for axis in self.group.inner if axis not in along and axis != self.group.turned]
        with self.workgroup.prefetch.of(self.group):
            state = self._nest(outer, dict(self.workgroup.grid), carried)
        self._finish(list(state))
        for stage in self.group.stages:
            self.workgroup.publish(stage)

    def _nest(self, outer: Sequence[LoopRef], at: Coordinates, carried: Sequence[Value]) -> Sequence[Value]:
        if outer:
            lo, hi = self.workgroup.span(outer[0])
            axis = outer[0]

            def step(i: Operand, *state: Value) -> Sequence[Value]:
                return self._nest(outer[1:], {**at, **self.workgroup.lane_coordinates(axis, Index(i))}, state)

            return self.kernel.loop(lo, hi, 1, step, carried)
        if self.group.lane_axis is None:
            return self._points([at], 1, None, carried)
        return self._along_lanes(self.group.lane_axis, at, carried)

    def _along_lanes(self, axis: LoopRef, at: Coordinates, carried: Sequence[Value]) -> Sequence[Value]:
        lo, hi = self.workgroup.span(axis)
        if self.group.turned is not None:
            made = (lambda start, stride: self.workgroup.lane_coordinates(axis, Index(start, stride))), (lo, hi)
            squares = RegisterTranspose(self.workgroup, self.group.stages, self.lane_loop, made)
            squares.emit(self.group.turned, at, *self.workgroup.span(self.group.turned))
            return carried
        if self.workgroup.schedule.transposed:
            RegisterTranspose(self.workgroup, self.group.stages, self.lane_loop).emit(axis, at, lo, hi)
            return carried
        if self.workgroup.schedule.interleaved:
            InterleavedStores(self.workgroup, self.group.stages, self.lane_loop).emit(at, lo, hi)
            return carried
        if self.workgroup.schedule.moved:
            self._moved(axis, at, lo, hi)
            return carried

        def body(
            starts: list[Operand], lanes: int, active: Operand | None, state: tuple[Value, ...]
        ) -> Sequence[Value]:
            stride = 1 if lanes > 1 else 0
            points = [{**at, **self.workgroup.lane_coordinates(axis, Index(start, stride))} for start in starts]
            if self.workgroup.schedule.tiled_loops:
                self._tiles(points[0], lanes, active)
                return state
            return self._points(points, lanes, active, state)

        beside = vectors_of(self.kernel, lo, hi, self.lane_loop.lanes) if only_reduces(self.group) else []
        for starts in beside:
            body(starts, self.lane_loop.lanes, None, ())
        return carried if beside else self.lane_loop.run(lo, hi, body, carried)

    def _tiles(self, at: Coordinates, lanes: int, active: Operand | None) -> None:
        """All rows of the workgroup's tiles at one place of the lane axis: whole tiles (of all rows where those are
        fewer than lanes), then single rows."""
        kernel, (lo, hi) = self.kernel, self.workgroup.tile_span

        def row(t: Operand) -> None:
            self._points([{**at, **self.workgroup.tile_coordinates(t)}], lanes, active, [])

        def tile(t: Operand) -> None:
            for number in range(rows):
                self.e.buffers.tile = TileRow(kernel, t, number, lanes, rows)
                row(kernel.add(t, number))
            self.e.buffers.tile = None

        whole, rows = lo, min(lanes, self.workgroup.schedule.tile)
        if lanes > 1 and active is None:
            whole = kernel.add(lo, kernel.mul(kernel.div(kernel.sub(hi, lo), rows), rows))
            kernel.loop(lo, whole, rows, tile)
        kernel.loop(whole, hi, 1, row)

    def _moved(self, axis: LoopRef, at: Coordinates, lo: Operand, hi: Operand) -> None:
        """Row by row of the workgroup's tile, a few side by side where they are few vectors. What is left over of a row
        is a vector, too."""
        size = self.group.lanes
        vectors, whole = (-(-hi // size), hi // size * size) if isinstance(hi, int) and lo == 0 else (UNROLL, hi)

        def row(t: Operand) -> None:
            here = {**at, **self.workgroup.tile_coordinates(t)}

            def body(
                starts: list[Operand], lanes: int, active: Operand | None, _: tuple[Value, ...]
            ) -> Sequence[Value]:
                place = self.workgroup.lane_coordinates(axis, Index(starts[0], 1 if lanes > 1 else 0))
                return self._points([{**here, **place}], lanes, active, [])

            self.lane_loop.run(lo, whole, body)
            if isinstance(hi, int) and whole != hi:
                body([whole], hi % size, None, ())

        unroll(self.kernel, *self.workgroup.tile_span, max(1, UNROLL // vectors), row)

    # stages at a point ------------------------------------------------------------------------------------------------

    def _points(
        self, points: Sequence[Coordinates], lanes: int, active: Operand | None, carried: Sequence[Value]
    ) -> Sequence[Value]:
        state, at = list(carried), 0
        for stage, *others in self.traversals:
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
                self._reduce((stage, *others), points, lanes, active)
        return state

    def _element(self, stage: Stage, point: Coordinates, lanes: int, active: Operand | None) -> None:
        (value,) = stage.values
        index = self.workgroup.index_of(value, point)
        self._made(stage, value, index, self.e.value_at(value, index, lanes, active), active)

    def _made(
        self, stage: Stage, value: SSAValue, index: Sequence[AnyIndex], result: Value, active: Operand | None
    ) -> None:
        """Keep a value just made, and let the rest of the group (or, where nothing varies inside, of the workgroup)
        have it at once. Where the lanes run along what is reduced, the rest of the group asks at this point only, by
        any number of lanes."""
        if not self.workgroup.inside(value) or self.group.lane_reduction is not None:
            self.e.known[value] = lambda *_, r=result: r
        self.kernel.remember(point_key(value, index, result.type.lanes, active), result)
        self.workgroup.keep(value, index, result, active, stage.destinations.get(value, []))

    def _loops(self, stage: Stage, point: Coordinates) -> list[AnyIndex]:
        """The point as loops of the stage's op; reduction loops that the group does not traverse are at 0."""
        assert stage.op is not None
        view = StructuredOp(stage.op)
        axes = self.workgroup.axes.of_op(stage.op)
        loops: list[AnyIndex] = [Index(0)] * view.rank
        for i, axis in enumerate(axes):
            if axis is not None and axis in point:
                loops[i] = point[axis]
        for expr, axis in zip(view.output_maps[0].results, self.workgroup.axes.of_value(stage.values[0]), strict=True):
            if isinstance(expr, AffineDimExpr) and axis is not None:
                loops[expr.position] = point[axis]
        return loops

    def _reduce(
        self, stages: Sequence[Stage], points: Sequence[Coordinates], lanes: int, active: Operand | None
    ) -> None:
        """Reductions that go along the same loops, at several points, in one traversal."""
        places = [(stage, point) for stage in stages for point in points]
        reductions = [(StructuredOp(stage.op), self._loops(stage, point)) for stage, point in places if stage.op]
        results = reduce_together(self.e, reductions, lanes, active)
        for (stage, point), values in zip(places, results, strict=True):
            for value, result in zip(stage.values, values, strict=True):
                self._made(stage, value, self.workgroup.index_of(value, point), result, active)

    def _reduce_across(self, stage: Stage, point: Coordinates) -> None:
        """One point, the lanes along the reduction loop that is contiguous in memory."""
        assert stage.op is not None
        lane_loop = self.across_loops[stage]
        reduction = self._lane_reduction(stage, lane_loop)
        view, axes = StructuredOp(stage.op), self.workgroup.axes.of_op(stage.op)
        extents = [self.e.buffers.operand(size) for size in view.loops(self.e.view.shapes)]
        across = self._across(stage, axes)
        base = self._loops(stage, point)

        def visit(taps: Any, state: Sequence[Value]) -> Sequence[Value]:
            def body(
                starts: list[Operand], lanes: int, active: Operand | None, inner: tuple[Value, ...]
            ) -> Sequence[Value]:
                stride = 1 if lanes > 1 else 0
                here = [[self._tap(i, c, taps, across, start, stride) for i, c in enumerate(base)] for start in starts]
                return reduction.update(inner, here, lanes, active)

            return lane_loop.run(0, extents[across], body, tuple(state))

        others = [(loop, extents[loop]) for loop in view.reduction if loop != across]
        state = for_each_point(self.e, others, {}, reduction.initial(), visit)
        for value, result in zip(stage.values, reduction.finish(state, base), strict=True):
            self._made(stage, value, self.workgroup.index_of(value, point), result, None)

    def _across(self, stage: Stage, axes: Sequence[LoopRef | None]) -> int:
        """The reduction loop for the lanes: the group's choice, or the innermost one of a stage that lacks it."""
        assert stage.op is not None
        loops = StructuredOp(stage.op).reduction
        chosen = [i for i in loops if axes[i] is not None and axes[i] == self.group.lane_reduction]
        return chosen[0] if chosen else loops[-1]

    def _tap(self, i: int, coordinate: AnyIndex, taps: Any, across: int, start: Operand, stride: int) -> AnyIndex:
        if i == across:
            return Index(start, stride)
        return Index(taps[i]) if i in taps else coordinate

    # reductions over the group's own loops ----------------------------------------------------------------------------

    def _accumulate(
        self, stage: Stage, points: Sequence[Coordinates], lanes: int, active: Operand | None, state: Sequence[Value]
    ) -> Sequence[Value]:
        reduction = self.together[stage]
        return reduction.update(state, [self._loops(stage, point) for point in points], lanes, active)

    def _finish(self, state: list[Value]) -> None:
        at = 0
        for stage, reduction in self.together.items():
            width = len(reduction.initial())
            results = reduction.finish(state[at : at + width], self._loops(stage, self.workgroup.grid))
            at += width
            for value, result in zip(stage.values, results, strict=True):
                self._made(stage, value, self.workgroup.index_of(value, self.workgroup.grid), result, None)
