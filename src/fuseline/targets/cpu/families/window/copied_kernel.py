"""The kernel of a window over a copy of its image: bunch by bunch of panels, part by part of the lines, then tiles as
over the image itself."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from fuseline.analysis.linear_forms import Linear
from fuseline.analysis.operand_access import LinearAccess
from fuseline.targets.cpu.families.contraction.problem import Axis
from fuseline.targets.cpu.families.window.copies import CopiedWindowPlan
from fuseline.targets.cpu.families.window.kernel import WindowKernel
from fuseline.targets.cpu.families.window.plan import Image
from fuseline.targets.cpu.families.window.tile import Tile
from fuseline.targets.cpu.kernel_ir.builder import KernelBuilder
from fuseline.targets.cpu.kernel_ir.types import MemRef, Operand

COPIED_PIXELS = 4
"""Pixels copied per iteration."""

Actives = Sequence[Operand | None]


class CopiedWindowKernel(WindowKernel):
    """Builds the kernel of a plan with a copy."""

    def __init__(self, plan: CopiedWindowPlan, kernel: KernelBuilder) -> None:
        super().__init__(plan, kernel)
        self.copied_plan = plan
        self.copy = kernel.scratch(self.problem.dtype, plan.copied)
        self.original = self.problem.images[0]
        self.image = Image(self._access(), self.original.start, self.original.channels)
        self.first_line: Operand = 0
        self.first_panel: Operand = 0

    def _access(self) -> LinearAccess:
        """Where elements lie in the copy: as in an image without padding."""
        plan, walk = self.copied_plan, self.problem.walk
        row = plan.row_columns * plan.pitch
        steps = [(walk.line, plan.rows.along * row), (walk.pixel, plan.columns.along * plan.pitch)]
        steps += [(axis, plan.rows.window * row) for axis in walk.down] + [
            (walk.across, plan.columns.window * plan.pitch)
        ]
        return LinearAccess(
            self.original.access.source, Linear({axis.inner: step for axis, step in steps if axis is not None})
        )

    def image_memory(self, image: Image) -> MemRef:
        """The copy."""
        return self.copy

    def image_base(self, tile: Tile) -> Operand:
        """From the first line of the part and the first panel of the bunch."""
        kernel, plan, line = self.kernel, self.copied_plan, self.problem.line
        total = kernel.mul(kernel.sub(tile.panel, self.first_panel), plan.width)
        if line is not None:
            total = kernel.add(
                total,
                kernel.mul(kernel.sub(tile.outer[line], self.first_line), int(self.image.access.stride(line.inner))),
            )  # pyright: ignore[reportArgumentType]
        assert self.problem.pixel is not None
        return kernel.add(total, kernel.mul(tile.start, int(self.image.access.stride(self.problem.pixel.inner))))  # pyright: ignore[reportArgumentType]

    # workgroups -------------------------------------------------------------------------------------------------------

    def _workgroup(self, number: Operand) -> tuple[Operand, ...]:
        plan, kernel = self.copied_plan, self.kernel
        at = self.frame.coordinates(number, plan.grid)
        outer = dict(zip(self.problem.outer, at, strict=False))
        parts = self._range(at[-2], plan.blocks.lines, plan.parts)
        first, last = self._range(at[-1], plan.blocks.panels, plan.bunches)
        channels = int(self.original.channels)  # pyright: ignore[reportArgumentType]
        whole, rest = divmod(channels, plan.pitch)
        kernel.loop(first, kernel.min(last, whole), 1, lambda bunch: self._bunch(outer, parts, bunch, plan.pitch))
        if rest:
            kernel.when(kernel.compare("gt", last, whole), lambda: self._bunch(outer, parts, whole, rest))
        return ()

    def _bunch(
        self, outer: dict[Axis, Operand], parts: tuple[Operand, Operand], bunch: Operand, channels: int
    ) -> tuple[Operand, ...]:
        plan, kernel = self.copied_plan, self.kernel
        panel = kernel.mul(bunch, plan.bunch)

        def part(number: Operand) -> tuple[Operand, ...]:
            first = kernel.mul(number, plan.part)
            lines = kernel.min(plan.part, kernel.sub(plan.lines, first)) if plan.parts > 1 else plan.part
            self._copy(outer, (first, lines), panel, channels)
            kernel.loop(
                first,
                kernel.add(first, lines),
                1,
                lambda line: self._copied_line(outer, (first, line), panel, channels),
            )
            return ()

        kernel.loop(*parts, 1, part)
        return ()

    def _copied_line(
        self, outer: dict[Axis, Operand], lines: tuple[Operand, Operand], panel: Operand, channels: int
    ) -> tuple[Operand, ...]:
        """Tall tiles and short ones of one line, whole panels of the bunch and then the narrower one."""
        kernel, split = self.kernel, self.plan.split
        assert split is not None
        self.first_line, line = lines
        self.first_panel = panel
        here = {**outer, self.problem.line: line} if self.problem.line is not None else outer
        h, tall, count = split.height, split.tall, split.count
        kernel.loop(0, tall, 1, self._tiles(here, h, lambda t: kernel.mul(t, h), panel, channels))
        kernel.loop(
            tall, count, 1, self._tiles(here, h - 1, lambda t: kernel.add(kernel.mul(t, h - 1), tall), panel, channels)
        )
        return ()

    def _tiles(
        self,
        outer: dict[Axis, Operand],
        pixels: int,
        start: Callable[[Operand], Operand],
        panel: Operand,
        channels: int,
    ) -> Callable[[Operand], tuple[Operand, ...]]:
        kernel, (whole, rest) = self.kernel, divmod(channels, self.plan.width)

        def at(number: Operand, t: Operand, actives: Actives) -> tuple[Operand, ...]:
            self._tile(Tile(outer, start(t), pixels, None, self.image, number, actives))
            return ()

        def body(t: Operand) -> tuple[Operand, ...]:
            kernel.loop(panel, kernel.add(panel, whole), 1, lambda number: at(number, t, [None] * self.plan.vectors))
            if rest:
                at(kernel.add(panel, whole), t, [rest])
            return ()

        return body

    # the copy of the image --------------------------------------------------------------------------------------------

    def _copy(self, outer: dict[Axis, Operand], lines: tuple[Operand, Operand], panel: Operand, channels: int) -> None:
        """The image under some lines, row by row; outside of it the pad value."""
        kernel, plan, rows = self.kernel, self.copied_plan, self.copied_plan.rows
        first = kernel.mul(lines[0], rows.along)
        begin, end = plan.columns.inside(plan.row_columns)

        def row(r: Operand) -> tuple[Operand, ...]:
            to = kernel.mul(r, plan.row_columns * plan.pitch)
            step = kernel.add(first, r)
            source = self._source(outer, step, panel)

            def inside() -> tuple[()]:
                self._fill(to, 0, begin)
                self._copy_row(source, to, (begin, end), channels)
                self._fill(to, end, plan.row_columns)
                return ()

            def outside() -> tuple[()]:
                self._fill(to, 0, plan.row_columns)
                return ()

            if rows.size is None:
                return inside()
            coordinate = kernel.add(kernel.mul(step, rows.scale), rows.first)
            kernel.when(kernel.compare("ult", coordinate, rows.size), inside, outside)
            return ()

        count = kernel.add(kernel.mul(lines[1], rows.along), rows.steps(0))
        kernel.loop(0, count, 1, row)

    def _source(self, outer: dict[Axis, Operand], row: Operand, panel: Operand) -> Operand:
        """Where the channels of a bunch begin in a row of the image."""
        kernel, access = self.kernel, self.original.access
        total = kernel.add(self.frame.operand(access.flat.constant), kernel.mul(panel, self.plan.width))
        for axis, value in outer.items():
            total = kernel.add(total, kernel.mul(value, self.frame.operand(access.stride(axis.inner))))
        return kernel.add(total, kernel.mul(row, self.copied_plan.rows.stride))

    def _copy_row(self, source: Operand, to: Operand, columns: tuple[int, int], channels: int) -> None:
        kernel, plan, (begin, end) = self.kernel, self.copied_plan, columns

        def pixels(count: int) -> Callable[[Operand], tuple[()]]:
            def body(c: Operand) -> tuple[()]:
                for i in (kernel.add(c, n) for n in range(count)):
                    place = kernel.add(source, kernel.mul(i, plan.columns.stride))
                    self._copy_pixel(place, kernel.add(to, kernel.mul(i, plan.pitch)), channels)
                return ()

            return body

        whole = begin + (end - begin) // COPIED_PIXELS * COPIED_PIXELS
        kernel.loop(begin, whole, COPIED_PIXELS, pixels(COPIED_PIXELS))
        kernel.loop(whole, end, 1, pixels(1))

    def _copy_pixel(self, source: Operand, to: Operand, channels: int) -> None:
        kernel, memory, lanes = self.kernel, self.frame.argument(self.original.access.source), self.plan.lanes
        for c in range(0, channels, lanes):
            active = None if c + lanes <= channels else channels - c
            kernel.store(self.copy, kernel.add(to, c), kernel.load(memory, kernel.add(source, c), lanes, active=active))

    def _fill(self, row: Operand, begin: int, end: int) -> None:
        """Columns `begin` to `end` of a row."""
        kernel, lanes, pitch = self.kernel, self.plan.lanes, self.copied_plan.pitch
        value = kernel.const(self.reader.pad, self.problem.dtype, lanes)

        def body(i: Operand) -> tuple[()]:
            kernel.store(self.copy, kernel.add(row, i), value)
            return ()

        kernel.loop(begin * pitch, end * pitch, lanes, body)
