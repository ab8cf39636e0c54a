"""Operations of the kernel IR on the lanes of vectors: picking, replacing, masking and combining them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from fuseline.targets.cpu.kernel_ir.arithmetic import Number
from fuseline.targets.cpu.kernel_ir.bits import Bits
from fuseline.targets.cpu.kernel_ir.types import Operand, Type, Value


class Lanes(Bits):
    """Scalars are vectors of one lane."""

    def iota(self, lanes: int, dtype: str = "i64") -> Value:
        """0, 1, 2, ..."""
        return self.const(tuple(range(lanes)), dtype, lanes) if lanes > 1 else self.const(0, dtype)

    def extract(self, vector: Value, lane: int) -> Value:
        """One lane as a scalar."""
        if vector.type.lanes == 1:
            return vector
        if vector.op == "splat":
            return vector.args[0]
        return self.pure("extract", Type(vector.type.dtype), (vector,), lane)

    def insert(self, vector: Value, scalar: Value, lane: int) -> Value:
        """`vector` with one lane replaced."""
        return self.pure("insert", vector.type, (vector, scalar), lane)

    def shuffle(self, a: Value, b: Value | None, mask: Sequence[int]) -> Value:
        """Lanes picked from `a` followed by `b`, one per entry of `mask`."""
        return self.pure("shuffle", Type(a.type.dtype, len(mask)), (a, b if b is not None else a), tuple(mask))

    def concat(self, a: Value, b: Value) -> Value:
        """The lanes of `a`, then those of `b` (equal types)."""
        if a.type.lanes == 1:
            both = self.splat(a, 2)
            return self.insert(both, b, 1)
        return self.shuffle(a, b, range(2 * a.type.lanes))

    def mask(self, active: Operand, lanes: int) -> Value:
        """i1 lanes, the first `active` of them set."""
        if isinstance(active, int):
            return self.const(
                tuple(int(i < active) for i in range(lanes)) if lanes > 1 else int(active > 0), "i1", lanes
            )
        if lanes == 1:
            return self.compare("gt", active, 0)
        return self.pure("mask", Type("i1", lanes), (active,))

    def mask_bits(self, mask: Value) -> Value:
        """i1 lanes, 64 at the most, as the lowest bits of an i64."""
        if mask.type.lanes == 1:
            return self.pure("cast", Type("i64"), (mask,), "zext")
        return self.pure("mask_bits", Type("i64"), (mask,))

    def combine(self, op: str, a: Number, b: Number) -> Any:
        """The binary operation of that name (add, mul, min, max, minimum, maximum, umin, umax, bitand, bitor, xor)."""
        return getattr(self, op)(a, b)

    def reduce(self, op: str, vector: Value) -> Value:
        """All lanes combined pairwise (halves first) into a scalar; `op` as for `combine`, lanes a power of two."""
        while vector.type.lanes > 1:
            half = vector.type.lanes // 2
            low = self.lanes(vector, 0, half)
            vector = self.combine(op, low, self.lanes(vector, half, half))
        return vector

    def lanes(self, vector: Value, first: int, count: int) -> Value:
        """`count` neighbouring lanes; a scalar when it is one."""
        if count == vector.type.lanes:
            return vector
        if count == 1:
            return self.extract(vector, first)
        return self.shuffle(vector, None, range(first, first + count))
