"""The kernel of a window root: lines, tiles of pixels, panels of channels; columns of the image shared by the pixels of a tile."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial

from fuseline.analysis.operand_access import Bound, LinearAccess
from fuseline.analysis.structured import multiply_add_operands
from fuseline.ir import dim as d
from fuseline.targets.cpu.emit.access import AnyIndex, Index
from fuseline.targets.cpu.emit.evaluator import BodyPoint, Evaluator
from fuseline.targets.cpu.families.contraction.problem import Axis
from fuseline.targets.cpu.families.contraction.runtime_pixels import RuntimePixels, Tiles
from fuseline.targets.cpu.families.contraction.runtime_rows import interior_of
from fuseline.targets.cpu.families.contraction.staged_results import in_turn, put_aside
from fuseline.targets.cpu.families.window.columns import ColumnWindows
from fuseline.targets.cpu.families.window.plan import Image, WindowPlan
from fuseline.targets.cpu.kernel_ir.builder import KernelBuilder
from fuseline.targets.cpu.kernel_ir.types import MemRef, Operand, Value


@dataclass(frozen=True, slots=True)
class Tile:
    """The place of a tile: outer axes and line, first pixel, number of pixels, the part of the image, its panel, the live lanes of its vectors.

    `spread` bounds the first pixel over all tiles that this code serves; None where it is not known. `inside`: no pixel meets padding along the
    line. `stored`: pixels at the beginning that other tiles store (None: none).
    """

    outer: dict[Axis, Operand]
    start: Operand
    pixels: int
    spread: tuple[int, int] | None
    image: Image
    panel: Operand
    actives: Sequence[Operand | None]
    inside: bool = False
    stored: Operand | None = None


@dataclass(frozen=True, slots=True)
class Window:
    """Where the reduction is, outside the columns: what it adds to image and filter indices, its indices, and the checks to be made."""

    image: Operand
    filter: Operand
    at: dict[Axis, Operand]
    rows: tuple[Value, ...]


Range = tuple[Operand, Operand]
"""From the first up to the end."""

Row = Callable[[Window, Sequence[Value]], list[Value]]
"""One row of the window: what is carried, and what it is afterwards."""


class WindowKernel:
    """Builds the kernel of a plan."""

    def __init__(self, plan: WindowPlan, kernel: KernelBuilder) -> None:
        self.plan, self.problem, self.kernel = plan, plan.problem, kernel
        self.evaluator = Evaluator(kernel, plan.view, {self.problem.root.op.results[0]: self._held})
        self.frame = self.evaluator.frame
        padded = [image.access for image in self.problem.images if image.access.bounds]
        self.pad = padded[0].pad if padded else 0
        self.page = kernel.scratch(self.problem.dtype, plan.width) if padded else None
        self.filter_memory = self._filter_memory()
        self.fused = self.problem.filter is not None and multiply_add_operands(self.problem.root.op) is not None
        self.accumulator: Value | None = None
        self.stage = kernel.scratch(self.problem.dtype, plan.pixels * plan.width) if kernel.compact else None

    def _held(self, index: Sequence[AnyIndex], lanes: int, active: Operand | None) -> Value:
        del index, lanes, active
        assert self.accumulator is not None
        return self.accumulator

    def _filter_memory(self) -> MemRef | None:
        plan, filter_ = self.plan, self.problem.filter
        if filter_ is None:
            return None
        if plan.packed is not None:
            position = plan.view.tensors.index(filter_.value)  # pyright: ignore[reportArgumentType]
            return self.kernel.binding(position, self.problem.dtype, plan.packed.elements)
        assert filter_.access is not None
        return self.frame.argument(filter_.access.source)

    def emit(self) -> None:
        """Fill the page of pad values, then run the workgroups."""
        if self.page is not None:
            value = self.kernel.const(self.pad, self.problem.dtype, self.plan.lanes)
            for v in range(self.plan.vectors):
                self.kernel.store(self.page, v * self.plan.lanes, value)
        self.kernel.loop(self.kernel.begin, self.kernel.end, 1, self._workgroup)

    # workgroups ----------------------------------------------------------------------------------------------------------------------

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

        def tiles(pixels: int, start: Callable[[Operand], Operand], spread: tuple[int, int] | None) -> Callable[[Operand], tuple[Operand, ...]]:
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
        """A line of unknown length. Whole tiles inside the image have code of their own, but for the narrowest, for lines that are mostly edges."""
        kernel, pixel = self.kernel, self.problem.pixel
        assert pixel is not None
        line = RuntimePixels(self.frame, pixel.extent, self.plan.pixels)
        for tiles in line.tiles:
            inside = self._interior(pixel, tiles) if tiles is not line.tiles[-1] else None
            kernel.loop(0, tiles.count, 1, partial(self._runtime_tile, (outer, panels), (line.extent, tiles.width), inside))
        kernel.loop(0, line.single, 1, lambda t: self._panels(outer, t, 1, None, panels))

    def _runtime_tile(
        self,
        place: tuple[dict[Axis, Operand], tuple[Operand, Operand]],
        size: tuple[Operand, int],
        inside: tuple[Operand, Operand] | None,
        t: Operand,
    ) -> tuple[Operand, ...]:
        """Tile `t` of a line: inside the image, at its edge, or the last one laid back. `size` is the line's and the tile's."""
        kernel, (outer, panels), (extent, width) = self.kernel, place, size
        first = kernel.mul(t, width)

        def at_edge() -> tuple[Operand, ...]:
            start = kernel.min(first, kernel.sub(extent, width))
            return self._panels(outer, start, width, None, panels, stored=kernel.sub(first, start))

        if inside is None:
            return at_edge()
        is_inside = kernel.bitand(kernel.compare("ge", t, inside[0]), kernel.compare("lt", t, inside[1]))
        return kernel.when(is_inside, lambda: self._panels(outer, first, width, None, panels, inside=True), at_edge)

    def _interior(self, pixel: Axis, tiles: Tiles) -> tuple[Operand, Operand] | None:
        """The whole tiles that meet no padding along the line; None where that is not known."""
        across = self.problem.across
        taps: dict[int, d.Dim] = {across.inner: across.extent} if across is not None else {}
        found = interior_of([bound for image in self.problem.images for bound in image.access.bounds], pixel.inner, taps, tiles.width)
        return (found.first, self.kernel.min(self.frame.operand(found.end), tiles.whole)) if found is not None else None

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

    def _part(self, image: Image, panels: tuple[Operand, Operand], at: Callable[[Operand, Sequence[Operand | None]], tuple[Operand, ...]]) -> None:
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
            actives: list[Operand | None] = [kernel.max(kernel.min(kernel.sub(rest, v * plan.lanes), plan.lanes), 0) for v in range(plan.vectors)]
            kernel.when(kernel.bitand(kernel.compare("gt", rest, 0), here), lambda: at(whole, actives))
        elif channels % plan.width:
            rest = channels % plan.width
            fixed: Sequence[Operand | None] = [None] * (rest // plan.lanes) + ([rest % plan.lanes] if rest % plan.lanes else [])
            kernel.when(here, lambda: at(whole, fixed))

    # one tile ------------------------------------------------------------------------------------------------------------------------

    def _tile(self, tile: Tile) -> None:
        kernel = self.kernel
        starts = [self._start(tile, p, v) for p in range(tile.pixels) for v in range(len(tile.actives))]
        rows = self._rows_inside(tile, [b for b in tile.image.access.bounds if not self._moves(b) and self._axis(b) is None], {})
        whole = Window(self.image_base(tile), self._filter_base(tile), {}, rows)
        if self.plan.columns_first:
            columns = ColumnWindows(self, tile)
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
        loops[problem.channel.inner] = Index(self._channel(tile, v), 1 if self.plan.lanes > 1 else 0)
        return loops

    def _channel(self, tile: Tile, v: Operand) -> Operand:
        """The first channel of a vector, in the whole image."""
        return self.kernel.add(self.frame.operand(tile.image.start), self._channel_of_part(tile, v))

    def _channel_of_part(self, tile: Tile, v: Operand) -> Operand:
        return self.kernel.add(self.kernel.mul(tile.panel, self.plan.width), self.kernel.mul(v, self.plan.lanes))

    def _start(self, tile: Tile, pixel: int, v: int) -> Value:
        root = self.problem.root
        index = self.evaluator.through(root.output_maps[0], self._loops(tile, pixel, v), self.plan.lanes)
        return self.evaluator.value_at(root.outputs[0], index, self.plan.lanes, tile.actives[v])

    def _store_staged(self, stage: MemRef, tile: Tile, totals: Sequence[Value]) -> None:
        """Put the totals aside, then finish and store them one by one in a loop."""
        kernel, lanes = self.kernel, self.plan.lanes
        put_aside(kernel, stage, totals)

        def pixel(p: Operand) -> tuple[()]:
            in_turn(kernel, stage, kernel.mul(p, len(tile.actives) * lanes), lanes, tile.actives, partial(self._store, tile, p))
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
            result = self.evaluator.value_at(path.value, index, self.plan.lanes, active)
            path.store(self.frame, index, result, active)

    # reduction -----------------------------------------------------------------------------------------------------------------------

    def _nest(self, tile: Tile, level: int, window: Window, totals: Sequence[Value], row: Row) -> list[Value]:
        if level == len(self.problem.down):
            return row(window, totals)
        axis, kernel = self.problem.down[level], self.kernel
        bounds = [b for b in tile.image.access.bounds if self._axis(b) is axis and not self._moves(b)]
        lo, hi = self._clipped(tile, axis, bounds)

        def body(i: Operand, *carried: Value) -> Sequence[Value]:
            at = {**window.at, axis: i}
            rows = () if self.problem.skips_padding else self._rows_inside(tile, bounds, at)
            image = kernel.add(window.image, kernel.mul(i, self.frame.operand(tile.image.access.stride(axis.inner))))
            inner = Window(image, kernel.add(window.filter, kernel.mul(i, self._filter_stride(axis))), at, (*window.rows, *rows))
            return self._nest(tile, level + 1, inner, carried, row)

        return list(kernel.loop(lo, hi, 1, body, totals))

    def _clipped(self, tile: Tile, axis: Axis, bounds: Sequence[Bound]) -> tuple[Operand, Operand]:
        """The iterations of `axis` that lie in the image, where padding may be left out; else all."""
        kernel = self.kernel
        lo, hi = 0, self.frame.operand(axis.extent)
        for bound in bounds if self.problem.skips_padding else ():
            base, step = self._coordinate(tile, bound, {}, 0), bound.coordinate.terms[axis.inner]
            assert isinstance(step, int)
            lo = kernel.max(lo, kernel.ceil_div(kernel.max(kernel.sub(0, base), 0), step))
            hi = kernel.min(hi, kernel.ceil_div(kernel.max(kernel.sub(self.frame.operand(bound.size), base), 0), step))
        return lo, hi

    def _columns(self, tile: Tile, window: Window, totals: Sequence[Value]) -> list[Value]:
        """One window row: every image column is loaded once and given to each pixel that sees it."""
        problem = self.problem
        taps = problem.across.extent if problem.across is not None else 1
        assert isinstance(taps, int)
        out = list(totals)
        seen: dict[tuple[int, ...], list[tuple[int, int]]] = {}
        for pixel in range(tile.pixels):
            for tap in range(taps):
                seen.setdefault(self.place(tile.image.access, pixel, tap), []).append((pixel, tap))
        for v, active in enumerate(tile.actives):
            filters = [self._filter(tile, window, tap, v, active) for tap in range(taps)]
            for place, users in sorted(seen.items()):
                column = self.column(tile, window, place[0], users[0], v, active)
                for pixel, tap in users:
                    at = pixel * len(tile.actives) + v
                    out[at] = self._combined(tile, window, pixel, tap, v, (column, filters[tap], out[at]))
        return out

    def place(self, access: LinearAccess, pixel: int, tap: int) -> tuple[int, ...]:
        """Where a pixel's tap reads, from the tile's first: elements, and every padded coordinate (two may differ only in the latter)."""
        problem = self.problem
        offset = pixel * _int_stride(access, problem.pixel) + tap * _int_stride(access, problem.across)
        moves = [(axis, i) for axis, i in ((problem.pixel, pixel), (problem.across, tap)) if axis is not None]
        bounds = [b for b in access.bounds if self._moves(b)]
        return (offset, *(sum(i * b.coordinate.terms.get(axis.inner, 0) for axis, i in moves) for b in bounds))  # pyright: ignore

    def _combined(self, tile: Tile, window: Window, pixel: int, tap: int, v: int, values: tuple[Value, Value | None, Value]) -> Value:
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
        point = BodyPoint(self.evaluator, problem.root, loops, self.plan.lanes, tile.actives[v], [total], inputs)
        return self.kernel.splat(point.yields()[0], self.plan.lanes)

    # image ---------------------------------------------------------------------------------------------------------------------------

    def image_base(self, tile: Tile) -> Operand:
        """Where the window of a tile's first pixel begins, in the memory of its image."""
        kernel = self.kernel
        access = tile.image.access
        total = kernel.add(self.frame.operand(access.flat.constant), self._channel_of_part(tile, 0))
        for axis, value in tile.outer.items():
            total = kernel.add(total, kernel.mul(value, self.frame.operand(access.stride(axis.inner))))
        if self.problem.pixel is not None:
            total = kernel.add(total, kernel.mul(tile.start, _int_stride(access, self.problem.pixel)))
        return total

    def image_memory(self, image: Image) -> MemRef:
        """What holds a part of the image."""
        return self.frame.argument(image.access.source)

    def column(self, tile: Tile, window: Window, offset: int, user: tuple[int, int], v: int, active: Operand | None) -> Value:
        """A vector of an image column, or of pad values outside the image."""
        kernel = self.kernel
        address = kernel.address(self.image_memory(tile.image), kernel.add(window.image, offset))
        for inside in (*window.rows, *self._column_checks(tile, window, user)):
            assert self.page is not None
            address = kernel.select_mem(inside, address, 0, self.page, 0)
        return kernel.load_at(address, v * self.plan.lanes, self.plan.lanes, active)

    def _column_checks(self, tile: Tile, window: Window, user: tuple[int, int]) -> list[Value]:
        pixel, tap = user
        across = self.problem.across
        at = {**window.at, **({across: tap} if across is not None else {})}
        found: list[Value] = []
        for bound in tile.image.access.bounds:
            if not self._moves(bound) or (tile.inside and self._along(bound)):
                continue
            low, high = self._crosses(tile, bound, pixel, tap)
            inside = self._inside(self._coordinate(tile, bound, at, pixel), bound, low, high)
            found += [inside] if inside is not None else []
        return found

    def _moves(self, bound: Bound) -> bool:
        """Whether a bound differs between the pixels of a tile, or between the taps of a window row."""
        across, pixel = self.problem.across, self.problem.pixel
        return any(axis is not None and axis.inner in bound.coordinate.terms for axis in (across, pixel))

    def _along(self, bound: Bound) -> bool:
        """Whether a bound moves with the pixels of a tile."""
        return self.problem.pixel is not None and self.problem.pixel.inner in bound.coordinate.terms

    def _axis(self, bound: Bound) -> Axis | None:
        return next((axis for axis in self.problem.reduction if axis.inner in bound.coordinate.terms), None)

    def _rows_inside(self, tile: Tile, bounds: Sequence[Bound], at: dict[Axis, Operand]) -> tuple[Value, ...]:
        found = [self._inside(self._coordinate(tile, bound, at, 0), bound, True, True) for bound in bounds]
        return tuple(inside for inside in found if inside is not None)

    def _inside(self, coordinate: Operand, bound: Bound, low: bool, high: bool) -> Value | None:
        kernel, size = self.kernel, self.frame.operand(bound.size)
        if not low and not high:
            return None
        if not low:
            return kernel.compare("lt", coordinate, size)
        return kernel.compare("ult", coordinate, size) if high else kernel.compare("ge", coordinate, 0)

    def _coordinate(self, tile: Tile, bound: Bound, at: dict[Axis, Operand], pixel: int) -> Operand:
        """A padded coordinate of a pixel; reduction axes that are not in `at` are at 0."""
        kernel, problem = self.kernel, self.problem
        places = {axis.inner: value for axis, value in (*tile.outer.items(), *at.items())}
        if problem.pixel is not None:
            places[problem.pixel.inner] = kernel.add(tile.start, pixel)
        total = self.frame.operand(bound.coordinate.constant)
        for loop, coefficient in bound.coordinate.loops.items():
            total = kernel.add(total, kernel.mul(places.get(loop, 0), self.frame.operand(coefficient)))
        return total

    def _crosses(self, tile: Tile, bound: Bound, pixel: int, tap: int) -> tuple[bool, bool]:
        """Whether the column can lie below 0, and at or beyond the size, in any tile that this code serves."""
        constant, size = bound.coordinate.constant, bound.size
        if not isinstance(constant, int) or not isinstance(size, int):
            return True, True
        low = high = constant
        for loop, coefficient in bound.coordinate.loops.items():
            reach = self._reach(tile, loop, pixel, tap)
            if reach is None or not isinstance(coefficient, int):
                return True, True
            ends = (coefficient * reach[0], coefficient * reach[1])
            low, high = low + min(ends), high + max(ends)
        return low < 0, high >= size

    def _reach(self, tile: Tile, loop: int, pixel: int, tap: int) -> tuple[int, int] | None:
        problem = self.problem
        if problem.pixel is not None and loop == problem.pixel.inner:
            return None if tile.spread is None else (tile.spread[0] + pixel, tile.spread[1] + pixel)
        if problem.across is not None and loop == problem.across.inner:
            return tap, tap
        extent = problem.extents[loop]
        return (0, extent - 1) if isinstance(extent, int) else None

    # filter --------------------------------------------------------------------------------------------------------------------------

    def _filter_stride(self, axis: Axis) -> Operand:
        if self.plan.packed is not None:
            return self.plan.packed.strides.get(axis.inner, 0)
        filter_ = self.problem.filter
        return self.frame.operand(filter_.access.stride(axis.inner)) if filter_ is not None and filter_.access is not None else 0

    def _filter_base(self, tile: Tile) -> Operand:
        kernel, plan, filter_ = self.kernel, self.plan, self.problem.filter
        if filter_ is None:
            return 0
        if plan.packed is not None:
            before = tile.image.start
            assert isinstance(before, int)
            total: Operand = kernel.mul(kernel.add(tile.panel, before // plan.width), plan.packed.panel_stride)
        else:
            assert filter_.access is not None
            total = kernel.add(self.frame.operand(filter_.access.flat.constant), self._channel(tile, 0))
        for axis, value in tile.outer.items():
            total = kernel.add(total, kernel.mul(value, self._filter_stride(axis)))
        return total

    def _filter(self, tile: Tile, window: Window, tap: int, v: int, active: Operand | None) -> Value | None:
        if self.filter_memory is None:
            return None
        across = self.problem.across
        step = self.kernel.mul(self._filter_stride(across), tap) if across is not None else 0
        index = self.kernel.add(self.kernel.add(window.filter, step), v * self.plan.lanes)
        return self.kernel.load(self.filter_memory, index, self.plan.lanes, active=None if self.plan.packed is not None else active)


def _int_stride(access: LinearAccess, axis: Axis | None) -> int:
    stride = access.stride(axis.inner) if axis is not None else 0
    assert isinstance(stride, int)
    return stride
