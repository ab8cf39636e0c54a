"""Some iterations written out in each round, the rest one by one.

0 to 7 by 3        0 1 2 | 3 4 5 | 6
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from fuseline.targets.cpu.kernel_ir.builder import KernelBuilder
from fuseline.targets.cpu.kernel_ir.types import Operand


def unroll(
    kernel: KernelBuilder,
    lo: Operand,
    hi: Operand,
    count: int,
    body: Callable[..., Sequence[Operand] | None],
    carried: Sequence[Operand] = (),
) -> tuple[Any, ...]:
    """`kernel.loop(lo, hi, 1, body, carried)` for `lo <= hi`, `count` iterations in each round."""

    def some(i: Operand, *values: Operand) -> Sequence[Operand]:
        for n in range(count):
            values = tuple(body(kernel.add(i, n), *values) or ())
        return values

    whole = kernel.add(lo, kernel.mul(kernel.div(kernel.sub(hi, lo), count), count))
    return kernel.loop(whole, hi, 1, body, kernel.loop(lo, whole, count, some, carried))
