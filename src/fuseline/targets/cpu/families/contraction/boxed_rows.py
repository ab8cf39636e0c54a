"""Rows of an image that is computed: the box of it that a workgroup's rows read is evaluated into scratch, once, and
the rows are read there as those of an image without padding."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from fuseline.analysis.image_box import BoxAxis
from fuseline.targets.cpu.combinators.split import Range
from fuseline.targets.cpu.emit.body_emitter import BodyEmitter
from fuseline.targets.cpu.emit.coordinates import Index
from fuseline.targets.cpu.emit.packing import over_axes, over_vectors
from fuseline.targets.cpu.emit.reduction_axes import ReductionAxis
from fuseline.targets.cpu.families.contraction.access import value_boundaries
from fuseline.targets.cpu.families.contraction.axes import Axis
from fuseline.targets.cpu.families.contraction.columns import ColumnReader
from fuseline.targets.cpu.families.contraction.plan import ContractionPlan
from fuseline.targets.cpu.families.contraction.reduction_blocks import WHOLE, Piece
from fuseline.targets.cpu.families.contraction.tile import RowTile, TileRows
from fuseline.targets.cpu.families.contraction.turned_box import TurnedRuns, lanes_of_box, pieces_of
from fuseline.targets.cpu.kernel_ir.types import Operand, Value


class BoxedRows:
    """`fill` the box of a workgroup, then ask for the rows of its tiles."""

    def __init__(self, plan: ContractionPlan, emitter: BodyEmitter) -> None:
        assert plan.loops.box is not None
        self.plan, self.box, self.emitter = plan, plan.loops.box, emitter
        self.kernel, self.buffers = emitter.kernel, emitter.buffers
        self.most = plan.box_counts
        self.strides = self.box.strides(self.most)
        slack = plan.together - 1
        self.memory = self.kernel.scratch(plan.loops.elements[0], self.box.elements(self.most) + slack)
        self.origin: tuple[Operand, Operand] = (0, 0)
        self.piece = WHOLE
        self.turned = lanes_of_box(plan.loops, self.box) if plan.lanes > 1 else None

    # filling ----------------------------------------------------------------------------------------------------------

    def fill(self, outer: Mapping[Axis, Operand], lines: Range, rows: Range, piece: Piece = WHOLE) -> None:
        """Evaluate what rows `rows` of the lines `lines` read of a block of the reduction."""
        kernel, order = self.kernel, self.box.order
        self.origin, self.piece = (lines[0], rows[0]), piece
        at = {axis.inner: value for axis, value in outer.items()}
        counts: dict[int, Operand] = dict(self.box.window)
        for cut, (first, count) in piece.ranges.items():
            at[cut.inner], counts[cut.inner] = first, count
        for axis, (first, last) in ((self.plan.lines, lines), (self.plan.tiled, rows)):
            if axis is not None:
                at[axis.inner], counts[axis.inner] = first, kernel.sub(last, first)
        starts = [self._start(axis, at) for axis in self.box.axes]
        sizes = [self._size(axis, counts) for axis in self.box.axes]
        cuts = [self._cuts(*place) for place in zip(range(len(sizes)), starts, sizes, strict=True)]

        inside = order[-1:] if self.turned is None else (self.turned, order[-1])
        outside = [axis for axis in order if axis not in inside]

        def run(offset: Operand, places: tuple[Operand, ...]) -> None:
            at = dict(zip(outside, places, strict=True))
            if self.turned is None:
                self._run(offset, at, starts, (sizes[order[-1]], cuts[order[-1]]))
            else:
                self._turned(self.turned, offset, at, starts, (sizes, cuts))

        over_axes(
            kernel, [sizes[i] for i in outside], [self.strides[i] for i in outside], run, [cuts[i] for i in outside]
        )

    def _turned(
        self,
        lying: int,
        offset: Operand,
        places: Mapping[int, Operand],
        starts: Sequence[Operand],
        extents: tuple[Sequence[Operand], Sequence[Sequence[int]]],
    ) -> None:
        """All runs along dimension `lying`, squares at a time; those of a short piece one by one."""
        kernel, last, lanes, (sizes, cuts) = self.kernel, self.box.order[-1], self.plan.lanes, extents
        run = sizes[last]
        assert isinstance(run, int)
        runs = TurnedRuns(kernel, self.memory, lanes, self.strides[lying])

        def evaluate(start: Operand, element: Operand, count: int, active: Operand | None) -> Value:
            return self._value({**places, lying: start, last: element}, starts, (lying, count), active)

        def alone(number: Operand) -> tuple[()]:
            along = kernel.add(offset, kernel.mul(number, self.strides[lying]))
            self._run(along, {**places, lying: number}, starts, (run, cuts[last]))
            return ()

        for begin, end, is_long in pieces_of(sizes[lying], cuts[lying]):
            if is_long:
                runs.fill(offset, (begin, end), run, evaluate)
            else:
                kernel.loop(begin, end, 1, alone)

    def _run(
        self,
        offset: Operand,
        places: Mapping[int, Operand],
        starts: Sequence[Operand],
        extent: tuple[Operand, Sequence[int]],
    ) -> None:
        """The elements along the last dimension, a vector at a time."""
        kernel, last = self.kernel, self.box.order[-1]

        def piece(i: Operand, lanes: int, active: Operand | None) -> None:
            value = self._value({**places, last: i}, starts, (last, lanes), active)
            kernel.store(self.memory, kernel.add(offset, i), value, active=active)

        over_vectors(kernel, *extent, self.plan.lanes, piece)

    def _value(
        self, places: Mapping[int, Operand], starts: Sequence[Operand], lanes: tuple[int, int], active: Operand | None
    ) -> Value:
        """Elements of the box from `places` on; `lanes`: along which dimension, and how many."""
        kernel, (along, count) = self.kernel, lanes
        at = [
            Index(
                kernel.add(start, kernel.mul(places[number], axis.step)),
                axis.step if number == along and count > 1 else 0,
            )
            for number, (axis, start) in enumerate(zip(self.box.axes, starts, strict=True))
        ]
        found = self.emitter.value_at(self.plan.loops.lhs.value, at, count, active)
        loops = self.plan.loops
        return kernel.cast(found, loops.elements[0], unsigned=loops.unsigned[0])

    def _start(self, axis: BoxAxis, at: Mapping[int, Operand]) -> Operand:
        total: Operand = axis.constant
        for loop, step in axis.terms.items():
            total = self.kernel.add(total, self.kernel.mul(at.get(loop, 0), step))
        return total

    def _size(self, axis: BoxAxis, counts: Mapping[int, Operand]) -> Operand:
        total: Operand = 1
        for loop in axis.terms:
            if loop in counts:
                more = self.kernel.mul(self.kernel.sub(counts[loop], 1), axis.steps(loop))
                total = self.kernel.add(total, more)
        return total

    def _cuts(self, axis: int, start: Operand, size: Operand) -> tuple[int, ...]:
        """Where to cut a dimension so that no piece meets a border; nowhere where only the run knows its ends."""
        if not isinstance(start, int) or not isinstance(size, int):
            return ()
        found = value_boundaries(self.plan.view, self.plan.loops.lhs.value, axis, start, self.box.axes[axis].step)
        return tuple(cut for cut in found if cut < size)

    # reading ----------------------------------------------------------------------------------------------------------

    def at(self, tile: RowTile) -> TileRows:
        """The rows of a tile."""
        addresses = [
            self.kernel.address(self.memory, self._place(tile, tile.position(self.kernel, row)))
            for row in range(tile.height)
        ]
        columns = ColumnReader.strides(self.plan, self.emitter)
        axes = [
            ReductionAxis(self.piece.extent(axis, self.buffers.operand(axis.extent)), self._stride(axis), column)
            for axis, column in zip(self.plan.loops.reduction, columns, strict=True)
        ]
        return TileRows(addresses, axes)

    def _place(self, tile: RowTile, position: Operand) -> Operand:
        kernel, total = self.kernel, 0
        for axis, value, first in (
            (self.plan.lines, tile.line, self.origin[0]),
            (self.plan.tiled, position, self.origin[1]),
        ):
            if axis is not None:
                total = kernel.add(total, kernel.mul(kernel.sub(value, first), self._stride(axis)))
        return total

    def _stride(self, axis: Axis) -> int:
        return self.box.stride(axis.inner, self.most)
