"""The kernel of a window root: lines, tiles of pixels, panels of channels; columns of the image shared by the pixels of
a tile."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import partial
from math import prod

from fuseline.analysis.source_paths import Bound
from fuseline.analysis.structured import multiply_add_operands
from fuseline.ir import dim as d
from fuseline.targets.cpu.combinators.split import Range, block_of, split_tiles
from fuseline.targets.cpu.combinators.tail import live_lanes, over_panels
from fuseline.targets.cpu.emit.body_point import BodyPoint
from fuseline.targets.cpu.emit.coordinates import AnyIndex, Index, point_at
from fuseline.targets.cpu.emit.long_sums import summed
from fuseline.targets.cpu.families.combining import adds_floats, combiners
from fuseline.targets.cpu.families.contraction.axes import Axis
from fuseline.targets.cpu.families.contraction.runtime_pixels import RuntimePixels
from fuseline.targets.cpu.families.contraction.tile import place
from fuseline.targets.cpu.families.root.kernel import RootKernel
from fuseline.targets.cpu.families.window.columns import ColumnWindows
from fuseline.targets.cpu.families.window.filter_reader import FilterReader
from fuseline.targets.cpu.families.window.image_reader import ImageReader, int_stride
from fuseline.targets.cpu.families.window.loops import Image
from fuseline.targets.cpu.families.window.plan import WindowPlan
from fuseline.targets.cpu.families.window.tile import Tile, Window, channel, channel_of_part
from fuseline.targets.cpu.kernel_ir.builder import KernelBuilder
from fuseline.targets.cpu.kernel_ir.types import MemRef, Operand, Value

Row = Callable[[Window, Sequence[Value]], list[Value]]
"""One row of the window: what is carried, and what it is afterwards."""

Columns = Sequence[tuple[tuple[int, ...], list[tuple[int, int]]]]
"""The image columns under a row of the window, in order: each place with the pixels and taps that see it."""


class WindowKernel(RootKernel):
    """Builds the kernel of a plan."""

    def __init__(self, plan: WindowPlan, kernel: KernelBuilder) -> None:
        rows = plan.loops.pixel.loops if plan.loops.pixel is not None else ()
        lane = plan.loops.channel.loops[-1]
        super().__init__(plan, kernel, plan.loops.root, plan.paths, plan.lanes, rows=rows, lane=lane)
        self.plan, self.loops = plan, plan.loops
        self.reader = ImageReader(plan, self.buffers, self.image_memory)
        self.filters = FilterReader(plan, self.emitter)
        self.sums = not plan.columns_first and adds_floats(self.loops.root.op)
        self.fused = self.loops.filter is not None and multiply_add_operands(self.loops.root.op) is not None
        self.stage = kernel.scratch(self.loops.dtype, plan.pixels * plan.width) if kernel.compact else None

    def prepare(self) -> None:
        """Fill the padding row."""
        self.reader.fill_padding_row()

    # workgroups -------------------------------------------------------------------------------------------------------

    def workgroup(self, number: Operand) -> tuple[Operand, ...]:
        """Lines outside, tiles and panels inside."""
        plan, kernel, loops, operand = self.plan, self.kernel, self.loops, self.buffers.operand
        at = self.buffers.coordinates(number, self.plan.grid)
        outer = dict(zip(loops.outer, at, strict=False))
        lines = block_of(kernel, at[-2], plan.blocks.lines, operand(loops.line.extent if loops.line is not None else 1))
        panels = block_of(kernel, at[-1], plan.blocks.panels, operand(plan.panel_count))

        self.filters.enter(outer, panels)

        def line(i: Operand) -> tuple[()]:
            self._line({**outer, loops.line: i} if loops.line is not None else outer, panels)
            return ()

        kernel.loop(*lines, 1, line)
        return ()

    def _line(self, outer: dict[Axis, Operand], panels: Range) -> None:
        """Tall tiles, then short ones."""
        if self.plan.split is None:
            self._runtime_line(self.pixels(outer, 1), panels)
            return
        form, pixel = self.plan.form, self.loops.pixel
        for tiles in split_tiles(self.plan.split, both=form is not None and form.short):
            starts = tiles.start_range
            if form is not None and pixel is not None and isinstance(pixel.extent, int):
                starts = form.starts(tiles, pixel.extent)
            one = self.pixels(outer, tiles.height, starts)
            tiles.each(self.kernel, lambda t, start, one=one: self.panels(one.of(start=start), panels))

    def pixels(self, outer: dict[Axis, Operand], pixels: int, start_range: tuple[int, int] | None = None) -> Tile:
        """A tile of some pixels, whose place is not known yet."""
        return Tile(outer, 0, pixels, start_range, self.loops.images[0])

    def _runtime_line(self, one: Tile, panels: Range) -> None:
        """A line of unknown length. Whole tiles inside the image have code of their own, but for the narrowest, for
        lines that are mostly edges."""
        kernel, pixel = self.kernel, self.loops.pixel
        assert pixel is not None
        line = RuntimePixels(kernel, self.buffers.operand(pixel.extent), self.plan.pixels)
        for tiles in line.tiles:
            inside = self.reader.interior(pixel, tiles) if tiles is not line.tiles[-1] else None
            kernel.loop(
                0, tiles.count, 1, partial(self._runtime_tile, one.of(pixels=tiles.width), panels, line.extent, inside)
            )
        kernel.loop(0, line.single, 1, lambda t: self.panels(one.of(start=t), panels))

    def _runtime_tile(
        self, one: Tile, panels: Range, extent: Operand, inside: Range | None, t: Operand
    ) -> tuple[Operand, ...]:
        """Tile `t` of a line of `extent` pixels: inside the image, at its edge, or the last one laid back."""
        kernel = self.kernel
        first = kernel.mul(t, one.pixels)

        def at_edge() -> tuple[Operand, ...]:
            start = kernel.min(first, kernel.sub(extent, one.pixels))
            return self.panels(one.of(start=start, stored=kernel.sub(first, start)), panels)

        if inside is None:
            return at_edge()
        is_inside = kernel.bitand(kernel.compare("ge", t, inside[0]), kernel.compare("lt", t, inside[1]))
        return kernel.when(is_inside, lambda: self.panels(one.of(start=first, inside=True), panels), at_edge)

    def panels(self, one: Tile, panels: Range) -> tuple[()]:
        """The panels of every part of the image: whole ones in a loop, then the narrower one at the end."""
        kernel, plan, operand = self.kernel, self.plan, self.buffers.operand
        for part, image in enumerate(self.loops.images):
            before = operand(plan.panels_before(part))
            first, last = (kernel.sub(end, before) if part else end for end in panels)
            whole = operand(d.floor_div(image.channels, plan.width))
            cut = whole, kernel.sub(operand(image.channels), kernel.mul(whole, plan.width))

            def panel(number: Operand, channels: Operand, image: Image = image) -> None:
                self.emit_tile(
                    one.of(image=image, panel=number, actives=live_lanes(kernel, channels, plan.lanes, plan.width))
                )

            here = kernel.max(first, 0) if part else first, last
            over_panels(kernel, cut, plan.width, here, panel, anywhere=len(self.loops.images) > 1)
        return ()

    # one tile ---------------------------------------------------------------------------------------------------------

    def emit_tile(self, tile: Tile) -> None:
        """One tile: the window in registers, then the epilogue."""
        at = partial(self._loops, tile)
        starts = self.results.starts(tile.pixels, tile.actives, at)
        whole = self._entered(tile, Window(self.image_base(tile), self.filters.base(tile), {}, ()), None, {}, 0)
        if self.plan.columns_first:
            columns = ColumnWindows(self.reader, tile)
            totals = columns.totals(self._nest(tile, 0, whole, columns.initial(), columns.row), starts)
        else:
            seen = self._seen(tile)
            totals = self._nest(
                tile, 0, whole, starts, lambda window, carried: self.row(tile, window, seen, list(carried))
            )
        if self.stage is not None:
            self.results.store_staged(self.stage, totals, tile.actives, at, (tile.stored, tile.pixels))
        else:
            self.results.store(totals, tile.actives, at, first=tile.stored)

    def _loops(self, tile: Tile, pixel: Operand, v: Operand) -> list[AnyIndex]:
        """The root's loops at a vector of a pixel; reduction loops at 0."""
        kernel, loops, plan = self.kernel, self.loops, self.plan
        places = {axis.inner: value for axis, value in tile.outer.items()}
        if loops.pixel is not None:
            places[loops.pixel.inner] = kernel.add(tile.start, pixel)
        at = point_at(loops.root.rank, places)
        first = channel(self.buffers, plan, tile, kernel.add(v, tile.first))
        place(self.buffers, at, loops.channel, Index(first, 1 if plan.lanes > 1 else 0))
        return at

    # reduction --------------------------------------------------------------------------------------------------------

    def _nest(self, tile: Tile, level: int, window: Window, totals: Sequence[Value], row: Row) -> list[Value]:
        if level == len(self.loops.down):
            return row(window, totals)
        axis, kernel = self.loops.down[level], self.kernel
        lo, hi = self.reader.clipped(tile, axis, self._row_bounds(tile, axis))

        def body(i: Operand, *carried: Value) -> Sequence[Value]:
            step = kernel.mul(i, self.buffers.operand(tile.image.access.stride(axis.inner)))
            filter_ = kernel.add(window.filter, kernel.mul(i, self.filters.stride(axis)))
            at = {**window.at, axis: i}
            inner = self._entered(tile, replace(window, filter=filter_), axis, at, step)
            return self._nest(tile, level + 1, inner, carried, row)

        if self.sums:
            return list(summed(kernel, (lo, hi), self._terms(level), totals, lambda i, held: body(i, *held)))
        return list(kernel.loop(lo, hi, 1, body, totals))

    def _row_bounds(self, tile: Tile, axis: Axis | None) -> list[Bound]:
        """The bounds of whole window rows that an axis of the reduction moves, or that none does."""
        bounds = tile.image.access.bounds
        return [b for b in bounds if self.reader.axis_of(b) is axis and not self.reader.moves(b)]

    def _entered(self, tile: Tile, window: Window, axis: Axis | None, at: dict[Axis, Operand], step: Operand) -> Window:
        """The window `step` elements further on, at `at` of the axis (None: outside of all): what its bounds ask."""
        kernel, bounds = self.kernel, self._row_bounds(tile, axis)
        checked = bounds if axis is None or not self.loops.skips_padding else ()
        rows = (*window.rows, *self.reader.rows_inside(tile, checked, at))
        moved = replace(window, image=kernel.add(window.image, step), at=at, rows=rows)
        if window.place is None and all(bound.border is None for bound in bounds):
            return moved
        start = kernel.offset(self.reader.start(tile, window), step)
        return replace(moved, place=self.reader.folded(tile, start, bounds, at))

    def _terms(self, level: int) -> tuple[int | None, int | None]:
        """How many iterations a loop of the window has and how many terms each adds; None where that is not known."""
        across = self.loops.across
        count, *extents = [axis.extent for axis in self.loops.down[level:]] + [
            across.extent if across is not None else 1
        ]
        known = [extent for extent in extents if isinstance(extent, int)]
        return count if isinstance(count, int) else None, prod(known) if len(known) == len(extents) else None

    def _seen(self, tile: Tile) -> Columns:
        """The image columns under a row of the window, each with the pixels that see it: it is loaded once for all of
        them."""
        across = self.loops.across
        taps = across.extent if across is not None else 1
        assert isinstance(taps, int)
        seen: dict[tuple[int, ...], list[tuple[int, int]]] = {}
        for pixel in range(tile.pixels):
            for tap in range(taps):
                seen.setdefault(self.reader.place(tile.image.access, pixel, tap), []).append((pixel, tap))
        return sorted(seen.items())

    def row(self, tile: Tile, window: Window, columns: Columns, totals: list[Value]) -> list[Value]:
        """One window row."""
        for v in range(len(tile.actives)):
            totals = self.step(tile, window, columns, v, 0, *totals)
        return totals

    def step(self, tile: Tile, window: Window, columns: Columns, v: int, step: Operand, *totals: Value) -> list[Value]:
        """Vector `v` of a window row, at channel `step` of its groups where the channels mix."""
        out = list(totals)
        taps = 1 + max(tap for _, users in columns for _, tap in users)
        filters = [self.filters.vector(tile, window, tap, v, step) for tap in range(taps)]
        for place_, users in columns:
            column = self.column(tile, window, place_[0], users[0], v, step)
            for pixel, tap in users:
                at = pixel * len(tile.actives) + v
                out[at] = self._combined(tile, window, pixel, tap, v, (column, filters[tap], out[at]))
        return out

    def column(self, tile: Tile, window: Window, offset: int, user: tuple[int, int], v: int, step: Operand) -> Value:
        """A vector of an image column."""
        del step
        return self.reader.column(tile, window, offset, user, v, tile.actives[v])

    def _combined(
        self, tile: Tile, window: Window, pixel: int, tap: int, v: int, values: tuple[Value, Value | None, Value]
    ) -> Value:
        column, filter_, total = values
        if self.fused and filter_ is not None:
            return self.kernel.fma(column, filter_, total)
        loops = self.loops
        if loops.image_dtype != loops.dtype:  # the body would convert what is converted
            found = combiners(loops.root.op)
            assert found is not None
            return found[0].combine(self.kernel, total, column)
        at = self._loops(tile, pixel, v)
        for axis, i in window.at.items():
            at[axis.inner] = Index(i)
        if loops.across is not None:
            at[loops.across.inner] = Index(tap)
        inputs = {loops.image_position: column} | ({loops.filter_position: filter_} if filter_ is not None else {})
        point = BodyPoint(self.emitter, loops.root, at, self.plan.lanes, tile.actives[v], [total], inputs)
        return self.kernel.splat(point.yields()[0], self.plan.lanes)

    # image ------------------------------------------------------------------------------------------------------------

    def image_base(self, tile: Tile) -> Operand:
        """Where the window of a tile's first pixel begins, in the memory of its image."""
        kernel = self.kernel
        access = tile.image.access
        total = kernel.add(
            self.buffers.operand(access.flat.constant), channel_of_part(self.buffers, self.plan, tile, 0)
        )
        for axis, value in tile.outer.items():
            total = kernel.add(total, kernel.mul(value, self.buffers.operand(access.stride(axis.inner))))
        if self.loops.pixel is not None:
            total = kernel.add(total, kernel.mul(tile.start, int_stride(access, self.loops.pixel)))
        return total

    def image_memory(self, image: Image) -> MemRef:
        """What holds a part of the image."""
        return self.buffers.argument(image.access.source)
