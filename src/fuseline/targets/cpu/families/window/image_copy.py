"""The image under some lines of a window, copied to scratch with the padding around it.

image rows     a b c d        copy, one pixel of padding      . a b c d .
               e f g h                                        . e f g h .
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import partial

from fuseline.analysis.operand_access import LinearAccess
from fuseline.targets.cpu.combinators.tail import over_panels
from fuseline.targets.cpu.combinators.unroll import unroll
from fuseline.targets.cpu.emit.dispatch_buffers import DispatchBuffers
from fuseline.targets.cpu.families.contraction.loops import Axis
from fuseline.targets.cpu.families.directions import Direction
from fuseline.targets.cpu.families.window.copies import CopiedWindowPlan
from fuseline.targets.cpu.kernel_ir.types import MemRef, Operand

COPIED_PIXELS = 4
"""Pixels copied per iteration."""

Outer = Mapping[Axis, Operand]


class RowsCopy:
    """Rows of `pitch` elements in `memory`; those outside of the image are the pad value. Vectors may be written too
    far: into the next row, which is written later, or the slack behind the last one."""

    def __init__(
        self, buffers: DispatchBuffers, image: LinearAccess, rows: Direction, memory: MemRef, shape: tuple[int, int]
    ) -> None:
        self.buffers, self.kernel, self.image, self.rows, self.memory = buffers, buffers.kernel, image, rows, memory
        self.pitch, self.lanes = shape

    def fill_rows(
        self, outer: Outer, lines: tuple[Operand, Operand], offset: Operand, copy: Callable[[Operand, Operand], None]
    ) -> None:
        """The rows under `lines` (the first, and how many): `copy(from, to)` for those inside of the image, of which
        `from` is element `offset`."""
        kernel, rows = self.kernel, self.rows
        first = kernel.mul(lines[0], rows.along)

        def row(r: Operand) -> tuple[()]:
            to = kernel.mul(r, self.pitch)
            step = kernel.add(first, r)
            source = self._source(outer, step, offset)

            def inside() -> tuple[()]:
                copy(source, to)
                return ()

            def outside() -> tuple[()]:
                self.pad(to, 0, self.pitch)
                return ()

            if rows.size is None:
                return inside()
            coordinate = kernel.add(kernel.mul(step, rows.scale), rows.first)
            kernel.when(kernel.compare("ult", coordinate, rows.size), inside, outside)
            return ()

        kernel.loop(0, kernel.add(kernel.mul(lines[1], rows.along), rows.steps(0)), 1, row)

    def _source(self, outer: Outer, row: Operand, offset: Operand) -> Operand:
        kernel = self.kernel
        total = kernel.add(self.buffers.operand(self.image.flat.constant), offset)
        for axis, value in outer.items():
            total = kernel.add(total, kernel.mul(value, self.buffers.operand(self.image.stride(axis.inner))))
        return kernel.add(total, kernel.mul(row, self.rows.stride))

    def pad(self, row: Operand, begin: int, end: int) -> None:
        """Elements `begin` to `end` of a row."""
        kernel = self.kernel
        value = kernel.const(float(self.image.pad) if self.image.bounds else 0.0, self.memory.dtype, self.lanes)

        def vector(i: Operand) -> tuple[()]:
            kernel.store(self.memory, kernel.add(row, i), value)
            return ()

        kernel.loop(begin, end, self.lanes, vector)

    def move(self, source: Operand, to: Operand, active: Operand | None) -> None:
        """A vector of the image into the copy."""
        found = self.kernel.load(self.buffers.argument(self.image.source), source, self.lanes, active=active)
        self.kernel.store(self.memory, to, self.kernel.cast(found, self.memory.dtype))


class ImageCopy(RowsCopy):
    """`memory[row][column][channel]`: some channels of every pixel."""

    def __init__(self, plan: CopiedWindowPlan, buffers: DispatchBuffers) -> None:
        self.plan = plan
        memory = buffers.kernel.scratch(plan.loops.dtype, plan.copied)
        shape = (plan.row_columns * plan.pitch, plan.lanes)
        super().__init__(buffers, plan.loops.images[0].access, plan.rows, memory, shape)

    def fill(self, outer: Outer, lines: tuple[Operand, Operand], bunch: Operand, channels: int) -> None:
        """The image under `lines`, `channels` of it from those of panel bunch `bunch` on."""
        begin, end = self.plan.columns.inside(self.plan.row_columns)
        pitch = self.plan.pitch

        def copy(source: Operand, to: Operand) -> None:
            self.pad(to, 0, begin * pitch)
            unroll(self.kernel, begin, end, COPIED_PIXELS, partial(self._pixel, source, to, channels))
            self.pad(to, end * pitch, self.pitch)

        self.fill_rows(outer, lines, self.kernel.mul(bunch, pitch), copy)

    def _pixel(self, source: Operand, to: Operand, channels: int, i: Operand) -> tuple[()]:
        kernel = self.kernel
        place = kernel.add(source, kernel.mul(i, self.plan.columns.stride))
        target = kernel.add(to, kernel.mul(i, self.plan.pitch))
        for c in range(0, channels, self.lanes):
            active = None if c + self.lanes <= channels else channels - c
            self.move(kernel.add(place, c), kernel.add(target, c), active)
        return ()


class PlaneCopy(RowsCopy):
    """`memory[row][column]` of an image whose columns are neighbours in memory."""

    def fill(self, outer: Outer, lines: tuple[Operand, Operand], columns: tuple[int, int]) -> None:
        """The image under `lines`; its columns lie in the range `columns` of a row."""
        kernel, (begin, end) = self.kernel, columns

        def copy(source: Operand, to: Operand) -> None:
            def vector(number: Operand, elements: Operand) -> None:
                i = kernel.add(begin, kernel.mul(number, self.lanes))
                self.move(kernel.add(source, i), kernel.add(to, i), elements if elements != self.lanes else None)

            self.pad(to, 0, begin)
            cut = divmod(end - begin, self.lanes)
            over_panels(kernel, cut, self.lanes, (0, cut[0] + 1), vector)
            self.pad(to, end, self.pitch)

        self.fill_rows(outer, lines, 0, copy)
