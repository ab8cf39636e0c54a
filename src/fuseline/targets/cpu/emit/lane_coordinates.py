"""Coordinates per lane through ops that only move data: what `analysis/moves.py` says, in the indices of the kernel
under construction."""

from __future__ import annotations

from collections.abc import Sequence

from xdsl.ir import Operation

from fuseline.analysis.moves import Source, sources
from fuseline.errors import FuselineError
from fuseline.ir.dim import Dim
from fuseline.targets.cpu.emit.coordinates import AnyIndex, Index
from fuseline.targets.cpu.emit.dispatch_buffers import DispatchBuffers
from fuseline.targets.cpu.emit.puller import Puller


def lane_sources(e: Puller, op: Operation, index: Sequence[AnyIndex], lanes: int) -> list[Source[AnyIndex]]:
    """The sources of element `index` of the result of `op`. Raises E0901 for an op whose box has steps, which no pass
    leaves."""
    found = sources(op, index, e.view.shapes, LaneCoordinates(e.buffers, lanes))
    if found is None:
        raise FuselineError(
            "E0901", f"the CPU target cannot evaluate {op.name} with steps", node=e.view.entry.sym_name.data
        )
    return found


class LaneCoordinates:
    """One coordinate per lane; divisions wait until they are needed (`DelinearizedIndex`)."""

    def __init__(self, buffers: DispatchBuffers, lanes: int) -> None:
        self.buffers, self.lanes = buffers, lanes

    def number(self, value: Dim) -> AnyIndex:
        """The same coordinate in every lane."""
        return Index(self.buffers.operand(value))

    def moved(self, at: AnyIndex, stride: Dim, offset: Dim) -> AnyIndex:
        """`stride * at + offset`."""
        buffers, found = self.buffers, self.buffers.resolve(at, self.lanes)
        if stride != 1:
            found = buffers.scaled(found, buffers.operand(stride), self.lanes)
        return buffers.plus(found, Index(buffers.operand(offset)), self.lanes) if offset != 0 else found

    def linearized(self, at: Sequence[AnyIndex], sizes: Sequence[Dim]) -> AnyIndex:
        """The row-major index; that of one moving dimension is its coordinate, with its division pending."""
        moving = [i for i, size in enumerate(sizes) if size != 1]
        return at[moving[0]] if len(moving) == 1 else self.buffers.linear(at, sizes, self.lanes)

    def delinearized(self, at: AnyIndex, sizes: Sequence[Dim]) -> Sequence[AnyIndex]:
        """The coordinates, divided only where they are used."""
        return self.buffers.delinearize(at, tuple(sizes))
