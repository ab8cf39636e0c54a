"""The kernel of a window over a copy of its image: bunch by bunch of panels, strip by strip of lines, then tiles as
over the image itself."""

from __future__ import annotations

from functools import partial
from typing import Any

from fuseline.analysis.linear_forms import Linear
from fuseline.analysis.operand_access import LinearAccess
from fuseline.targets.cpu.combinators.split import Range, block_of, split_tiles
from fuseline.targets.cpu.combinators.tail import live_lanes, over_panels
from fuseline.targets.cpu.families.contraction.axes import Axis
from fuseline.targets.cpu.families.contraction.runtime_pixels import RuntimePixels
from fuseline.targets.cpu.families.window.copied_rows import EvaluatedRoles, EvaluatedRows, StoredRows, moves_of
from fuseline.targets.cpu.families.window.copies import CopiedWindowPlan, known
from fuseline.targets.cpu.families.window.group_columns import GroupColumns
from fuseline.targets.cpu.families.window.image_copy import ImageCopy, TurnedCopy
from fuseline.targets.cpu.families.window.image_reader import int_stride
from fuseline.targets.cpu.families.window.kernel import Columns, WindowKernel
from fuseline.targets.cpu.families.window.loops import Image
from fuseline.targets.cpu.families.window.tile import Tile, Window
from fuseline.targets.cpu.kernel_ir.builder import KernelBuilder
from fuseline.targets.cpu.kernel_ir.types import MemRef, Operand, Value


