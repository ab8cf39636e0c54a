"""How a kernel reads the left operand of a multiply-add root: row elements, in each of its modes."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from fuseline.ir import dim as d
from fuseline.ir.dim import Dim
from fuseline.targets.cpu.combinators.split import first_of
from fuseline.targets.cpu.emit.body_emitter import BodyEmitter
from fuseline.targets.cpu.emit.coordinates import Index
from fuseline.targets.cpu.emit.microkernel import Rows
from fuseline.targets.cpu.emit.packing import over_axes, over_vectors
from fuseline.targets.cpu.emit.reduction_axes import EdgeCheck, ReductionAxis, RoundedTerm, rounded
from fuseline.targets.cpu.families.contraction.axes import Axis
from fuseline.targets.cpu.families.contraction.boxed_rows import BoxedRows
from fuseline.targets.cpu.families.contraction.columns import ColumnReader, reduction_cuts
from fuseline.targets.cpu.families.contraction.loops import RowSegment
from fuseline.targets.cpu.families.contraction.plan import ContractionPlan
from fuseline.targets.cpu.families.contraction.reduction_blocks import WHOLE
from fuseline.targets.cpu.families.contraction.runtime_rows import ExactRows, Interior, PaddedRows, common
from fuseline.targets.cpu.families.contraction.tile import Edges, RowTile, TileRows, place
from fuseline.targets.cpu.kernel_ir.types import Address, MemRef, Operand, Value

PEELED_STEPS = 24
"""Edge checks before fewer steps than this are kept out of the tiles inside the image. A check takes about three
instructions per row."""

ROW_SLACK = 16
"""Elements between packed rows beyond their length: rows a multiple of 4 KiB apart would share a cache set."""


class RowReader:
    """The left operand. `enter` a workgroup, then ask for the rows of its tiles."""

    def __init__(self, plan: ContractionPlan, emitter: BodyEmitter) -> None:
        self.plan, self.emitter = plan, emitter
        self.kernel, self.buffers = emitter.kernel, emitter.buffers
        self.edges = [Edges(plan, self.buffers, segment) for segment in plan.loops.segments]
        padded = [segment.access for segment in plan.loops.segments if segment.access.padding]
        self.pad = padded[0].pad if padded else 0
        padded_in_place = plan.lhs_mode == "linear" and bool(padded)
        self.padding_row = (
            self.kernel.scratch(plan.loops.elements[0], -(-plan.padding_row_elements // plan.lanes) * plan.lanes)
            if padded_in_place
            else None
        )
        self.buffer = self._scratch() if plan.lhs_mode == "packed" else None
        self.boxed = BoxedRows(plan, emitter) if plan.lhs_mode == "boxed" else None
        self.cuts: Sequence[tuple[int, ...]] = reduction_cuts(plan, plan.loops.lhs) if self.buffer is not None else ()
        self.origin: tuple[Operand, Operand] = (0, 0)
        self.piece = WHOLE
        self.runtime = self._runtime_rows(padded=bool(padded)) if plan.split is None else None

    def _runtime_rows(self, *, padded: bool) -> ExactRows | PaddedRows | None:
        """The tiles of a line of unknown length."""
        tiled, height = self.plan.tiled, self.plan.tile.rows
        if tiled is None:
            return None
        if padded:
            return PaddedRows(self.buffers, tiled.extent, height, self._interior())
        return ExactRows(self.kernel, self.buffers.operand(tiled.extent), height)

    @property
    def row_length(self) -> int:
        """Elements between two packed rows."""
        steps = d.product(self.plan.extents_at_once)
        assert isinstance(steps, int)
        return steps + ROW_SLACK

    @property
    def rows_per_line(self) -> int:
        """Rows of one line in the packed block."""
        return self.plan.blocks.tiles * self.plan.tile.rows

    @property
    def peels(self) -> bool:
        """Whether tiles that meet padding get code of their own: where few steps follow an edge check, the check would
        cost as much as they do."""
        edges = self.plan.lhs_mode == "linear" and any(segment.access.bounds for segment in self.plan.loops.segments)
        return edges and self.plan.padding_row_steps < PEELED_STEPS

    def _interior(self) -> Interior | None:
        """The whole tiles of a line of unknown length that meet no padding, where they get code of their own."""
        found = [edges.interior() for edges in self.edges] if self.peels else []
        known = [one for one in found if one is not None]
        return common(known) if known and len(known) == len(found) else None

    def meets(self, start: int, height: int) -> tuple[bool, bool]:
        """Whether a tile that starts at row `start` can meet padding along the tiled axis: at the low side, at the high
        side."""
        found = [edges.meets(start, height) for edges in self.edges]
        return any(low for low, _ in found), any(high for _, high in found)

    def _scratch(self) -> MemRef:
        rows = self.plan.blocks.lines * self.rows_per_line
        return self.kernel.scratch(self.plan.loops.elements[0], rows * self.row_length)

    def fill_padding_row(self) -> None:
        """Write the pad value to the padding row."""
        padding_row, plan = self.padding_row, self.plan
        if padding_row is None:
            return
        assert isinstance(padding_row.extent, int)
        value = self.kernel.const(self.pad, plan.loops.elements[0], plan.lanes)

        def body(i: Operand) -> tuple[Operand, ...]:
            self.kernel.store(padding_row, i, value)
            return ()

        self.kernel.loop(0, padding_row.extent, plan.lanes, body)

    # workgroup --------------------------------------------------------------------------------------------------------

    def enter(
        self, outer: Mapping[Axis, Operand], lines: tuple[Operand, Operand], tiles: tuple[Operand, Operand]
    ) -> None:
        """Pack the workgroup's rows, or evaluate what they read, where the mode asks for it."""
        if self.buffer is None and self.boxed is None:
            return
        kernel = self.kernel
        rows = (self._first_row(tiles[0]), self._first_row(tiles[1]))
        if self.boxed is not None:
            self.boxed.fill(outer, lines, rows, self.piece)
            return
        self.origin = (lines[0], rows[0])

        def line(i: Operand) -> tuple[Operand, ...]:
            def row(j: Operand) -> tuple[Operand, ...]:
                self._pack_row(RowTile(outer, i, j, 1, None, None))
                return ()

            kernel.loop(rows[0], rows[1], 1, row)
            return ()

        kernel.loop(*lines, 1, line)

    def _first_row(self, tile: Operand) -> Operand:
        """The first row of tile `tile`; of the tile past the last, the extent."""
        split = self.plan.split
        if split is None:
            assert self.runtime is not None
            return self.runtime.first_row(tile)
        return first_of(self.kernel, split, tile)

    def _pack_row(self, tile: RowTile) -> None:
        kernel, plan, buffer = self.kernel, self.plan, self.buffer
        assert buffer is not None
        base = self._packed_row(tile, tile.start)
        reduction = plan.loops.reduction
        extents = self._extents(reduction)
        strides = [self.buffers.operand(s) for s in self._row_strides()]
        if not reduction:
            kernel.store(buffer, base, self._pull(tile, tile.start, {}, 1, None))
            return

        def run(offset: Operand, at: tuple[Operand, ...]) -> None:
            self._pack_run(tile, kernel.add(base, offset), at, extents[-1])

        over_axes(kernel, extents[:-1], strides[:-1], run, self.cuts[:-1])

    def _pack_run(self, tile: RowTile, base: Operand, at: tuple[Operand, ...], extent: Operand) -> None:
        """One run of the innermost reduction axis, a vector at a time, between the borders of what is read."""
        kernel, plan, lanes = self.kernel, self.plan, self.plan.lanes
        reduction, buffer = plan.loops.reduction, self.buffer
        assert buffer is not None

        def piece(k: Operand, count: int, active: Operand | None) -> None:
            indices = {axis: Index(i) for axis, i in zip(reduction[:-1], at, strict=True)}
            indices[reduction[-1]] = Index(k, 1 if count > 1 else 0)
            kernel.store(
                buffer, kernel.add(base, k), self._pull(tile, tile.start, indices, count, active), active=active
            )

        over_vectors(kernel, extent, self.cuts[-1], lanes, piece)

    def _pull(
        self, tile: RowTile, position: Operand, reduction: Mapping[Axis, Index], lanes: int, active: Operand | None
    ) -> Value:
        """Elements of the operand at a row, along the reduction."""
        operand, operand_type = self.plan.loops.lhs, self.plan.loops.elements[0]
        loops = TileRows.loops(self.emitter, self.plan, tile, position)
        for axis, index in reduction.items():
            base = self.kernel.add(self.piece.start(axis), index.base)
            place(self.buffers, loops, axis, Index(base, index.stride))
        value = self.emitter.value_at(operand.value, self.emitter.through(operand.map, loops, lanes), lanes, active)
        return self.kernel.cast(value, operand_type, unsigned=self.plan.loops.unsigned[0])

    def _row_strides(self) -> list[Dim]:
        strides: list[Dim] = []
        step: Dim = 1
        for extent in reversed(self.plan.extents_at_once):
            strides.append(step)
            step = d.mul(step, extent)
        return strides[::-1]

    def _extents(self, reduction: Sequence[Axis]) -> list[Operand]:
        """How far the axes run in the block that the kernel is at."""
        return [self.piece.extent(axis, self.buffers.operand(axis.extent)) for axis in reduction]

    def _packed_row(self, tile: RowTile, position: Operand) -> Operand:
        kernel = self.kernel
        line = kernel.sub(tile.line, self.origin[0])
        row = kernel.add(kernel.mul(line, self.rows_per_line), kernel.sub(position, self.origin[1]))
        return kernel.mul(row, self.row_length)

    # tiles ------------------------------------------------------------------------------------------------------------

    def at(self, tile: RowTile) -> list[TileRows]:
        """The rows of a tile, a part of the reduction each."""
        if self.plan.lhs_mode == "linear":
            return [self._linear(edges, tile) for edges in self.edges]
        if self.boxed is not None:
            return [self.boxed.at(tile)]
        column = self._column_strides()
        axes = [
            ReductionAxis(extent, self.buffers.operand(stride), column[i])
            for i, (extent, stride) in enumerate(
                zip(self._extents(self.plan.loops.reduction), self._row_strides(), strict=True)
            )
        ]
        if self.buffer is None:
            return [TileRows(None, axes, pulled=self._pulled_rows(tile))]
        addresses = [
            self.kernel.address(self.buffer, self._packed_row(tile, tile.position(self.kernel, r)))
            for r in range(tile.height)
        ]
        return [TileRows(addresses, axes)]

    def _pulled_rows(self, tile: RowTile) -> Rows:
        def pulled(at: Sequence[Operand], row: int) -> Value:
            indices = {axis: Index(i) for axis, i in zip(self.plan.loops.reduction, at, strict=True)}
            return self._pull(tile, tile.position(self.kernel, row), indices, 1, None)

        return pulled

    def _linear(self, edges: Edges, tile: RowTile) -> TileRows:
        """The rows of a tile as far as they lie in one binding."""
        segment = edges.segment
        addresses = [self._address(segment, tile, row) for row in range(tile.height)]
        checks: dict[int | None, list[EdgeCheck]] = {}
        for bound in segment.access.bounds:
            check = edges.of(bound, tile)
            if check is not None:
                checks.setdefault(edges.loop(bound.coordinate), []).append(check)
        terms: dict[int | None, list[RoundedTerm]] = {}
        for quotient in segment.access.floordiv_terms:
            terms.setdefault(edges.loop(quotient.numerator), []).append(edges.rounded(quotient, tile))
        for term in terms.get(None, ()):
            addresses = [rounded(self.kernel, address, term, row, 0) for row, address in enumerate(addresses)]
        return TileRows(addresses, self._axes(segment, checks, terms), checks.get(None, []))

    def _address(self, segment: RowSegment, tile: RowTile, row: int) -> Address:
        """Where a row starts, rounded terms aside."""
        kernel, plan = self.kernel, self.plan
        places = {**tile.outer, **self.piece.starts}
        if plan.lines is not None:
            places[plan.lines] = tile.line
        if plan.tiled is not None:
            places[plan.tiled] = tile.position(kernel, row)
        total = self.buffers.operand(segment.access.flat.constant)
        for axis, value in places.items():
            total = kernel.add(total, kernel.mul(value, self.buffers.operand(segment.operand.stride(axis))))
        return kernel.address(self.buffers.argument(segment.access.source), total)

    def _axes(
        self,
        segment: RowSegment,
        checks: Mapping[int | None, list[EdgeCheck]],
        terms: Mapping[int | None, list[RoundedTerm]],
    ) -> list[ReductionAxis]:
        column, operand = self._column_strides(), self.buffers.operand
        return [
            ReductionAxis(
                self.piece.extent(axis, operand(axis.extent)), operand(segment.operand.stride(axis)), column[i],
                tuple(checks.get(axis.inner, ())),
                tuple(terms.get(axis.inner, ())), operand(segment.first(axis)),
            )
            for i, axis in enumerate(segment.reduction)
        ]  # fmt: skip

    def _column_strides(self) -> list[Operand]:
        return ColumnReader.strides(self.plan, self.emitter)
