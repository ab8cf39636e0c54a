"""Long sums as totals of partial ones (blocked summation, N. Higham, Accuracy and Stability of Numerical Algorithms,
section 4.2): the rounding error of a sum grows with the length of its runs.

    for row:  part = 0                        for start by 256:  part = 0
        for column: part += x                     for i in start .. start + 256: part += x
        total += part                             total += part
    where a row is long enough                where it is not, or there are no rows
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from fuseline.targets.cpu.emit.partial_sums import LEAST_STEPS, MOST_STEPS, PARTIAL_STEPS
from fuseline.targets.cpu.kernel_ir.builder import KernelBuilder
from fuseline.targets.cpu.kernel_ir.types import Operand, Value

Step = Callable[[Operand, Sequence[Value]], Sequence[Value]]
"""`(index, sums) -> sums`"""

LONG = 4 * MOST_STEPS
"""Shorter sums are one run: the windows of poolings, and what costs less than a second loop."""


def summed(
    kernel: KernelBuilder,
    bounds: tuple[Operand, Operand],
    terms: tuple[int | None, int | None],
    sums: Sequence[Value],
    step: Step,
) -> Sequence[Value]:
    """`sums` of floats plus what `step` adds to them at every index within `bounds`.

    Args:
        terms: how many indices there are at most and how many terms `step` adds at each, None where that is not known;
        it may add them in parts itself.
    """
    (low, high), (count, inside) = bounds, terms
    if count is not None and inside is not None and count * inside < LONG:
        return kernel.loop(low, high, 1, lambda i, *held: step(i, held), sums)
    if inside is None or inside >= LEAST_STEPS:
        return kernel.loop(low, high, 1, lambda i, *held: _plus(kernel, held, step(i, _zeros(kernel, held))), sums)
    length = PARTIAL_STEPS // inside

    def partial_sum(start: Operand, *held: Value) -> Sequence[Value]:
        end = kernel.min(kernel.add(start, length), high)
        found = kernel.loop(start, end, 1, lambda i, *inner: step(i, inner), _zeros(kernel, held))
        return _plus(kernel, held, found)

    return kernel.loop(low, high, length, partial_sum, sums)


def _zeros(kernel: KernelBuilder, sums: Sequence[Value]) -> list[Value]:
    return [kernel.const(0.0, *value.type) for value in sums]


def _plus(kernel: KernelBuilder, sums: Sequence[Value], addends: Sequence[Value]) -> list[Value]:
    return [kernel.add(total, addend) for total, addend in zip(sums, addends, strict=True)]
