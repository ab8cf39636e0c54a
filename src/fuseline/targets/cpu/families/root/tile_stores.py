"""Stores of a whole tile at once, for results that do not lie along its vectors."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence

from fuseline.targets.cpu.emit.coordinates import AnyIndex
from fuseline.targets.cpu.emit.dispatch_buffers import DispatchBuffers
from fuseline.targets.cpu.families.contraction.results import ResultPath
from fuseline.targets.cpu.kernel_ir.types import Operand, Value


class TileStores(ABC):
    """Stores the values of a tile at a path."""

    def __init__(self, buffers: DispatchBuffers, path: ResultPath) -> None:
        self.buffers, self.kernel, self.path = buffers, buffers.kernel, path

    @abstractmethod
    def store(
        self, rows: Sequence[Value], starts: Sequence[Sequence[AnyIndex]], active: Operand | None, exist: Operand
    ) -> None:
        """`rows`: a vector of each row; `starts`: where the loops of the root are there. `active`: the live lanes, None
        for all; `exist`: how many rows there are."""
