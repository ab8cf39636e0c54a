"""The kernel of a convolution by minimal filtering. A block of tiles goes through three stages in scratch:

    enter        transformed[tile][point][channel]   B^T (the tile's pixels) B, along channels
    workgroup    products[tile][point][column]       one small matrix product per point, in the register tiles of
                                                     contractions
                 pixels[output][column]              A^T (the tile's products) A, then the epilogue, pixel by pixel

The workgroups of one block, which divide its columns, transform its pixels once.
The third stage sees whether anything was not finite, and then makes the tile's pixels directly (`direct.py`).
Tiles are numbered over the outer loops and the tiles of an image alike, so a block may span images.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import reduce

from fuseline.targets.cpu.combinators.prefetch import prefetch_requests
from fuseline.targets.cpu.combinators.split import split_tiles
from fuseline.targets.cpu.emit.microkernel import PrefetchRequests, TileReduction
from fuseline.targets.cpu.emit.reduction_axes import ReductionAxis
from fuseline.targets.cpu.families.contraction.runtime_rows import ExactRows
from fuseline.targets.cpu.families.contraction.runtime_tiles import runtime_tiles
from fuseline.targets.cpu.families.root.kernel import RootKernel
from fuseline.targets.cpu.families.winograd.direct import DirectTile
from fuseline.targets.cpu.families.winograd.maps import mapped
from fuseline.targets.cpu.families.winograd.matrices import Rows
from fuseline.targets.cpu.families.winograd.plan import WinogradPlan
from fuseline.targets.cpu.families.winograd.tile_results import TileResults
from fuseline.targets.cpu.families.winograd.tiles import TileOrigin, TileReader
from fuseline.targets.cpu.kernel_ir.builder import KernelBuilder
from fuseline.targets.cpu.kernel_ir.types import Operand, Value


class WinogradKernel(RootKernel):
    """Builds the kernel of a plan."""

    def __init__(self, plan: WinogradPlan, kernel: KernelBuilder) -> None:
        loops = plan.loops
        rows, lane = [loops.windows[-1].pixel], loops.contraction.column.loops[-1]
        super().__init__(plan, kernel, loops.contraction.root, loops.paths, plan.lanes, rows=rows, lane=lane)
        self.plan, blocking = plan, plan.blocking
        self.shared_by = plan.group_count if plan.divides_columns else None
        self.start: Operand = 0
        self.transformed = kernel.scratch("f32", blocking.tiles * plan.image_stride)
        self.products = kernel.scratch("f32", blocking.tiles * plan.product_stride)
        self.pixels = kernel.scratch("f32", blocking.outputs * plan.pass_width)
        self.reader = TileReader(plan, self.emitter)
        position = plan.view.tensors.index(plan.loops.contraction.rhs.value)  # pyright: ignore[reportArgumentType]
        self.filter = kernel.binding(position, "f32", plan.constant_layouts[position].elements)
        self.direct = DirectTile(plan, self.reader, self.filter, self.pixels)
        self.tiles = TileResults(plan, self.results, self.reader, self.pixels)
        self.align = kernel.machine.vector_bytes

    # workgroups -------------------------------------------------------------------------------------------------------

    def enter(self, run: Operand) -> None:
        """The first stage of a block of tiles."""
        kernel, plan = self.kernel, self.plan
        self.start = kernel.mul(run, plan.blocking.tiles)
        if self.reader.turned is None:
            self._each_tile(self.start, self._transformed_tiles(), self._transform)
        else:
            kernel.loop(0, plan.vectors, plan.piece, self._transform_in_all)

    def _transform_in_all(self, first: Operand) -> None:
        """A piece of the channels of all tiles: neighbours share lines of memory."""
        self._each_tile(
            self.start, self._transformed_tiles(), lambda slot, tile: self._piece(slot, self.reader.place(tile), first)
        )

    def workgroup(self, number: Operand) -> tuple[Operand, ...]:
        """Its columns of the block, pass by pass."""
        kernel, plan, start = self.kernel, self.plan, self.start
        valid = self._valid_tiles()

        def one(number: Operand) -> tuple[Operand, ...]:
            self._multiply(number, valid)
            self._each_tile(start, valid, lambda slot, tile: self._finish(slot, tile, number))
            return ()

        first = 0 if self.shared_by is None else kernel.mul(number, plan.blocking.passes)
        kernel.loop(first, kernel.min(kernel.add(first, plan.blocking.passes), plan.pass_count), 1, one)
        return ()

    def _valid_tiles(self) -> Operand:
        """How many tiles of the block exist."""
        kernel, plan = self.kernel, self.plan
        return kernel.min(kernel.sub(self.buffers.operand(plan.tile_count), self.start), plan.blocking.tiles)

    def _transformed_tiles(self) -> Operand:
        """How many tiles of a block are transformed: all, or those that exist where an image may have few."""
        return self._valid_tiles() if self.plan.has_few_tiles else self.plan.blocking.tiles

    def _each_tile(self, start: Operand, count: Operand, body: Callable[[Operand, Operand], None]) -> None:
        """`body(slot in the block, number of the tile)`; in place of tiles that do not exist the last one is named
        again."""
        kernel = self.kernel
        last = kernel.sub(self.buffers.operand(self.plan.tile_count), 1)

        def one(slot: Operand) -> tuple[Operand, ...]:
            body(slot, kernel.min(kernel.add(start, slot), last))
            return ()

        kernel.loop(0, count, 1, one)

    # stages -----------------------------------------------------------------------------------------------------------

    def _transform(self, slot: Operand, tile: Operand) -> None:
        """All channels of a tile, a piece at a time."""
        place = self.reader.place(tile)
        self.kernel.loop(0, self.plan.vectors, self.plan.piece, lambda first: self._piece(slot, place, first))

    def _piece(self, slot: Operand, place: TileOrigin, first: Operand) -> None:
        """The channels of a tile from vector `first` on that are read and transformed together."""
        kernel, plan = self.kernel, self.plan
        row = kernel.mul(slot, plan.image_stride)
        count = plan.piece if self.reader.whole_pieces else kernel.min(kernel.sub(plan.vectors, first), plan.piece)
        self.reader.fill(place, first, count)
        self._transform_piece(kernel.add(row, kernel.mul(first, plan.lanes)), count)

    def _transform_piece(self, row: Operand, count: Operand) -> None:
        kernel, plan = self.kernel, self.plan
        axes = plan.blocking.axes

        def vector(v: Operand) -> tuple[Operand, ...]:
            values = self._along_axes(
                [axis.inputs for axis in axes], [axis.size for axis in axes], lambda at: self.reader.pixel(at, v)
            )
            first = kernel.add(row, kernel.mul(v, plan.lanes))
            for point, value in enumerate(values):
                kernel.store(self.transformed, kernel.add(first, point * plan.channel_pitch), value, align=self.align)
            return ()

        kernel.loop(0, count, 1, vector)

    def _multiply(self, number: Operand, valid: Operand) -> None:
        """All products of one pass, of `valid` tiles."""
        kernel, plan = self.kernel, self.plan
        points, panels = plan.blocking.points, plan.blocking.panels

        def point(p: Operand) -> tuple[Operand, ...]:
            first = kernel.mul(kernel.add(kernel.mul(number, points), p), panels)

            def panel(n: Operand) -> tuple[Operand, ...]:
                base = kernel.mul(kernel.add(first, n), plan.loops.channels * plan.width)
                self._panel(p, base, kernel.mul(n, plan.width), valid)
                return ()

            kernel.loop(0, panels, 1, panel)
            return ()

        kernel.loop(0, points, 1, point)

    def _panel(self, point: Operand, base: Operand, column: Operand, valid: Operand) -> None:
        if self.plan.has_few_tiles:
            self._runtime_panel(point, base, column, valid)
            return
        for tiles in split_tiles(self.plan.rows, both=self.plan.form is not None and self.plan.form.short):

            def tile(t: Operand, first: Operand, height: int = tiles.height) -> None:
                self._tile(point, base, column, first, height, self._prefetches(base, t))

            tiles.each(self.kernel, tile)

    def _runtime_panel(self, point: Operand, base: Operand, column: Operand, valid: Operand) -> None:
        """Register tiles of the tiles that exist, of which only the run knows how many there are."""
        rows = ExactRows(self.kernel, valid, self.plan.blocking.tile.rows)

        def tile(number: Operand, height: int, start: Operand, **_: object) -> tuple[Operand, ...]:
            self._tile(point, base, column, start, height, self._prefetches(base, number))
            return ()

        runtime_tiles(rows, (0, self.kernel.ceil_div(valid, rows.height)), tile)

    def _prefetches(self, base: Operand, number: Operand) -> PrefetchRequests | None:
        """How register tile `number` asks for its share of the panel behind the one at `base`."""
        panel = self.plan.loops.channels * self.plan.width
        return prefetch_requests(
            self.kernel, self.filter, self.kernel.add(base, panel), number, self.plan.prefetch, panel
        )

    def _tile(
        self,
        point: Operand,
        base: Operand,
        column: Operand,
        first: Operand,
        height: int,
        prefetches: PrefetchRequests | None,
    ) -> None:
        """One register tile: tiles of the image `first` and following, times one panel."""
        kernel, plan = self.kernel, self.plan
        vectors, lanes = plan.blocking.tile.vectors, plan.lanes
        origin = kernel.add(kernel.mul(point, plan.channel_pitch), kernel.mul(first, plan.image_stride))
        addresses = [kernel.address(self.transformed, kernel.add(origin, r * plan.image_stride)) for r in range(height)]

        def columns(step: Operand, at: Sequence[Operand], v: int) -> Value:
            del at
            index = kernel.add(kernel.add(base, step), v * lanes)
            return kernel.load(self.filter, index, lanes, align=self.align)

        axes = [ReductionAxis(plan.loops.channels, 1, plan.width)]
        zero = kernel.const(0, "f32", lanes)
        partial_steps = plan.partial_steps if plan.form is not None else None
        reduction = TileReduction(
            kernel, addresses, axes, columns, (height, vectors), prefetches=prefetches, partial_steps=partial_steps
        )
        held = reduction.emit([zero] * (height * vectors))
        row = kernel.add(
            kernel.add(kernel.mul(point, plan.column_pitch), kernel.mul(first, plan.product_stride)), column
        )
        for i, value in enumerate(held):
            place = kernel.add(row, i // vectors * plan.product_stride + i % vectors * lanes)
            kernel.store(self.products, place, value, align=self.align)

    def _finish(self, slot: Operand, tile: Operand, number: Operand) -> None:
        """The pixels of a tile, and what follows from them."""
        kernel, plan = self.kernel, self.plan
        axes = plan.blocking.axes
        row = kernel.mul(slot, plan.product_stride)
        sizes = [axis.size for axis in axes]

        def vector(column: Operand, witness: Value) -> tuple[Operand, ...]:
            def load(at: Sequence[int]) -> Value:
                point = at[0] if len(at) == 1 else at[0] * sizes[1] + at[1]
                return kernel.load(
                    self.products,
                    kernel.add(kernel.add(row, column), point * plan.column_pitch),
                    plan.lanes,
                    align=self.align,
                )

            values = self._along_axes([axis.results for axis in axes], sizes, load)
            for i, value in enumerate(values):
                kernel.store(self.pixels, kernel.add(column, i * plan.pass_width), value, align=self.align)
            return (kernel.add(witness, reduce(kernel.add, values)),)

        (witness,) = kernel.loop(0, plan.pass_width, plan.lanes, vector, [kernel.const(0, "f32", plan.lanes)])
        self.direct.replace(tile, number, witness)
        self.tiles.store(tile, number)

    def _along_axes(
        self, matrices: Sequence[Rows], sizes: Sequence[int], read: Callable[[Sequence[int]], Value]
    ) -> list[Value]:
        """`read` over `sizes`, every axis multiplied by its matrix; row-major."""
        kernel = self.kernel
        if len(matrices) == 1:
            return mapped(kernel, matrices[0], [read((i,)) for i in range(sizes[0])])
        columns = [mapped(kernel, matrices[0], [read((i, j)) for i in range(sizes[0])]) for j in range(sizes[1])]
        return [value for row in zip(*columns, strict=True) for value in mapped(kernel, matrices[1], row)]
