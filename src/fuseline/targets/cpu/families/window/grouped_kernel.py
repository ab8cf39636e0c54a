"""The kernel of a convolution in narrow groups: panel by panel, the image under some lines copied, then tiles of
pixels, a vector at a time."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from fuseline.targets.cpu.emit.body_emitter import BodyEmitter
from fuseline.targets.cpu.emit.coordinates import AnyIndex, Index
from fuseline.targets.cpu.families.contraction.problem import Axis
from fuseline.targets.cpu.families.contraction.staged_results import in_turn, put_aside
from fuseline.targets.cpu.families.contraction.tile import place
from fuseline.targets.cpu.families.window.grouped_plan import GroupedPlan
from fuseline.targets.cpu.kernel_ir.builder import KernelBuilder
from fuseline.targets.cpu.kernel_ir.types import Address, Operand, Value

STEPS_PER_ITERATION = 4
"""Steps written out per iteration where one channel is broadcast."""


COPIED_PIXELS = 4
"""Pixels copied per iteration."""


@dataclass(frozen=True, slots=True)
class Part:
    """Some lines of a bunch of panels: outer axes, first line, number of lines, the bunch, image channels of it that
    exist."""

    outer: dict[Axis, Operand]
    line: Operand
    lines: Operand
    bunch: Operand
    channels: int


@dataclass(frozen=True, slots=True)
class Tile:
    """Pixels `start` to `start + pixels` of line `line` of a part, vector `vector` of panel `panel` of its bunch, of
    which `active` lanes count."""

    part: Part
    line: Operand
    start: Operand
    pixels: int
    panel: Operand
    vector: int
    active: int


class GroupedKernel:
    """Builds the kernel of a plan."""

    def __init__(self, plan: GroupedPlan, kernel: KernelBuilder) -> None:
        self.plan, self.problem, self.kernel = plan, plan.problem, kernel
        self.emitter = BodyEmitter(kernel, plan.view, {self.problem.root.op.results[0]: self._held})
        self.frame = self.emitter.frame
        self.image = kernel.scratch(self.problem.dtype, plan.copied)
        self.filters = kernel.binding(
            plan.view.tensors.index(self.problem.filter.value), self.problem.dtype, plan.packed.elements
        )  # pyright: ignore[reportArgumentType]
        self.accumulator: Value | None = None
        self.stage = kernel.scratch(self.problem.dtype, plan.pixels * plan.lanes) if kernel.compact else None

    def _held(self, index: Sequence[AnyIndex], lanes: int, active: Operand | None) -> Value:
        del index, lanes, active
        assert self.accumulator is not None
        return self.accumulator

    def emit(self) -> None:
        """Run the workgroups."""
        self.kernel.loop(self.kernel.begin, self.kernel.end, 1, self._workgroup)

    # workgroups -------------------------------------------------------------------------------------------------------

    def _workgroup(self, number: Operand) -> tuple[Operand, ...]:
        plan, kernel = self.plan, self.kernel
        at = self.frame.coordinates(number, plan.grid)
        outer = dict(zip(self.problem.walk.outer, at, strict=False))
        blocks = self._range(at[-2], plan.blocks.lines, plan.line_blocks)
        first, last = self._range(at[-1], plan.blocks.panels, plan.bunches)
        whole, rest = divmod(self.problem.outputs, plan.bunch * plan.width)
        kernel.loop(
            first, kernel.min(last, whole), 1, lambda bunch: self._bunch(outer, blocks, bunch, plan.bunch * plan.width)
        )
        if rest:
            kernel.when(kernel.compare("gt", last, whole), lambda: self._bunch(outer, blocks, whole, rest))
        return ()

    def _range(self, index: Operand, size: int, count: int) -> tuple[Operand, Operand]:
        if size >= count:
            return 0, count
        start = self.kernel.mul(index, size)
        return start, self.kernel.min(self.kernel.add(start, size), count)

    def _bunch(
        self, outer: dict[Axis, Operand], blocks: tuple[Operand, Operand], bunch: Operand, outputs: int
    ) -> tuple[Operand, ...]:
        plan, kernel = self.plan, self.kernel
        channels = outputs // self.problem.per_group * self.problem.steps

        def block(number: Operand) -> tuple[Operand, ...]:
            line = kernel.mul(number, plan.lines)
            lines = kernel.min(plan.lines, kernel.sub(self.problem.lines, line)) if plan.line_blocks > 1 else plan.lines
            part = Part(outer, line, lines, bunch, channels)
            self._copy(part)
            kernel.loop(0, lines, 1, lambda i: self._line(part, i, outputs))
            return ()

        kernel.loop(*blocks, 1, block)
        return ()

    # the copy of the image --------------------------------------------------------------------------------------------

    def _copy(self, part: Part) -> None:
        """The image under a part, row by row: outside the image zeros. A row may begin with what the last vector before
        it wrote too far."""
        kernel, rows, columns = self.kernel, self.problem.rows, self.problem.columns
        width = columns.steps(self.problem.pixels)
        begin, end = columns.inside(width)
        first = kernel.mul(part.line, rows.along)

        def row(r: Operand) -> tuple[Operand, ...]:
            at = kernel.mul(r, width * self.plan.pitch)
            step = kernel.add(first, r)
            source = self._source(part, step)

            def inside() -> tuple[()]:
                self._zeros(at, 0, begin)
                self._copy_row(part, source, at, (begin, end))
                self._zeros(at, end, width)
                return ()

            def outside() -> tuple[()]:
                self._zeros(at, 0, width)
                return ()

            if rows.size is None:
                inside()
                return ()
            coordinate = kernel.add(kernel.mul(step, rows.scale), rows.first)
            kernel.when(kernel.compare("ult", coordinate, rows.size), inside, outside)
            return ()

        kernel.loop(0, self._rows(part), 1, row)

    def _rows(self, part: Part) -> Operand:
        rows = self.problem.rows
        return self.kernel.add(self.kernel.mul(part.lines, rows.along), rows.steps(0))

    def _source(self, part: Part, row: Operand) -> Operand:
        """Where a row of a panel's channels begins in the image."""
        kernel, access = self.kernel, self.problem.image
        total = kernel.add(self.frame.operand(access.flat.constant), kernel.mul(part.bunch, self.plan.pitch))
        for axis, value in part.outer.items():
            total = kernel.add(total, kernel.mul(value, self.frame.operand(access.stride(axis.inner))))
        return kernel.add(total, kernel.mul(row, self.problem.rows.stride))

    def _copy_row(self, part: Part, source: Operand, to: Operand, columns: tuple[int, int]) -> None:
        kernel, (begin, end) = self.kernel, columns

        def pixels(count: int) -> Callable[[Operand], tuple[()]]:
            def body(c: Operand) -> tuple[()]:
                for i in (kernel.add(c, n) for n in range(count)):
                    place = kernel.add(source, kernel.mul(i, self.problem.columns.stride))
                    self._copy_pixel(part, place, kernel.add(to, kernel.mul(i, self.plan.pitch)))
                return ()

            return body

        whole = begin + (end - begin) // COPIED_PIXELS * COPIED_PIXELS
        kernel.loop(begin, whole, COPIED_PIXELS, pixels(COPIED_PIXELS))
        kernel.loop(whole, end, 1, pixels(1))

    def _copy_pixel(self, part: Part, source: Operand, to: Operand) -> None:
        kernel, memory, lanes = self.kernel, self.frame.argument(self.problem.image.source), self.plan.lanes
        for c in range(0, part.channels, lanes):
            active = None if c + lanes <= part.channels else part.channels - c
            kernel.store(
                self.image, kernel.add(to, c), kernel.load(memory, kernel.add(source, c), lanes, active=active)
            )

    def _zeros(self, row: Operand, begin: int, end: int) -> None:
        """Columns `begin` to `end` of a row."""
        kernel, lanes, channels = self.kernel, self.plan.lanes, self.plan.pitch
        zero = kernel.const(0.0, self.problem.dtype, lanes)

        def body(i: Operand) -> tuple[()]:
            kernel.store(self.image, kernel.add(row, i), zero)
            return ()

        kernel.loop(begin * channels, end * channels, lanes, body)

    # tiles ------------------------------------------------------------------------------------------------------------

    def _line(self, part: Part, line: Operand, outputs: int) -> tuple[()]:
        """Tall tiles, then short ones."""
        kernel, split = self.kernel, self.plan.split
        h, tall, count = split.height, split.tall, split.count
        kernel.loop(0, tall, 1, lambda t: self._panels(part, (line, kernel.mul(t, h), h), outputs))
        kernel.loop(
            tall, count, 1, lambda t: self._panels(part, (line, kernel.add(kernel.mul(t, h - 1), tall), h - 1), outputs)
        )
        return ()

    def _panels(self, part: Part, pixels: tuple[Operand, Operand, int], outputs: int) -> tuple[()]:
        """The panels of a bunch of so many outputs, vector by vector."""
        whole, rest = divmod(outputs, self.plan.width)
        self.kernel.loop(0, whole, 1, lambda panel: self._vectors(part, pixels, panel, self.plan.width))
        return self._vectors(part, pixels, whole, rest)

    def _vectors(self, part: Part, pixels: tuple[Operand, Operand, int], panel: Operand, outputs: int) -> tuple[()]:
        for vector, at in enumerate(range(0, outputs, self.plan.lanes)):
            self._tile(Tile(part, *pixels, panel, vector, min(self.plan.lanes, outputs - at)))
        return ()

    def _tile(self, tile: Tile) -> None:
        totals = [self._start(tile, pixel) for pixel in range(tile.pixels)]
        base = self._base(tile)
        filters = self._filters(tile)
        walk, rows, width = self.problem.walk, self.problem.rows, self.problem.columns.steps(self.problem.pixels)
        if walk.down:
            stride = self.plan.packed.strides[walk.down[0].inner]

            def body(k: Operand, *carried: Value) -> Sequence[Value]:
                row = self.kernel.mul(k, rows.window * width * self.plan.pitch)
                at = self.kernel.add(filters, self.kernel.mul(k, stride))
                return self._columns(tile, self.kernel.add(base, row), at, carried)

            totals = list(self.kernel.loop(0, rows.positions, 1, body, totals))
        else:
            totals = list(self._columns(tile, base, filters, totals))
        if self.stage is not None:
            put_aside(self.kernel, self.stage, totals)
            in_turn(
                self.kernel,
                self.stage,
                0,
                self.plan.lanes,
                [None] * tile.pixels,
                lambda pixel, _, total: self._store(tile, pixel, total),
            )
            return
        for pixel, total in enumerate(totals):
            self._store(tile, pixel, total)

    def _base(self, tile: Tile) -> Operand:
        """Where the first window element of the tile's first pixel lies in the copy."""
        kernel, rows, columns = self.kernel, self.problem.rows, self.problem.columns
        row = kernel.mul(tile.line, rows.along * columns.steps(self.problem.pixels))
        pixel = kernel.mul(kernel.add(row, kernel.mul(tile.start, columns.along)), self.plan.pitch)
        return kernel.add(pixel, kernel.mul(tile.panel, self.plan.channels))

    def _panel(self, tile: Tile) -> Operand:
        """The number of the tile's panel in the whole result."""
        return self.kernel.add(self.kernel.mul(tile.part.bunch, self.plan.bunch), tile.panel)

    def _filters(self, tile: Tile) -> Operand:
        return self.kernel.add(
            self.kernel.mul(self._panel(tile), self.plan.packed.panel_stride), tile.vector * self.plan.lanes
        )

    def _loops(self, tile: Tile, pixel: Operand) -> list[AnyIndex]:
        """The root's loops at a pixel; reduction loops at 0."""
        kernel, problem, walk = self.kernel, self.problem, self.problem.walk
        loops: list[AnyIndex] = [Index(0)] * problem.root.rank
        for axis, value in tile.part.outer.items():
            loops[axis.inner] = Index(value)
        if walk.line is not None:
            loops[walk.line.inner] = Index(kernel.add(tile.part.line, tile.line))
        if walk.pixel is not None:
            loops[walk.pixel.inner] = Index(kernel.add(tile.start, pixel))
        channel = kernel.add(kernel.mul(self._panel(tile), self.plan.width), tile.vector * self.plan.lanes)
        place(self.frame, loops, problem.channel, Index(channel, 1 if self.plan.lanes > 1 else 0))
        return loops

    def _start(self, tile: Tile, pixel: int) -> Value:
        root, lanes = self.problem.root, self.plan.lanes
        index = self.emitter.through(root.output_maps[0], self._loops(tile, pixel), lanes)
        return self.emitter.value_at(root.outputs[0], index, lanes, self._live(tile))

    def _store(self, tile: Tile, pixel: Operand, value: Value) -> None:
        loops = self._loops(tile, pixel)
        self.accumulator = value
        for path in self.plan.paths:
            index = path.index(self.frame, loops, self.plan.lanes)
            result = self.emitter.value_at(path.value, index, self.plan.lanes, self._live(tile))
            path.store(self.frame, index, result, self._live(tile))

    def _live(self, tile: Tile) -> int | None:
        return tile.active if tile.active < self.plan.lanes else None

    # one window row ---------------------------------------------------------------------------------------------------

    def _columns(self, tile: Tile, image: Operand, filters: Operand, totals: Sequence[Value]) -> Sequence[Value]:
        """For each channel of a group, every image column is spread over the lanes once and given to each pixel that
        sees it."""
        kernel, plan, users = self.kernel, self.plan, self._users(tile)
        across = self.problem.walk.across
        assert across is not None
        by_step, by_tap = (plan.packed.strides[axis.inner] for axis in (self.problem.inner, across))
        sources = self._sources(tile)

        def step(c: Operand, values: Sequence[Value]) -> Sequence[Value]:
            first = kernel.add(filters, kernel.mul(c, by_step))
            taps = [
                kernel.load(self.filters, kernel.add(first, tap * by_tap), plan.lanes)
                for tap in range(self.problem.columns.positions)
            ]
            out = list(values)
            for column, seen in users.items():
                address = kernel.address(self.image, kernel.add(image, column * plan.pitch))
                spread = self._spread(address, sources, c)
                for pixel, tap in seen:
                    out[pixel] = kernel.fma(spread, taps[tap], out[pixel])
            return out

        return self._each_step(step, totals, dealt=len(set(sources)) > 1)

    def _users(self, tile: Tile) -> dict[int, list[tuple[int, int]]]:
        """The image columns under a window row, from the first, each with the pixels and taps that see it."""
        columns, seen = self.problem.columns, dict[int, list[tuple[int, int]]]()
        for pixel in range(tile.pixels):
            for tap in range(columns.positions):
                seen.setdefault(pixel * columns.along + tap * columns.window, []).append((pixel, tap))
        return dict(sorted(seen.items()))

    def _each_step(
        self, step: Callable[[Operand, Sequence[Value]], Sequence[Value]], totals: Sequence[Value], *, dealt: bool
    ) -> Sequence[Value]:
        """The channels of a group one by one: written out where they are dealt out in registers, which takes numbers
        known now."""
        steps = self.problem.steps
        count = steps if dealt else max(n for n in range(1, STEPS_PER_ITERATION + 1) if steps % n == 0)

        def body(c: Operand, *values: Value) -> Sequence[Value]:
            for i in range(count):
                values = tuple(step(self.kernel.add(c, i), values))
            return values

        return body(0, *totals) if count == steps else self.kernel.loop(0, steps, count, body, totals)

    # channels ---------------------------------------------------------------------------------------------------------

    def _sources(self, tile: Tile) -> tuple[int, ...]:
        """The channel behind each lane at step 0; lanes that do not count repeat the last one that does."""
        found = self.plan.sources(tile.vector)
        return tuple(found[min(lane, tile.active - 1)] for lane in range(self.plan.lanes))

    def _spread(self, column: Address, sources: tuple[int, ...], c: Operand) -> Value:
        """Each lane's channel of a column at step `c`."""
        kernel, lanes = self.kernel, self.plan.lanes
        first, last = sources[0], sources[-1]
        if first == last:
            return self._broadcast(column, kernel.add(c, first))
        assert isinstance(c, int)
        reach = last - first + self.problem.steps
        if reach > lanes and len(set(sources)) == 2:
            low, high = (self._broadcast(column, c + source) for source in (first, last))
            return kernel.shuffle(
                low, high, [lane + (lanes if source == last else 0) for lane, source in enumerate(sources)]
            )
        low = kernel.load_at(column, first, lanes)
        high = kernel.load_at(column, first + lanes, lanes) if reach > lanes else None
        return kernel.shuffle(low, high, [source - first + c for source in sources])

    def _broadcast(self, column: Address, channel: Operand) -> Value:
        return self.kernel.splat(self.kernel.load_at(column, channel), self.plan.lanes)
