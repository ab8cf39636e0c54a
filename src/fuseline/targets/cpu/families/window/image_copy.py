"""The image under some lines of a window, copied to scratch: pixel beside pixel, with the padding around them.

image rows     a b c d        copy, one pixel of padding      . a b c d .
               e f g h                                        . e f g h .
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial

from fuseline.targets.cpu.combinators.unroll import unroll
from fuseline.targets.cpu.emit.dispatch_buffers import DispatchBuffers
from fuseline.targets.cpu.families.contraction.problem import Axis
from fuseline.targets.cpu.families.window.copies import CopiedWindowPlan
from fuseline.targets.cpu.kernel_ir.types import Operand

COPIED_PIXELS = 4
"""Pixels copied per iteration."""


class ImageCopy:
    """`memory[row][column][channel]`: `plan.pitch` channels a pixel. A row may begin with what the last vector before
    it wrote too far."""

    def __init__(self, plan: CopiedWindowPlan, frame: DispatchBuffers, pad: float) -> None:
        self.plan, self.frame, self.kernel, self.pad = plan, frame, frame.kernel, pad
        self.image = plan.problem.images[0].access
        self.memory = self.kernel.scratch(plan.problem.dtype, plan.copied)

    def fill(
        self, outer: Mapping[Axis, Operand], lines: tuple[Operand, Operand], bunch: Operand, channels: int
    ) -> None:
        """The image under `lines` (the first, and how many), `channels` of it from those of panel bunch `bunch` on;
        outside of it the pad value."""
        kernel, plan, rows = self.kernel, self.plan, self.plan.rows
        first, width = kernel.mul(lines[0], rows.along), plan.row_columns
        begin, end = plan.columns.inside(width)

        def row(r: Operand) -> tuple[()]:
            to = kernel.mul(r, width * plan.pitch)
            step = kernel.add(first, r)
            source = self._source(outer, step, bunch)

            def inside() -> tuple[()]:
                self._pad(to, 0, begin)
                unroll(kernel, begin, end, COPIED_PIXELS, partial(self._pixel, source, to, channels))
                self._pad(to, end, width)
                return ()

            def outside() -> tuple[()]:
                self._pad(to, 0, width)
                return ()

            if rows.size is None:
                return inside()
            coordinate = kernel.add(kernel.mul(step, rows.scale), rows.first)
            kernel.when(kernel.compare("ult", coordinate, rows.size), inside, outside)
            return ()

        kernel.loop(0, kernel.add(kernel.mul(lines[1], rows.along), rows.steps(0)), 1, row)

    def _source(self, outer: Mapping[Axis, Operand], row: Operand, bunch: Operand) -> Operand:
        """Where the channels of a bunch begin in a row of the image."""
        kernel = self.kernel
        total = kernel.add(self.frame.operand(self.image.flat.constant), kernel.mul(bunch, self.plan.pitch))
        for axis, value in outer.items():
            total = kernel.add(total, kernel.mul(value, self.frame.operand(self.image.stride(axis.inner))))
        return kernel.add(total, kernel.mul(row, self.plan.rows.stride))

    def _pixel(self, source: Operand, to: Operand, channels: int, i: Operand) -> tuple[()]:
        kernel, memory, lanes = self.kernel, self.frame.argument(self.image.source), self.plan.lanes
        place, target = (
            kernel.add(source, kernel.mul(i, self.plan.columns.stride)),
            kernel.add(to, kernel.mul(i, self.plan.pitch)),
        )
        for c in range(0, channels, lanes):
            active = None if c + lanes <= channels else channels - c
            kernel.store(
                self.memory, kernel.add(target, c), kernel.load(memory, kernel.add(place, c), lanes, active=active)
            )
        return ()

    def _pad(self, row: Operand, begin: int, end: int) -> None:
        """Columns `begin` to `end` of a row."""
        kernel, pitch = self.kernel, self.plan.pitch
        value = kernel.const(self.pad, self.plan.problem.dtype, self.plan.lanes)

        def vector(i: Operand) -> tuple[()]:
            kernel.store(self.memory, kernel.add(row, i), value)
            return ()

        kernel.loop(begin * pitch, end * pitch, self.plan.lanes, vector)
