"""Sums side by side: of few accumulators, each step waits for the one before it on the same.

s += a0 b0, s += a1 b1, ..            four cycles each
s += a0 b0, t += a1 b1, ..  s + t     two at a time
"""

from __future__ import annotations

from collections.abc import Sequence

from fuseline.targets.cpu.kernel_ir.builder import KernelBuilder
from fuseline.targets.cpu.kernel_ir.types import Value

WAITING = 8
"""Accumulators that two multiply-add units of four cycles each are busy with: fewer wait for each other (one row of 64
elements by 192 columns, twice a step of a GRU: .67 of the time of the step)."""


def chain_count(accumulators: Sequence[Value], steps: int) -> int:
    """How many sums each accumulator had better be, for `steps` written out one after the other; integers wait for
    less."""
    if not accumulators or not accumulators[0].type.is_float:
        return 1
    return min(steps, -(-WAITING // len(accumulators)))


def more_chains(kernel: KernelBuilder, accumulators: Sequence[Value], count: int) -> list[Value]:
    """What the further sums of the accumulators begin with."""
    return [kernel.const(0, one.type.dtype, one.type.lanes) for _ in range(count - 1) for one in accumulators]


def in_chains(values: Sequence[Value], count: int) -> list[tuple[Value, ...]]:
    """The sums of each chain."""
    each = len(values) // count
    return [tuple(values[n * each : (n + 1) * each]) for n in range(count)]


def joined(kernel: KernelBuilder, chains: Sequence[tuple[Value, ...]]) -> tuple[Value, ...]:
    """The accumulators: pair by pair, as partial sums are added up."""
    if len(chains) == 1:
        return chains[0]
    half = len(chains) // 2
    first, second = joined(kernel, chains[:half]), joined(kernel, chains[half:])
    return tuple(kernel.add(a, b) for a, b in zip(first, second, strict=True))
