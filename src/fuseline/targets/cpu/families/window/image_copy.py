"""The image under some lines of a window, copied to scratch with the padding around it, or with the border that repeats
it.

image rows     a b c d        copy, one pixel of padding      . a b c d .
               e f g h                                        . e f g h .
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Generic

from fuseline.analysis.operand_access import LinearAccess
from fuseline.targets.cpu.combinators.split import Range
from fuseline.targets.cpu.combinators.tail import over_panels
from fuseline.targets.cpu.combinators.unroll import unroll
from fuseline.targets.cpu.emit.dispatch_buffers import DispatchBuffers
from fuseline.targets.cpu.families.contraction.turned_box import TurnedRuns
from fuseline.targets.cpu.families.directions import Direction
from fuseline.targets.cpu.families.window.copied_rows import CopiedRows, EvaluatedPlace, EvaluatedRows, Outer, Place
from fuseline.targets.cpu.families.window.copies import CopiedWindowPlan
from fuseline.targets.cpu.kernel_ir.types import MemRef, Operand, Value

COPIED_PIXELS = 4
"""Pixels copied per iteration."""


class RowsCopy(Generic[Place]):
    """Rows of `pitch` elements in `memory`, taken from `source`; those outside of the image are the pad value, rows of
    it, or not written where `pads_rows` does not hold. Vectors may be written too far: into the next row, which is
    written later, or the slack behind the last one."""

    def __init__(
        self,
        buffers: DispatchBuffers,
        source: CopiedRows[Place],
        image: LinearAccess,
        ways: tuple[Direction, Direction],
        memory: MemRef,
        shape: tuple[int, int],
        *,
        pads_rows: bool = True,
    ) -> None:
        self.buffers, self.kernel, self.source, self.image, self.memory = buffers, buffers.kernel, source, image, memory
        (self.rows, self.columns), (self.pitch, self.lanes), self.pads_rows = ways, shape, pads_rows

    def fill_rows(
        self, outer: Outer, lines: tuple[Operand, Operand], offset: Operand, copy: Callable[[Place, Operand], None]
    ) -> None:
        """The rows under `lines` (the first, and how many): `copy(from, to)` for those that are some of the image, of
        which `from` is element `offset`."""
        kernel, rows = self.kernel, self.rows
        first = kernel.mul(lines[0], rows.along)

        def row(r: Operand) -> tuple[()]:
            to = kernel.mul(r, self.pitch)
            step = kernel.add(first, r)
            source = self.source.row(outer, step, offset)

            def inside() -> tuple[()]:
                copy(source, to)
                return ()

            def outside() -> tuple[()]:
                self.pad(to, 0, self.pitch)
                return ()

            if rows.size is None or rows.border is not None:
                return inside()
            origin, size = (self.buffers.operand(one) for one in (rows.first, rows.size))
            coordinate = kernel.add(kernel.mul(step, rows.scale), origin)
            kernel.when(kernel.compare("ult", coordinate, size), inside, outside if self.pads_rows else None)
            return ()

        kernel.loop(0, kernel.add(kernel.mul(lines[1], rows.along), rows.steps(0)), 1, row)

    def columns_under(self, pixels: Range) -> tuple[Operand, Operand, Range]:
        """The steps under `pixels` of the result (the first, and how many): the first one, how many, and the range of
        those that lies in the image."""
        first, count = self.kernel.mul(pixels[0], self.columns.along), pixels[1]
        steps = self.kernel.add(self.kernel.mul(count, self.columns.along), self.columns.steps(0))
        return first, steps, self.columns.inside(self.buffers, first, steps)

    def pad(self, row: Operand, begin: Operand, end: Operand) -> None:
        """Elements `begin` to `end` of a row."""
        kernel = self.kernel
        value = kernel.const(float(self.image.pad) if self.image.padding else 0.0, self.memory.dtype, self.lanes)

        def vector(i: Operand) -> tuple[()]:
            kernel.store(self.memory, kernel.add(row, i), value)
            return ()

        kernel.loop(begin, end, self.lanes, vector)

    def move(self, source: Place, to: Operand, active: Operand | None, lanes: int | None = None) -> None:
        """A vector of the image into the copy; `lanes`: of fewer elements."""
        found = self.source.vector(source, lanes or self.lanes, active)
        self.kernel.store(self.memory, to, self.kernel.cast(found, self.memory.dtype))


class ImageCopy(RowsCopy[Place]):
    """`memory[row][column][channel]`: some channels of every pixel."""

    def __init__(self, plan: CopiedWindowPlan, buffers: DispatchBuffers, source: CopiedRows[Place]) -> None:
        self.plan = plan
        memory = buffers.kernel.scratch(plan.loops.dtype, plan.copied)
        shape = (plan.row_columns * plan.pitch, plan.lanes)
        image, pads_rows = plan.loops.images[0].access, not plan.skipped_rows
        super().__init__(buffers, source, image, (plan.rows, plan.columns), memory, shape, pads_rows=pads_rows)

    def fill(self, outer: Outer, lines: Range, pixels: Range, bunch: Operand, channels: int) -> None:
        """The image under `lines` and `pixels` (the first, and how many), `channels` of it from those of panel bunch
        `bunch` on."""
        first, steps, (begin, end) = self.columns_under(pixels)
        kernel, pitch, border = self.kernel, self.plan.pitch, self.plan.columns.border

        def copy(source: Place, to: Operand) -> None:
            pixel = partial(self._pixel, source, (to, first), channels)
            if border is None:
                self.pad(to, 0, kernel.mul(begin, pitch))
            else:
                kernel.loop(0, begin, 1, pixel)
            self.pixels(source, (to, first), channels, (begin, end))
            if border is None:
                self.pad(to, kernel.mul(end, pitch), kernel.mul(steps, pitch))
            else:
                kernel.loop(end, steps, 1, pixel)

        self.fill_rows(outer, lines, kernel.mul(bunch, pitch), copy)

    def pixels(self, source: Place, to: tuple[Operand, Operand], channels: int, columns: Range) -> None:
        """The pixels of a row that lie in the image; `to`: where the row lies, and which column is its first."""
        unroll(self.kernel, *columns, COPIED_PIXELS, partial(self._pixel, source, to, channels, inside=True))

    def _pixel(
        self, source: Place, to: tuple[Operand, Operand], channels: int, i: Operand, *, inside: bool = False
    ) -> None:
        kernel, (row, first) = self.kernel, to
        place = self.source.column(source, kernel.add(first, i), inside=inside)
        target = kernel.add(row, kernel.mul(i, self.plan.pitch))
        for c in range(0, channels, self.lanes):
            active = None if c + self.lanes <= channels else channels - c
            self.move(self.source.along(place, c), kernel.add(target, c), active)


class TurnedCopy(ImageCopy[EvaluatedPlace]):
    """The same of an image that is made of what lies along the pixels: evaluated along those, and turned."""

    def __init__(self, plan: CopiedWindowPlan, buffers: DispatchBuffers, source: EvaluatedRows) -> None:
        super().__init__(plan, buffers, source)
        self.evaluated = source

    def pixels(self, source: EvaluatedPlace, to: tuple[Operand, Operand], channels: int, columns: Range) -> None:
        """Squares of pixels and channels."""
        kernel, (row, first) = self.kernel, to

        def evaluate(start: Operand, channel: Operand, lanes: int, active: Operand | None) -> Value:
            place = self.source.column(source, kernel.add(first, start), inside=True)
            found = self.evaluated.across(self.source.along(place, channel), lanes, active)
            return kernel.cast(found, self.memory.dtype)

        TurnedRuns(kernel, self.memory, self.lanes, self.plan.pitch).fill(row, columns, channels, evaluate)


class PlaneCopy(RowsCopy[Place]):
    """`memory[row][column]` of an image whose columns are neighbours in memory."""

    def fill(self, outer: Outer, lines: Range, pixels: Range) -> None:
        """The image under `lines` and `pixels` (the first, and how many)."""
        kernel, (first, steps, (begin, end)) = self.kernel, self.columns_under(pixels)

        def copy(source: Place, to: Operand) -> None:
            def vector(number: Operand, elements: Operand) -> None:
                i = kernel.add(begin, kernel.mul(number, self.lanes))
                place = self.source.column(source, kernel.add(first, i), inside=True)
                self.move(place, kernel.add(to, i), elements if elements != self.lanes else None)

            def element(i: Operand) -> tuple[()]:
                self.move(self.source.column(source, kernel.add(first, i), inside=False), kernel.add(to, i), None, 1)
                return ()

            def beside(lo: Operand, hi: Operand) -> None:
                if self.columns.border is None:
                    self.pad(to, lo, hi)
                else:
                    kernel.loop(lo, hi, 1, element)

            beside(0, begin)
            count = kernel.sub(end, begin)
            cut = kernel.div(count, self.lanes), kernel.rem(count, self.lanes)
            over_panels(kernel, cut, self.lanes, (0, kernel.add(cut[0], 1)), vector)
            beside(end, steps)

        self.fill_rows(outer, lines, 0, copy)
