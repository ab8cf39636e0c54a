"""Reductions whose order does not matter: which op combines, with what element, from what start."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from xdsl.dialects import arith, linalg
from xdsl.ir import Operation, SSAValue

from fuseline.analysis.combining import combinations
from fuseline.targets.cpu.combinators.lanes import across_lanes
from fuseline.targets.cpu.emit.body_ops import emit_scalar_op
from fuseline.targets.cpu.emit.dtypes import dtype_of
from fuseline.targets.cpu.kernel_ir.builder import KernelBuilder
from fuseline.targets.cpu.kernel_ir.types import BITS, Value

_INF = float("inf")


def _lowest(bits: int) -> int:
    return -(1 << (bits - 1)) if bits > 1 else 0  # signed i1 is -1 or 0, and `true` is -1


def _highest(bits: int) -> int:
    return (1 << (bits - 1)) - 1 if bits > 1 else 0


_IDENTITIES: dict[type[Operation], Callable[[int], float | int]] = {
    arith.AddfOp: lambda bits: 0.0,
    arith.MulfOp: lambda bits: 1.0,
    arith.MaximumfOp: lambda bits: -_INF,
    arith.MaxnumfOp: lambda bits: -_INF,
    arith.MinimumfOp: lambda bits: _INF,
    arith.MinnumfOp: lambda bits: _INF,
    arith.AddiOp: lambda bits: 0,
    arith.MuliOp: lambda bits: 1,
    arith.AndIOp: lambda bits: -1 if bits > 1 else 1,
    arith.OrIOp: lambda bits: 0,
    arith.XOrIOp: lambda bits: 0,
    arith.MaxSIOp: lambda bits: _lowest(bits) if bits > 1 else 1,
    arith.MinSIOp: _highest,
    arith.MaxUIOp: lambda bits: 0,
    arith.MinUIOp: lambda bits: -1 if bits > 1 else 1,
}


@dataclass(frozen=True)
class Combiner:
    """`result = combine(result, element)` for one result of a reduction; `op` is the combining op of the body."""

    op: Operation
    element: SSAValue
    rule: Callable[[KernelBuilder, Value, Value], Value] | None = None
    """A cheaper way to compute `op` on the running result and an element, where there is one."""

    @property
    def dtype(self) -> str:
        """The element type of the running result: f32 for halves, whose sums would not move any more after some
        thousand terms."""
        dtype = dtype_of(self.op.results[0].type)
        return "f32" if dtype in ("f16", "bf16") else dtype

    @property
    def neutral(self) -> float | int:
        """The number that combines with anything to that thing."""
        return _IDENTITIES[type(self.op)](BITS[self.dtype])

    def identity(self, kernel: KernelBuilder, lanes: int) -> Value:
        """`neutral` in every lane."""
        return kernel.const(self.neutral, self.dtype, lanes)

    def combine(self, kernel: KernelBuilder, a: Value, b: Value) -> Value:
        """`a` and `b` combined."""
        return self.rule(kernel, a, b) if self.rule is not None else emit_scalar_op(kernel, self.op, [a, b])

    def across(self, kernel: KernelBuilder, vector: Value) -> Value:
        """All lanes combined, halves first."""
        return across_lanes(kernel, (vector,), lambda low, high: (self.combine(kernel, *low, *high),))[0]


def combiners(op: linalg.ops.GenericOp) -> list[Combiner] | None:
    """One combiner per result, or None if some result depends on the order of the reduction or on another one's running
    value."""
    found = combinations(op)
    return None if found is None else [Combiner(combine, element) for combine, element in found]


def adds_floats(op: linalg.ops.GenericOp) -> bool:
    """Whether every result is a sum of floats, whose order does not matter but for rounding."""
    found = combiners(op)
    return found is not None and all(type(combiner.op) is arith.AddfOp for combiner in found)
