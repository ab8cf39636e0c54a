"""Loops across the lanes: whole vectors, then what remains; in compact kernels all of them masked.

21 elements, 4 lanes, 2 vectors side by side        0 .. 7 | 8 .. 15 || 16 .. 19 || 20, masked or by itself
what each lane keeps of them                        0 8 1 9 .. of the one vector, 4 12 .. of the other; joined at last
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import reduce
from typing import Any, TypeAlias

from fuseline.targets.cpu.kernel_ir.builder import KernelBuilder
from fuseline.targets.cpu.kernel_ir.types import BITS, Operand, Value

Body = Callable[[list[Operand], int, Operand | None, tuple[Value, ...]], Sequence[Value]]
"""`(starts, lanes, active, carried) -> carried`: work on `lanes` elements from each of `starts` on."""

Kept: TypeAlias = tuple[Value, ...]
"""What is kept of the elements so far, lane by lane."""

Step = Callable[[Operand, int, "Operand | None", Kept], Kept]
"""`(start, lanes, active, kept) -> kept`: what is kept after `lanes` elements from `start` on."""

Join = Callable[[Kept, Kept], Kept]
"""What is kept of all elements of which the one or the other was kept."""


def is_masked(kernel: KernelBuilder, *dtypes: str) -> bool:
    """Whether the ISA masks vectors of all these element types."""
    return all(max(BITS[dtype], 8) in kernel.machine.masked_bits for dtype in dtypes)


def across_lanes(kernel: KernelBuilder, kept: Kept, join: Join) -> Kept:
    """What all lanes keep, in one: halves first."""
    while kept[0].type.lanes > 1:
        half = kept[0].type.lanes // 2
        low, high = (tuple(kernel.lanes(value, at, half) for value in kept) for at in (0, half))
        kept = join(low, high)
    return kept


class LaneLoop:
    """How an axis is traversed.

    Args:
        lanes: elements per vector (1: a scalar loop).
        unroll: vectors per iteration of the main loop.
        masked: whether the rest is one masked vector (else a scalar loop, for element types the ISA cannot mask).
    """

    def __init__(self, kernel: KernelBuilder, lanes: int, *, unroll: int = 1, masked: bool = True) -> None:
        self.kernel, self.lanes, self.unroll, self.masked = kernel, lanes, unroll, masked
        self.vectors = unroll if lanes > 1 else 0
        self.scalars = int(not masked or lanes == 1)

    def place(self, number: int, lanes: int) -> int:
        """Of what `vectors` and behind them `scalars` keep, the place of vector `number` of an iteration, `lanes`
        wide."""
        return self.vectors if lanes == 1 else number

    def run(self, lo: Operand, hi: Operand, body: Body, carried: Sequence[Value] = ()) -> tuple[Any, ...]:
        """Traverse `lo` to `hi`."""
        if self.lanes == 1:
            return self._steps(lo, hi, 1, 1, body, tuple(carried))
        at, state = lo, tuple(carried)
        if self.kernel.compact and self.masked:
            return self._all_masked(lo, hi, body, state)
        if self.unroll > 1 and not self.kernel.compact:
            end = self._whole(lo, hi, self.lanes * self.unroll)
            state = self._steps(lo, end, self.unroll, self.lanes, body, state)
            at = end
        full = self._whole(lo, hi, self.lanes)
        state = self._steps(at, full, 1, self.lanes, body, state)
        return self._rest(full, hi, body, state)

    def keep(self, lo: Operand, hi: Operand, begin: Kept, step: Step, join: Join) -> Kept:
        """What is kept of `lo` to `hi`, one lane wide: all lanes begin with `begin`, and those of vectors side by side,
        then those of a vector, are joined."""
        width = len(begin)

        def visit(
            starts: list[Operand], lanes: int, active: Operand | None, state: tuple[Value, ...]
        ) -> Sequence[Value]:
            out = list(state)
            for number, start in enumerate(starts):
                at = slice(width * self.place(number, lanes), width * (self.place(number, lanes) + 1))
                out[at] = step(start, lanes, active, tuple(out[at]))
            return out

        wide = [self.kernel.splat(value, self.lanes) for value in begin]
        final = self.run(lo, hi, visit, [*wide * self.vectors, *begin * self.scalars])
        kept = [final[i : i + width] for i in range(0, len(final), width)]
        vectors, scalars = kept[: self.vectors], kept[self.vectors :]
        across = [across_lanes(self.kernel, reduce(join, vectors), join)] if vectors else []
        return reduce(join, [*across, *scalars])

    def _all_masked(self, lo: Operand, hi: Operand, body: Body, carried: tuple[Value, ...]) -> tuple[Any, ...]:
        """The body once: every vector may be the last."""
        k = self.kernel

        def one(i: Operand, *state: Value) -> Sequence[Value]:
            return body([i], self.lanes, k.min(k.sub(hi, i), self.lanes), state)

        return k.loop(lo, hi, self.lanes, one, carried)

    def _whole(self, lo: Operand, hi: Operand, step: int) -> Operand:
        k = self.kernel
        return k.add(lo, k.mul(k.div(k.sub(hi, lo), step), step))

    def _steps(
        self, lo: Operand, hi: Operand, count: int, lanes: int, body: Body, carried: tuple[Value, ...]
    ) -> tuple[Any, ...]:
        def one(i: Operand, *state: Value) -> Sequence[Value]:
            return body([self.kernel.add(i, n * lanes) for n in range(count)], lanes, None, state)

        return self.kernel.loop(lo, hi, count * lanes, one, carried)

    def _rest(self, full: Operand, hi: Operand, body: Body, carried: tuple[Value, ...]) -> tuple[Any, ...]:
        k = self.kernel
        if isinstance(full, int) and isinstance(hi, int) and full == hi:
            return carried
        if not self.masked:
            return self._steps(full, hi, 1, 1, body, carried)
        left = k.sub(hi, full)
        return k.when(
            k.compare("lt", full, hi), lambda: tuple(body([full], self.lanes, left, carried)), lambda: carried
        )
