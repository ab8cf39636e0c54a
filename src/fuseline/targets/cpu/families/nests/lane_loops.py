"""Loops across the lanes: whole vectors, then what remains; in compact kernels all of them masked."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from fuseline.targets.cpu.kernel_ir.builder import KernelBuilder
from fuseline.targets.cpu.kernel_ir.types import Operand, Value

Body = Callable[[list[Operand], int, Operand | None, tuple[Value, ...]], Sequence[Value]]
"""`(starts, lanes, active, carried) -> carried`: work on `lanes` elements from each of `starts` on."""


class LaneLoop:
    """How an axis is traversed.

    Args:
        lanes: elements per vector (1: a scalar loop).
        unroll: vectors per iteration of the main loop.
        masked: whether the rest is one masked vector (else a scalar loop, for element types the ISA cannot mask).
    """

    def __init__(self, kernel: KernelBuilder, lanes: int, *, unroll: int = 1, masked: bool = True) -> None:
        self.kernel, self.lanes, self.unroll, self.masked = kernel, lanes, unroll, masked

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
