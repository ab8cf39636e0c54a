"""Which points a kernel visits, in order: bodies write them down."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np

from fuseline.targets.cpu.isa import machine
from fuseline.targets.cpu.kernel_ir.builder import KernelBuilder
from fuseline.targets.cpu.kernel_ir.types import MemRef, Operand
from tests.kernel_ir.evaluate import evaluate

MOST = 4096


class Visits:
    """A kernel under construction whose bodies call `note`."""

    def __init__(self, *, compact: bool = False) -> None:
        self.kernel = KernelBuilder("k", machine("avx2"), compact=compact)
        self.log: MemRef = self.kernel.binding(0, "i64", MOST, writable=True)

    def note(self, *numbers: Operand) -> tuple[()]:
        """Write some numbers down."""
        kernel = self.kernel
        for number in numbers:
            place = kernel.add(kernel.load(self.log, 0), 1)
            kernel.store(self.log, place, kernel.as_value(number))
            kernel.store(self.log, 0, place)
        return ()

    def run(self, sizes: Sequence[int] = ()) -> list[int]:
        """All that was written down."""
        log = np.zeros(MOST, np.int64)
        evaluate(self.kernel.finish(), [log], list(sizes), 0, 1)
        return log[1 : log[0] + 1].tolist()


def visited(emit: Callable[[Visits], object], sizes: Sequence[int] = ()) -> list[int]:
    """What `emit` has its kernel write down."""
    visits = Visits()
    emit(visits)
    return visits.run(sizes)
