"""An axis of a window's result in strips of at most so many positions, which scratch has room for; how long it is, only
the run may know.

    128 lines, at most 43       4 strips of 32, as equal as can be
"""

from __future__ import annotations

from dataclasses import dataclass

from fuseline.ir import dim as d
from fuseline.ir.dim import Dim
from fuseline.targets.cpu.combinators.split import Range
from fuseline.targets.cpu.emit.dispatch_buffers import DispatchBuffers
from fuseline.targets.cpu.kernel_ir.types import Operand
from fuseline.targets.cpu.tiles import shared_out


@dataclass(frozen=True, slots=True)
class InStrips:
    """`extent` positions in strips of at most `most`."""

    extent: Dim
    most: int

    @property
    def count(self) -> Dim:
        """How many strips there are."""
        return d.ceil_div(self.extent, self.most)

    def part(self, buffers: DispatchBuffers, strip: Operand) -> Range:
        """The first position of a strip, and how many it has."""
        if isinstance(self.extent, int) and self.extent <= self.most:
            return 0, self.extent
        kernel, extent = buffers.kernel, buffers.operand(self.extent)
        each = self._each(buffers)
        first = kernel.mul(strip, each)
        return first, kernel.min(each, kernel.sub(extent, first))

    def _each(self, buffers: DispatchBuffers) -> Operand:
        """Positions of a strip but for the last: where the run knows how many, shared out equally."""
        if isinstance(self.extent, int):
            return shared_out(self.extent, self.most)
        kernel, strips = buffers.kernel, buffers.operand(self.count)
        extent = buffers.operand(self.extent)
        return kernel.min(kernel.div(kernel.add(extent, kernel.sub(strips, 1)), kernel.max(strips, 1)), self.most)
