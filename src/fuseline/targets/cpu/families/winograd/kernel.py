"""The kernel of a convolution by minimal filtering. A workgroup takes a block of tiles and goes through three stages in
its scratch:

    transformed[tile][point][channel]   B^T (the tile's pixels) B, along channels
    products[tile][point][column]       one small matrix product per point, in the register tiles of contractions
    pixels[output][column]              A^T (the tile's products) A, then the epilogue, pixel by pixel

The third stage sees whether anything was not finite, and then makes the tile's pixels directly (`direct.py`).
Tiles are numbered over the outer loops and the tiles of an image alike, so a block may span images.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import reduce
from math import prod

from fuseline.analysis.structured import splat_value
from fuseline.targets.cpu.combinators.prefetch import prefetch_requests
from fuseline.targets.cpu.combinators.split import split_tiles
from fuseline.targets.cpu.emit.body_emitter import BodyEmitter
from fuseline.targets.cpu.emit.coordinates import AnyIndex, Index
from fuseline.targets.cpu.emit.microkernel import PrefetchRequests, TileReduction
from fuseline.targets.cpu.emit.packing import over_axes
from fuseline.targets.cpu.emit.reduction_axes import ReductionAxis
from fuseline.targets.cpu.families.root.results import RootResults
from fuseline.targets.cpu.families.winograd.direct import DirectTile
from fuseline.targets.cpu.families.winograd.maps import mapped
from fuseline.targets.cpu.families.winograd.matrices import Rows
from fuseline.targets.cpu.families.winograd.plan import WinogradPlan, ends_with_tiles
from fuseline.targets.cpu.families.winograd.tiles import TileReader
from fuseline.targets.cpu.kernel_ir.builder import KernelBuilder
from fuseline.targets.cpu.kernel_ir.types import Operand, Value


class WinogradKernel:
    """Builds the kernel of a plan."""

    def __init__(self, plan: WinogradPlan, kernel: KernelBuilder) -> None:
        self.plan, self.kernel, blocking = plan, kernel, plan.blocking
        self.root = plan.loops.contraction.root
        self.emitter = BodyEmitter(kernel, plan.view)
        self.buffers = self.emitter.buffers
        self.results = RootResults(self.emitter, self.root, plan.loops.paths, plan.lanes)
        self.transformed = kernel.scratch("f32", blocking.tiles * plan.image_stride)
        self.products = kernel.scratch("f32", blocking.tiles * plan.product_stride)
        self.pixels = kernel.scratch("f32", blocking.outputs * plan.pass_width)
        self.reader = TileReader(plan, self.emitter)
        position = plan.view.tensors.index(plan.loops.contraction.rhs.value)  # pyright: ignore[reportArgumentType]
        self.filter = kernel.binding(position, "f32", plan.constant_layouts[position].elements)
        self.direct = DirectTile(plan, self.reader, self.filter, self.pixels)
        self.align = kernel.machine.vector_bytes

    # workgroups -------------------------------------------------------------------------------------------------------

    def emit(self) -> None:
        """Blocks of tiles in a loop; the workgroups of one block, which divide its columns, transform its pixels
        once."""
        kernel, plan, groups = self.kernel, self.plan, self.plan.group_count

        def block(number: Operand) -> tuple[Operand, ...]:
            start = kernel.mul(number, self.plan.blocking.tiles)
            self._each_tile(start, self.plan.blocking.tiles, self._transform)
            first = kernel.mul(number, groups)
            lo, hi = kernel.max(kernel.sub(kernel.begin, first), 0), kernel.min(kernel.sub(kernel.end, first), groups)
            if groups == 1 and (plan.form is None or not plan.form.groups):
                self._passes(start, 0)
            else:
                kernel.loop(lo, hi, 1, lambda group: self._passes(start, group))
            return ()

        kernel.loop(kernel.div(kernel.begin, groups), kernel.ceil_div(kernel.end, groups), 1, block)

    def _passes(self, start: Operand, group: Operand) -> tuple[Operand, ...]:
        """The columns of one workgroup."""
        kernel, plan = self.kernel, self.plan
        tiles = self.buffers.operand(plan.tile_count)
        valid = kernel.min(kernel.sub(tiles, start), plan.blocking.tiles)

        def one(number: Operand) -> tuple[Operand, ...]:
            self._multiply(number)
            self._each_tile(start, valid, lambda slot, tile: self._finish(slot, tile, number))
            return ()

        first = kernel.mul(group, plan.blocking.passes)
        kernel.loop(first, kernel.min(kernel.add(first, plan.blocking.passes), plan.pass_count), 1, one)
        return ()

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
        kernel, plan = self.kernel, self.plan
        place = self.reader.place(tile)
        row = kernel.mul(slot, plan.image_stride)

        def piece(first: Operand) -> tuple[Operand, ...]:
            count = plan.piece if self.reader.whole_pieces else kernel.min(kernel.sub(plan.vectors, first), plan.piece)
            self.reader.fill(place, first, count)
            self._transform_piece(kernel.add(row, kernel.mul(first, plan.lanes)), count)
            return ()

        kernel.loop(0, plan.vectors, plan.piece, piece)

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

    def _multiply(self, number: Operand) -> None:
        """All products of one pass."""
        kernel, plan = self.kernel, self.plan
        points, panels = plan.blocking.points, plan.blocking.panels

        def point(p: Operand) -> tuple[Operand, ...]:
            first = kernel.mul(kernel.add(kernel.mul(number, points), p), panels)

            def panel(n: Operand) -> tuple[Operand, ...]:
                base = kernel.mul(kernel.add(first, n), plan.loops.channels * plan.width)
                self._panel(p, base, kernel.mul(n, plan.width))
                return ()

            kernel.loop(0, panels, 1, panel)
            return ()

        kernel.loop(0, points, 1, point)

    def _panel(self, point: Operand, base: Operand, column: Operand) -> None:
        for tiles in split_tiles(self.plan.rows, both=self.plan.form is not None and self.plan.form.short):

            def tile(t: Operand, first: Operand, height: int = tiles.height) -> None:
                self._tile(point, base, column, first, height, self._prefetches(base, t))

            tiles.each(self.kernel, tile)

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
        self._store(tile, number)

    def _along_axes(
        self, matrices: Sequence[Rows], sizes: Sequence[int], read: Callable[[Sequence[int]], Value]
    ) -> list[Value]:
        """`read` over `sizes`, every axis multiplied by its matrix; row-major."""
        kernel = self.kernel
        if len(matrices) == 1:
            return mapped(kernel, matrices[0], [read((i,)) for i in range(sizes[0])])
        columns = [mapped(kernel, matrices[0], [read((i, j)) for i in range(sizes[0])]) for j in range(sizes[1])]
        return [value for row in zip(*columns, strict=True) for value in mapped(kernel, matrices[1], row)]

    # epilogue ---------------------------------------------------------------------------------------------------------

    def _store(self, tile: Operand, number: Operand) -> None:
        """The epilogue at the pixels of a tile that exist."""
        kernel, plan = self.kernel, self.plan
        place = self.reader.place(tile)
        outputs = [axis.outputs for axis in plan.blocking.axes]
        extents = [
            f.outputs if ends_with_tiles(plan, i)
            else kernel.min(kernel.sub(self.buffers.operand(axis.outputs), origin), f.outputs)
            for i, (axis, f, origin) in enumerate(
                zip(plan.loops.windows, plan.blocking.axes, place.origin, strict=True)
            )
        ]  # fmt: skip
        strides = [prod(outputs[i + 1 :]) * plan.pass_width for i in range(len(outputs))]

        def pixel(offset: Operand, at: tuple[Operand, ...]) -> None:
            loops: list[AnyIndex] = [Index(0)] * self.root.rank
            for loop, value in place.outer.items():
                loops[loop] = Index(value)
            for axis, origin, i in zip(plan.loops.windows, place.origin, at, strict=True):
                loops[axis.pixel] = Index(kernel.add(origin, i))
            self._columns(loops, offset, number)

        over_axes(kernel, extents, strides, pixel)

    def _columns(self, loops: list[AnyIndex], offset: Operand, number: Operand) -> None:
        """The epilogue of one pixel: whole vectors of columns, then the rest."""
        kernel, plan = self.kernel, self.plan
        columns, lanes, width = plan.loops.columns, plan.lanes, plan.pass_width
        first = kernel.mul(number, width)

        def vector(v: Operand) -> tuple[Operand, ...]:
            at = kernel.mul(v, lanes)
            self._vector(loops, kernel.add(offset, at), kernel.add(first, at), None)
            return ()

        if columns % width == 0:
            in_turn = kernel.compact or (plan.form is not None and not plan.form.vectors)
            for v in range(width // lanes) if not in_turn else ():
                vector(v)
            kernel.loop(0, width // lanes if in_turn else 0, 1, vector)
            return
        whole = columns // lanes * lanes
        rest = kernel.sub(whole // lanes, kernel.mul(number, width // lanes))
        kernel.loop(0, kernel.min(rest, width // lanes), 1, vector)
        if whole < columns:
            last = plan.pass_count - 1
            at = kernel.add(offset, whole - last * width)
            kernel.when(kernel.compare("ge", number, last), lambda: self._vector(loops, at, whole, columns - whole))

    def _vector(self, loops: Sequence[AnyIndex], offset: Operand, column: Operand, active: Operand | None) -> None:
        at = list(loops)
        at[self.plan.loops.contraction.column.inner] = Index(column, 1 if self.plan.lanes > 1 else 0)
        value = self.kernel.load(self.pixels, offset, self.plan.lanes, align=self.align)
        if splat_value(self.root.outputs[0]) != 0:
            value = self.kernel.add(value, self.results.start(at, active))
        self.results.finish(at, active, value)
