"""The kernel of a window root: lines, tiles of pixels, panels of channels; columns of the image shared by the pixels of
a tile."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial

from fuseline.analysis.structured import multiply_add_operands
from fuseline.ir import dim as d
from fuseline.targets.cpu.emit.body_emitter import BodyEmitter
from fuseline.targets.cpu.emit.body_point import BodyPoint
from fuseline.targets.cpu.emit.coordinates import AnyIndex, Index
from fuseline.targets.cpu.families.contraction.problem import Axis
from fuseline.targets.cpu.families.contraction.runtime_pixels import RuntimePixels
from fuseline.targets.cpu.families.contraction.staged_results import in_turn, put_aside
from fuseline.targets.cpu.families.window.columns import ColumnWindows
from fuseline.targets.cpu.families.window.filter_reader import FilterReader
from fuseline.targets.cpu.families.window.image_reader import ImageReader, int_stride
from fuseline.targets.cpu.families.window.plan import Image, WindowPlan
from fuseline.targets.cpu.families.window.tile import Tile, Window, channel, channel_of_part
from fuseline.targets.cpu.kernel_ir.builder import KernelBuilder
from fuseline.targets.cpu.kernel_ir.types import MemRef, Operand, Value

Range = tuple[Operand, Operand]
"""From the first up to the end."""

Row = Callable[[Window, Sequence[Value]], list[Value]]
"""One row of the window: what is carried, and what it is afterwards."""


class WindowKernel:
    """Builds the kernel of a plan."""

    def __init__(self, plan: WindowPlan, kernel: KernelBuilder) -> None:
        self.plan, self.problem, self.kernel = plan, plan.problem, kernel
        self.emitter = BodyEmitter(kernel, plan.view, {self.problem.root.op.results[0]: self._held})
        self.frame = self.emitter.frame
        self.reader = ImageReader(plan, self.frame, self.image_memory)
        self.filters = FilterReader(plan, self.frame)
        self.fused = self.problem.filter is not None and multiply_add_operands(self.problem.root.op) is not None
        self.accumulator: Value | None = None
        self.stage = kernel.scratch(self.problem.dtype, plan.pixels * plan.width) if kernel.compact else None

    def _held(self, index: Sequence[AnyIndex], lanes: int, active: Operand | None) -> Value:
        del index, lanes, active
        assert self.accumulator is not None
        return self.accumulator

    def emit(self) -> None:
        """Fill the page of pad values, then run the workgroups."""
        self.reader.fill_page()
        self.kernel.loop(self.kernel.begin, self.kernel.end, 1, self._workgroup)

    # workgroups -------------------------------------------------------------------------------------------------------

    def _workgroup(self, number: Operand) -> tuple[Operand, ...]:
        plan, kernel, problem = self.plan, self.kernel, self.problem
        at = self.frame.coordinates(number, self.plan.grid)
        outer = dict(zip(problem.outer, at, strict=False))
        lines = self._range(at[-2], plan.blocks.lines, problem.line.extent if problem.line is not None else 1)
        panels = self._range(at[-1], plan.blocks.panels, plan.panel_count)

        def line(i: Operand) -> tuple[Operand, ...]:
            self._line({**outer, problem.line: i} if problem.line is not None else outer, panels)
            return ()

        kernel.loop(*lines, 1, line)
        return ()

    def _range(self, index: Operand, size: int, count: d.Dim) -> tuple[Operand, Operand]:
        if isinstance(count, int) and size >= count:
            return 0, count
        start = self.kernel.mul(index, size)
        return start, self.kernel.min(self.kernel.add(start, size), self.frame.operand(count))

    def _line(self, outer: dict[Axis, Operand], panels: tuple[Operand, Operand]) -> None:
        """Tall tiles, then short ones."""
        kernel, split = self.kernel, self.plan.split

        def tiles(
            pixels: int, start: Callable[[Operand], Operand], spread: tuple[int, int] | None
        ) -> Callable[[Operand], tuple[Operand, ...]]:
            def body(t: Operand) -> tuple[Operand, ...]:
                self._panels(outer, start(t), pixels, spread, panels)
                return ()

            return body

        if split is not None:
            h, tall, count = split.height, split.tall, split.count
            kernel.loop(0, tall, 1, tiles(h, lambda t: kernel.mul(t, h), (0, (tall - 1) * h)))
            if split.short:
                spread = (tall * h, (count - 1) * (h - 1) + tall)
                kernel.loop(tall, count, 1, tiles(h - 1, lambda t: kernel.add(kernel.mul(t, h - 1), tall), spread))
            return
        self._runtime_line(outer, panels)

    def _runtime_line(self, outer: dict[Axis, Operand], panels: tuple[Operand, Operand]) -> None:
        """A line of unknown length. Whole tiles inside the image have code of their own, but for the narrowest, for
        lines that are mostly edges."""
        kernel, pixel = self.kernel, self.problem.pixel
        assert pixel is not None
        line = RuntimePixels(self.frame, pixel.extent, self.plan.pixels)
        for tiles in line.tiles:
            inside = self.reader.interior(pixel, tiles) if tiles is not line.tiles[-1] else None
            kernel.loop(
                0, tiles.count, 1, partial(self._runtime_tile, (outer, panels), (line.extent, tiles.width), inside)
            )
        kernel.loop(0, line.single, 1, lambda t: self._panels(outer, t, 1, None, panels))

    def _runtime_tile(
        self,
        place: tuple[dict[Axis, Operand], tuple[Operand, Operand]],
        size: tuple[Operand, int],
        inside: tuple[Operand, Operand] | None,
        t: Operand,
    ) -> tuple[Operand, ...]:
        """Tile `t` of a line: inside the image, at its edge, or the last one laid back. `size` is the line's and the
        tile's."""
        kernel, (outer, panels), (extent, width) = self.kernel, place, size
        first = kernel.mul(t, width)

        def at_edge() -> tuple[Operand, ...]:
            start = kernel.min(first, kernel.sub(extent, width))
            return self._panels(outer, start, width, None, panels, stored=kernel.sub(first, start))

        if inside is None:
            return at_edge()
        is_inside = kernel.bitand(kernel.compare("ge", t, inside[0]), kernel.compare("lt", t, inside[1]))
        return kernel.when(is_inside, lambda: self._panels(outer, first, width, None, panels, inside=True), at_edge)

    def _panels(
        self,
        outer: dict[Axis, Operand],
        start: Operand,
        pixels: int,
        spread: tuple[int, int] | None,
        panels: tuple[Operand, Operand],
        *,
        inside: bool = False,
        stored: Operand | None = None,
    ) -> tuple[Operand, ...]:
        """The panels of every part of the image: whole ones in a loop, then the narrower one at the end."""
        kernel = self.kernel
        for part, image in enumerate(self.problem.images):

            def at(panel: Operand, actives: Sequence[Operand | None], image: Image = image) -> tuple[Operand, ...]:
                self._tile(Tile(outer, start, pixels, spread, image, panel, actives, inside, stored))
                return ()

            before = self.frame.operand(self.plan.panels_before(part))
            first, last = (kernel.sub(end, before) if part else end for end in panels)
            self._part(image, (kernel.max(first, 0) if part else first, last), at)
        return ()

    def _part(
        self,
        image: Image,
        panels: tuple[Operand, Operand],
        at: Callable[[Operand, Sequence[Operand | None]], tuple[Operand, ...]],
    ) -> None:
        """The panels of one part of the image that lie in the range `panels`, which may begin and end beyond it."""
        plan, kernel, channels = self.plan, self.kernel, image.channels
        whole = self.frame.operand(d.floor_div(channels, plan.width))
        first, last = panels
        kernel.loop(first, kernel.min(last, whole), 1, lambda panel: at(panel, [None] * plan.vectors))
        here = kernel.compare("gt", last, whole)
        if len(self.problem.images) > 1:
            here = kernel.bitand(here, kernel.compare("le", first, whole))
        if not isinstance(channels, int):
            rest = kernel.sub(self.frame.operand(channels), kernel.mul(whole, plan.width))
            actives: list[Operand | None] = [
                kernel.max(kernel.min(kernel.sub(rest, v * plan.lanes), plan.lanes), 0) for v in range(plan.vectors)
            ]
            kernel.when(kernel.bitand(kernel.compare("gt", rest, 0), here), lambda: at(whole, actives))
        elif channels % plan.width:
            rest = channels % plan.width
            fixed: Sequence[Operand | None] = [None] * (rest // plan.lanes) + (
                [rest % plan.lanes] if rest % plan.lanes else []
            )
            kernel.when(here, lambda: at(whole, fixed))

    # one tile ---------------------------------------------------------------------------------------------------------

    def _tile(self, tile: Tile) -> None:
        kernel = self.kernel
        starts = [self._start(tile, p, v) for p in range(tile.pixels) for v in range(len(tile.actives))]
        rows = self.reader.rows_inside(
            tile,
            [b for b in tile.image.access.bounds if not self.reader.moves(b) and self.reader.axis_of(b) is None],
            {},
        )
        whole = Window(self.image_base(tile), self.filters.base(tile), {}, rows)
        if self.plan.columns_first:
            columns = ColumnWindows(self.reader, tile)
            totals = columns.totals(self._nest(tile, 0, whole, columns.initial(), columns.row), starts)
        else:
            totals = self._nest(tile, 0, whole, starts, lambda window, carried: self._columns(tile, window, carried))
        if self.stage is not None:
            self._store_staged(self.stage, tile, totals)
            return
        for p in range(tile.pixels):
            values = totals[p * len(tile.actives) : (p + 1) * len(tile.actives)]
            if tile.stored is None:
                self._store_pixel(tile, p, values)
            else:
                kernel.when(kernel.compare("ge", p, tile.stored), partial(self._store_pixel, tile, p, values))

    def _loops(self, tile: Tile, pixel: Operand, v: Operand) -> list[AnyIndex]:
        """The root's loops at a vector of a pixel; reduction loops at 0."""
        kernel, problem = self.kernel, self.problem
        loops: list[AnyIndex] = [Index(0)] * problem.root.rank
        for axis, value in tile.outer.items():
            loops[axis.inner] = Index(value)
        if problem.pixel is not None:
            loops[problem.pixel.inner] = Index(kernel.add(tile.start, pixel))
        loops[problem.channel.inner] = Index(channel(self.frame, self.plan, tile, v), 1 if self.plan.lanes > 1 else 0)
        return loops

    def _start(self, tile: Tile, pixel: int, v: int) -> Value:
        root = self.problem.root
        index = self.emitter.through(root.output_maps[0], self._loops(tile, pixel, v), self.plan.lanes)
        return self.emitter.value_at(root.outputs[0], index, self.plan.lanes, tile.actives[v])

    def _store_staged(self, stage: MemRef, tile: Tile, totals: Sequence[Value]) -> None:
        """Put the totals aside, then finish and store them one by one in a loop."""
        kernel, lanes = self.kernel, self.plan.lanes
        put_aside(kernel, stage, totals)

        def pixel(p: Operand) -> tuple[()]:
            in_turn(
                kernel,
                stage,
                kernel.mul(p, len(tile.actives) * lanes),
                lanes,
                tile.actives,
                partial(self._store, tile, p),
            )
            return ()

        kernel.loop(0 if tile.stored is None else tile.stored, tile.pixels, 1, pixel)

    def _store_pixel(self, tile: Tile, pixel: int, values: Sequence[Value]) -> tuple[Operand, ...]:
        for v, active in enumerate(tile.actives):
            self._store(tile, pixel, v, active, values[v])
        return ()

    def _store(self, tile: Tile, pixel: Operand, v: Operand, active: Operand | None, value: Value) -> None:
        loops = self._loops(tile, pixel, v)
        self.accumulator = value
        for path in self.plan.paths:
            index = path.index(self.frame, loops, self.plan.lanes)
            result = self.emitter.value_at(path.value, index, self.plan.lanes, active)
            path.store(self.frame, index, result, active)

    # reduction --------------------------------------------------------------------------------------------------------

    def _nest(self, tile: Tile, level: int, window: Window, totals: Sequence[Value], row: Row) -> list[Value]:
        if level == len(self.problem.down):
            return row(window, totals)
        axis, kernel = self.problem.down[level], self.kernel
        bounds = [b for b in tile.image.access.bounds if self.reader.axis_of(b) is axis and not self.reader.moves(b)]
        lo, hi = self.reader.clipped(tile, axis, bounds)

        def body(i: Operand, *carried: Value) -> Sequence[Value]:
            at = {**window.at, axis: i}
            rows = () if self.problem.skips_padding else self.reader.rows_inside(tile, bounds, at)
            image = kernel.add(window.image, kernel.mul(i, self.frame.operand(tile.image.access.stride(axis.inner))))
            inner = Window(
                image, kernel.add(window.filter, kernel.mul(i, self.filters.stride(axis))), at, (*window.rows, *rows)
            )
            return self._nest(tile, level + 1, inner, carried, row)

        return list(kernel.loop(lo, hi, 1, body, totals))

    def _columns(self, tile: Tile, window: Window, totals: Sequence[Value]) -> list[Value]:
        """One window row: every image column is loaded once and given to each pixel that sees it."""
        problem = self.problem
        taps = problem.across.extent if problem.across is not None else 1
        assert isinstance(taps, int)
        out = list(totals)
        seen: dict[tuple[int, ...], list[tuple[int, int]]] = {}
        for pixel in range(tile.pixels):
            for tap in range(taps):
                seen.setdefault(self.reader.place(tile.image.access, pixel, tap), []).append((pixel, tap))
        for v, active in enumerate(tile.actives):
            filters = [self.filters.vector(tile, window, tap, v, active) for tap in range(taps)]
            for place, users in sorted(seen.items()):
                column = self.reader.column(tile, window, place[0], users[0], v, active)
                for pixel, tap in users:
                    at = pixel * len(tile.actives) + v
                    out[at] = self._combined(tile, window, pixel, tap, v, (column, filters[tap], out[at]))
        return out

    def _combined(
        self, tile: Tile, window: Window, pixel: int, tap: int, v: int, values: tuple[Value, Value | None, Value]
    ) -> Value:
        column, filter_, total = values
        if self.fused and filter_ is not None:
            return self.kernel.fma(column, filter_, total)
        problem = self.problem
        loops = self._loops(tile, pixel, v)
        for axis, i in window.at.items():
            loops[axis.inner] = Index(i)
        if problem.across is not None:
            loops[problem.across.inner] = Index(tap)
        inputs = {problem.image_position: column} | ({problem.filter_position: filter_} if filter_ is not None else {})
        point = BodyPoint(self.emitter, problem.root, loops, self.plan.lanes, tile.actives[v], [total], inputs)
        return self.kernel.splat(point.yields()[0], self.plan.lanes)

    # image ------------------------------------------------------------------------------------------------------------

    def image_base(self, tile: Tile) -> Operand:
        """Where the window of a tile's first pixel begins, in the memory of its image."""
        kernel = self.kernel
        access = tile.image.access
        total = kernel.add(self.frame.operand(access.flat.constant), channel_of_part(self.frame, self.plan, tile, 0))
        for axis, value in tile.outer.items():
            total = kernel.add(total, kernel.mul(value, self.frame.operand(access.stride(axis.inner))))
        if self.problem.pixel is not None:
            total = kernel.add(total, kernel.mul(tile.start, int_stride(access, self.problem.pixel)))
        return total

    def image_memory(self, image: Image) -> MemRef:
        """What holds a part of the image."""
        return self.frame.argument(image.access.source)
