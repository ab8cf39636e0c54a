"""Partial sums of a tile: how long they are, and the totals that they are added to."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from fuseline.targets.cpu.kernel_ir.builder import KernelBuilder
from fuseline.targets.cpu.kernel_ir.types import Value

PARTIAL_STEPS = 256
"""About how many steps of floats are added up before their sum is added to the total: the rounding error of a sum grows
with the length of its runs, and this bounds it. A total costs an addition, and a way to the stack and back, per
accumulator: under 1 % of the steps between."""


LEAST_STEPS, MOST_STEPS = 160, 384
"""Partial sums may be this short or nearly this long, so that all can be of one length: a shorter last one is code of
its own."""


class PartialSums(NamedTuple):
    """Partial sums: those of the loop at `level`, `size` iterations each."""

    level: int
    size: int


def partial_size(count: int, inside: int, period: int) -> int:
    """How many of the `count` iterations of a loop, of `inside` steps each, are a partial sum: whole periods of them,
    and all sums of one length where there is such a length."""
    sizes = range(period, min(count, -(-MOST_STEPS // inside)), period)
    even = [size for size in sizes if count % size == 0 and size * inside >= LEAST_STEPS]
    wanted = max(PARTIAL_STEPS // inside // period, 1) * period
    return min(even, key=lambda size: abs(size - wanted), default=wanted)


class PartialTotals:
    """The sums of one tile so far, in scratch: in registers they would stand in the way of the partial sums."""

    def __init__(self, kernel: KernelBuilder, start: Sequence[Value]) -> None:
        self._kernel, self._type, self._count = kernel, start[0].type, len(start)
        self._memory = kernel.scratch(self._type.dtype, len(start) * self._type.lanes)
        self._store(start)

    def zeros(self) -> tuple[Value, ...]:
        """What a partial sum starts from."""
        return (self._kernel.const(0.0, self._type.dtype, self._type.lanes),) * self._count

    def add(self, addends: Sequence[Value]) -> tuple[Value, ...]:
        """Add partial sums; answers that nothing is carried in registers."""
        self._store([self._kernel.add(total, addend) for total, addend in zip(self.values(), addends, strict=True)])
        return ()

    def values(self) -> list[Value]:
        """The totals."""
        return [self._kernel.load(self._memory, i * self._type.lanes, self._type.lanes) for i in range(self._count)]

    def _store(self, values: Sequence[Value]) -> None:
        for i, value in enumerate(values):
            self._kernel.store(self._memory, i * self._type.lanes, value)