class CopiedWindowKernel(WindowKernel):
    """Builds the kernel of a plan with a copy."""

    def __init__(self, plan: CopiedWindowPlan, kernel: KernelBuilder) -> None:
        super().__init__(plan, kernel)
        self.copied_plan, groups = plan, plan.loops.groups
        self.original = self.loops.images[0]
        self.image = Image(self._access(), self.original.start, self.original.channels)
        self.copy = self._copy()
        self.groups = GroupColumns(kernel, groups, plan.lanes) if groups is not None else None
        self.first_line: Operand = 0
        self.first_pixel: Operand = 0
        self.first_panel: Operand = 0

    def _copy(self) -> ImageCopy[Any]:
        """Of the image as it lies, or of what is evaluated for it."""
        plan, image, sliding = self.copied_plan, self.loops.computed, self.loops.sliding
        if image is None:
            ways = plan.rows, plan.columns
            return ImageCopy(plan, self.buffers, StoredRows(self.buffers, self.original.access, ways))
        down = sliding.down[0] if sliding.down else None
        rows, columns = (
            moves_of(plan.rows, sliding.line, down),
            moves_of(plan.columns, sliding.pixel, sliding.across),
        )
        source = EvaluatedRows(self.emitter, image, EvaluatedRoles(rows, columns, self.loops.channel.inner))
        return (TurnedCopy if plan.turned else ImageCopy)(plan, self.buffers, source)

    def _access(self) -> LinearAccess:
        """Where elements lie in the copy: as in an image with no other padding than rows that are left out."""
        plan, sliding = self.copied_plan, self.loops.sliding
        row = plan.row_columns * plan.pitch
        steps = [(self.loops.channel, 1), (sliding.line, plan.rows.along * row)]
        steps += [(sliding.pixel, plan.columns.along * plan.pitch)]
        steps += [(axis, plan.rows.window * row) for axis in sliding.down] + [
            (sliding.across, plan.columns.window * plan.pitch)
        ]
        return LinearAccess(
            self.original.access.source,
            Linear({axis.inner: step for axis, step in steps if axis is not None}),
            plan.skipped_rows,
        )

    def prepare(self) -> None:
        """Nothing: the copy holds the padding that is read."""

    def image_memory(self, image: Image) -> MemRef:
        """The copy."""
        return self.copy.memory

    def image_base(self, tile: Tile) -> Operand:
        """From the first line and pixel of the strip and the first panel of the bunch."""
        kernel, line, access = self.kernel, self.loops.line, self.image.access
        panel = self.copied_plan.image_channels(self.plan.width)
        total = kernel.mul(kernel.sub(tile.panel, self.first_panel), panel)
        if line is not None:
            total = kernel.add(
                total, kernel.mul(kernel.sub(tile.outer[line], self.first_line), int_stride(access, line))
            )
        pixel = kernel.sub(tile.start, self.first_pixel)
        return kernel.add(total, kernel.mul(pixel, int_stride(access, self.loops.pixel)))

    # workgroups -------------------------------------------------------------------------------------------------------

    def workgroup(self, number: Operand) -> tuple[Operand, ...]:
        """Bunches of panels outside, strips inside."""
        plan, kernel = self.copied_plan, self.kernel
        at = self.buffers.coordinates(number, plan.grid)
        outer = dict(zip(self.loops.outer, at, strict=False))
        strips = block_of(kernel, at[-2], plan.blocks.lines, self.buffers.operand(plan.strips))
        bunches = block_of(kernel, at[-1], plan.blocks.panels, plan.bunches)
        width = plan.bunch * plan.width
        over_panels(
            kernel,
            divmod(known(self.loops.channel.extent), width),
            width,
            bunches,
            partial(self._bunch, outer, strips),
        )
        return ()

    def _bunch(self, outer: dict[Axis, Operand], strips: Range, bunch: Operand, channels: int) -> None:
        plan, kernel = self.copied_plan, self.kernel
        panel = kernel.mul(bunch, plan.bunch)
        self.filters.enter(outer, (panel, kernel.add(panel, -(-channels // plan.width))))

        def strip(number: Operand) -> tuple[()]:
            across = self.buffers.operand(plan.in_pixels.count)
            lines = plan.in_lines.part(self.buffers, kernel.div(number, across))
            pixels = plan.in_pixels.part(self.buffers, kernel.rem(number, across))
            self.copy.fill(outer, lines, pixels, bunch, plan.image_channels(channels))
            self.first_line, self.first_pixel, self.first_panel = lines[0], pixels[0], panel
            cut = RuntimePixels(kernel, pixels[1], plan.pixels) if plan.split is None else None
            kernel.loop(lines[0], kernel.add(*lines), 1, lambda line: self._copied_line(outer, line, cut, channels))
            return ()

        kernel.loop(*strips, 1, strip)

    def _copied_line(
        self, outer: dict[Axis, Operand], line: Operand, cut: RuntimePixels | None, channels: int
    ) -> tuple[()]:
        """`cut`: the tiles of its pixels in this strip; None: they are known."""
        kernel, split = self.kernel, self.plan.split
        here = {**outer, self.loops.line: line} if self.loops.line is not None else outer
        one = Tile(here, 0, 1, None, self.image, self.first_panel, ())
        if cut is not None:
            first = self.first_pixel
            cut.each(
                lambda width, start, stored: self._vectors(
                    one.of(pixels=width, start=kernel.add(first, start), stored=stored), channels
                )
            )
            return ()
        assert split is not None
        for tiles in split_tiles(split):
            whole = one.of(pixels=tiles.height)
            tiles.each(kernel, lambda t, start, whole=whole: self._vectors(whole.of(start=start), channels))
        return ()

    def _vectors(self, tile: Tile, channels: int) -> None:
        """A tile for each vector of the panels from the tile's on: whole panels in a loop, then the narrower one."""
        kernel, plan, (whole, rest) = self.kernel, self.plan, divmod(channels, self.plan.width)
        last = kernel.add(tile.panel, whole)

        def panel(number: Operand, elements: int) -> tuple[()]:
            for v, active in enumerate(live_lanes(kernel, elements, plan.lanes, plan.width)):
                self.emit_tile(tile.of(panel=number, actives=[active], first=v))
            return ()

        kernel.loop(tile.panel, last, 1, lambda number: panel(number, plan.width))
        panel(last, rest)

    # channels that mix ------------------------------------------------------------------------------------------------

    def row(self, tile: Tile, window: Window, columns: Columns, totals: list[Value]) -> list[Value]:
        """One window row: for each channel of a group where the channels mix."""
        if self.groups is None:
            return super().row(tile, window, columns, totals)
        return self.groups.each_step(tile.first, tile.actives[0], partial(self.step, tile, window, columns, 0), totals)

    def column(self, tile: Tile, window: Window, offset: int, user: tuple[int, int], v: int, step: Operand) -> Value:
        """A vector of an image column."""
        if self.groups is None:
            return super().column(tile, window, offset, user, v, step)
        address = self.kernel.address(self.copy.memory, self.kernel.add(window.image, offset))
        return self.groups.spread(address, tile.first, tile.actives[v], step)
