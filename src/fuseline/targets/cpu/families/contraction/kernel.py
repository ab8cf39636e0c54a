"""The kernel of a multiply-add root: workgroups, panels, tiles, epilogue."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial

from fuseline.ir import dim as d
from fuseline.targets.cpu.combinators.peel import peel
from fuseline.targets.cpu.combinators.split import Tiles, block_of, split_tiles
from fuseline.targets.cpu.combinators.tail import live_lanes, over_panels
from fuseline.targets.cpu.emit.coordinates import AnyIndex, Index
from fuseline.targets.cpu.emit.microkernel import TileReduction
from fuseline.targets.cpu.emit.narrow_microkernel import (
    NarrowReduction,
    OverreadingPairs,
    OverreadingQuads,
    PairReduction,
    QuadReduction,
)
from fuseline.targets.cpu.families.contraction.axes import Axis
from fuseline.targets.cpu.families.contraction.columns import ColumnReader
from fuseline.targets.cpu.families.contraction.pairs import QUAD
from fuseline.targets.cpu.families.contraction.plan import ContractionPlan
from fuseline.targets.cpu.families.contraction.reduction_blocks import WHOLE, Piece, ReductionBlocks, each_block
from fuseline.targets.cpu.families.contraction.rows import RowReader
from fuseline.targets.cpu.families.contraction.runtime_tiles import runtime_tiles
from fuseline.targets.cpu.families.contraction.shared_form import SharedForm
from fuseline.targets.cpu.families.contraction.tile import Block, RowTile, TileRows, place
from fuseline.targets.cpu.families.contraction.tile_sums import TileSums
from fuseline.targets.cpu.families.root.kernel import RootKernel
from fuseline.targets.cpu.families.root.results import Actives
from fuseline.targets.cpu.kernel_ir.builder import KernelBuilder
from fuseline.targets.cpu.kernel_ir.types import Operand, Value

Visit = Callable[[RowTile, Operand, Actives], None]
"""`(tile, panel, live lanes)`: what is done with each tile of a workgroup."""


class ContractionKernel(RootKernel):
    """Builds the kernel of a plan."""

    def __init__(self, plan: ContractionPlan, kernel: KernelBuilder) -> None:
        rows = plan.tiled.loops if plan.tiled is not None else ()
        lane = plan.loops.column.loops[-1]
        super().__init__(plan, kernel, plan.loops.root, plan.paths, plan.lanes, rows=rows, lane=lane)
        self.plan = plan
        self.rows = RowReader(plan, self.emitter)
        self.columns = ColumnReader(plan, self.emitter)
        self.stages = plan.stages or kernel.compact
        staged = self.stages or plan.split is None
        self.stage = kernel.scratch(plan.loops.dtype, plan.tile.rows * plan.width) if staged else None

    def prepare(self) -> None:
        """Fill the padding row."""
        self.rows.fill_padding_row()

    # workgroups -------------------------------------------------------------------------------------------------------

    def workgroup(self, number: Operand) -> tuple[Operand, ...]:
        """Panels outside, lines and tiles inside."""
        block = self._block(number)
        if self.plan.cut is None:
            self.rows.enter(block.outer, block.lines, block.tiles)
            self._panels(block, self._tile)
        else:
            self._in_blocks(block, self.plan.cut)
        return ()

    def _in_blocks(self, block: Block, cut: ReductionBlocks) -> None:
        """The reduction a block at a time; the sums of all tiles are in scratch meanwhile."""
        sums = TileSums(self.kernel, self.plan, self.results)
        self._panels(block, partial(sums.start, block, self._loops))

        def reduce(piece: Piece) -> None:
            self.rows.piece = self.columns.piece = piece
            self.rows.enter(block.outer, block.lines, block.tiles)
            self._panels(block, lambda tile, panel, actives: sums.add(block, tile, panel, self._reduced(tile, actives)))

        extents = {axis: self.buffers.operand(axis.extent) for axis in cut.steps}
        each_block(self.kernel, cut, extents, reduce)
        self.rows.piece = self.columns.piece = WHOLE
        self._panels(
            block, lambda tile, panel, actives: self._store(tile, panel, actives, sums.of(block, tile, panel, actives))
        )

    def _block(self, number: Operand) -> Block:
        plan, kernel = self.plan, self.kernel
        outer, (line, tile, panel) = self._coordinates(number)
        lines = plan.lines.extent if plan.lines is not None else 1
        counts = (
            (line, plan.blocks.lines, lines),
            (tile, plan.blocks.tiles, plan.tile_count),
            (panel, plan.blocks.panels, plan.panel_count),
        )
        ranges = [block_of(kernel, index, size, self.buffers.operand(count)) for index, size, count in counts]
        return Block(outer, ranges[0], ranges[1], ranges[2])

    def _coordinates(self, number: Operand) -> tuple[dict[Axis, Operand], tuple[Operand, Operand, Operand]]:
        """Where a workgroup is along the outer axes, and its block of lines, of tiles and of panels."""
        plan = self.plan
        count = len(plan.outer)
        order = [*range(count), *(count + i for i in ((1, 2, 0) if plan.blocks.columns_outer else (0, 1, 2)))]
        if plan.form is not None:  # in one order, whichever is the slowest
            at = self.buffers.digits(number, plan.grid, order)
        else:
            found = self.buffers.coordinates(number, plan.grid)
            at = [found[i] for i in order]
        return dict(zip(plan.outer, at, strict=False)), (at[count], at[count + 1], at[count + 2])

    # panels -----------------------------------------------------------------------------------------------------------

    def _panels(self, block: Block, visit: Visit) -> None:
        """Whole panels in a loop, then the narrower one at the end."""
        plan, kernel, columns = self.plan, self.kernel, self.buffers.operand(self.plan.loops.column.extent)
        whole = self.buffers.operand(d.floor_div(plan.loops.column.extent, plan.width))

        def panel(number: Operand, elements: Operand) -> None:
            actives = live_lanes(kernel, elements, plan.lanes, plan.width)
            if plan.cut is None or self.columns.piece is not WHOLE:
                self.columns.enter(block.outer, number, actives)
            kernel.loop(*block.lines, 1, partial(self._tiles, block, lambda tile: visit(tile, number, actives)))

        if plan.form is not None:
            self._panels_of(plan.form, block, panel)
            return
        over_panels(
            kernel, (whole, kernel.sub(columns, kernel.mul(whole, plan.width))), plan.width, block.panels, panel
        )

    def _panels_of(self, form: SharedForm, block: Block, panel: Callable[[Operand, Operand], None]) -> None:
        """Whole panels, then one of each of the widths that any kernel of the form ends with: where it is not this
        one's, there are none of it."""
        plan, kernel, (first, last) = self.plan, self.kernel, block.panels
        assert isinstance(plan.loops.column.extent, int)
        whole, rest = divmod(plan.loops.column.extent, plan.width)
        runs = [(0, whole, plan.width), *((whole, whole + (rest == columns), columns) for columns in form.rests)]
        for begin, end, columns in runs:

            def one(number: Operand, columns: int = columns) -> tuple[()]:
                panel(number, columns)
                return ()

            kernel.loop(kernel.max(first, begin), kernel.min(last, end), 1, one)

    def _tiles(self, block: Block, make: Callable[[RowTile], None], line: Operand) -> tuple[()]:
        """The tiles of one line, tall ones first."""
        if self.plan.split is None:
            self._runtime_tiles(block, line, make)
            return ()
        for run in split_tiles(self.plan.split, both=self.plan.form is not None and self.plan.form.short):
            for tiles in self._peeled(run):

                def emit_tile(t: Operand, start: Operand, tiles: Tiles = tiles) -> None:
                    number = self._number(block, line, t)
                    make(RowTile(block.outer, line, start, tiles.height, None, tiles.start_range, number, tile=t))

                tiles.each(self.kernel, emit_tile, block.tiles)
        return ()

    def _peeled(self, tiles: Tiles) -> Sequence[Tiles]:
        """Those that meet padding by themselves, where that pays."""
        if not self.rows.peels or self.kernel.compact:
            return [tiles]
        return peel(tiles, lambda start: self.rows.meets(start, tiles.height))

    def _runtime_tiles(self, block: Block, line: Operand, make: Callable[[RowTile], None]) -> None:
        """The tiles of a line whose length is only known at run time."""

        def tile(
            number: Operand,
            height: int,
            start: Operand,
            *,
            valid: Operand | None = None,
            start_range: tuple[int, int] | None = None,
            meets: tuple[bool, bool] = (True, True),
            behind: Operand = 0,
        ) -> tuple[Operand, ...]:
            shared = self._number(block, line, number)
            make(RowTile(block.outer, line, start, height, valid, start_range, shared, meets, number, behind))
            return ()

        assert self.rows.runtime is not None
        runtime_tiles(self.rows.runtime, block.tiles, tile)

    def _number(self, block: Block, line: Operand, t: Operand) -> Operand:
        """The number of tile `t` of a line among those that share a panel: the workgroup's, or, where each has one
        panel, all of them."""
        kernel, plan = self.kernel, self.plan
        if plan.form is not None:
            return self._number_in_turn(line, t)
        if plan.blocks.panels == 1 and plan.blocks.columns_outer:
            return kernel.add(kernel.mul(line, self.buffers.operand(plan.tile_count)), t)
        return kernel.add(
            kernel.mul(kernel.sub(line, block.lines[0]), plan.blocks.tiles), kernel.sub(t, block.tiles[0])
        )

    def _number_in_turn(self, line: Operand, t: Operand) -> Operand:
        """All tiles, counted anew after as many as share a panel: said alike where a block shares one and where all
        do."""
        kernel, plan = self.kernel, self.plan
        if not plan.prefetch.period:
            return 0
        return kernel.rem(kernel.add(kernel.mul(line, self.buffers.operand(plan.tile_count)), t), plan.prefetch.tiles)

    # one tile ---------------------------------------------------------------------------------------------------------

    def _tile(self, tile: RowTile, panel: Operand, actives: Actives) -> None:
        starts = self.results.starts(tile.height, actives, partial(self._loops, tile, panel))
        self._store(tile, panel, actives, self._reduced(tile, actives, starts))

    def _reduced(self, tile: RowTile, actives: Actives, starts: Sequence[Value] | None = None) -> list[Value]:
        """The sums of a tile, from `starts` on (None: from zero, in the block that the kernel is at)."""
        zero = self.kernel.const(0.0, self.plan.loops.dtype, self.plan.lanes)
        accumulators = list(starts) if starts is not None else [zero] * (tile.height * len(actives))
        for rows in self.rows.at(tile):
            reduction = self._reduction(
                self.kernel, rows.addresses, rows.axes, self.columns.reader(), (tile.height, len(actives)),
                padding_row=self.rows.padding_row, skips_padding=self.rows.pad == 0, pulled=rows.pulled,
                prefetches=self.columns.prefetches(tile.number),
                partial_steps=self.plan.partial_steps if starts is not None else 0,
            )  # fmt: skip
            accumulators = reduction.emit(accumulators, rows.always)
        return accumulators

    @property
    def _reduction(self) -> type[TileReduction]:
        """How a tile is added up."""
        if self.plan.together == QUAD:
            return QuadReduction if self.plan.lhs_mode == "linear" else OverreadingQuads
        if not self.plan.pairs:
            return NarrowReduction if self.plan.loops.narrow else TileReduction
        return OverreadingPairs if self.rows.boxed is not None else PairReduction

    def _store(self, tile: RowTile, panel: Operand, actives: Actives, accumulators: Sequence[Value]) -> None:
        """The epilogue on the sums of a tile."""
        at = partial(self._loops, tile, panel)
        if self.stage is not None and (self.stages or tile.valid is not None):
            exist = (0, tile.height if tile.valid is None else tile.valid)
            self.results.store_staged(self.stage, accumulators, actives, at, exist)
        else:
            self.results.store(accumulators, actives, at)

    def _loops(self, tile: RowTile, panel: Operand, row: Operand, v: Operand) -> list[AnyIndex]:
        """The root's loops at vector `v` of a row; reduction loops at 0."""
        plan, kernel = self.plan, self.kernel
        loops = TileRows.loops(self.emitter, plan, tile, tile.position(kernel, row))
        column = kernel.add(kernel.mul(panel, plan.width), kernel.mul(v, plan.lanes))
        place(self.buffers, loops, plan.loops.column, Index(column, 1 if plan.lanes > 1 else 0))
        return loops
