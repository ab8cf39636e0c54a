"""Operations of the kernel IR on the bits of integers, and on numbers as bits."""

from __future__ import annotations

from fuseline.targets.cpu.kernel_ir.arithmetic import Arithmetic, Number
from fuseline.targets.cpu.kernel_ir.types import BITS, Type, Value


class Bits(Arithmetic):
    """Integers lane by lane, as two's complement."""

    def bitand(self, a: Number, b: Number) -> Value:
        """Bitwise and."""
        return self._binary("and", a, b)

    def bitor(self, a: Number, b: Number) -> Value:
        """Bitwise or."""
        return self._binary("or", a, b)

    def xor(self, a: Number, b: Number) -> Value:
        """Bitwise exclusive or."""
        return self._binary("xor", a, b)

    def shl(self, a: Number, b: Number) -> Value:
        """Shift left; `b` below the width."""
        return self._binary("shl", a, b)

    def lshr(self, a: Number, b: Number) -> Value:
        """Shift right, zeros in; `b` below the width."""
        return self._binary("lshr", a, b)

    def ashr(self, a: Number, b: Number) -> Value:
        """Shift right, the sign in; `b` below the width."""
        return self._binary("ashr", a, b)

    def leading_zeros(self, a: Value) -> Value:
        """Zero bits above the highest set one; the width for 0."""
        return self._unary("ctlz", a)

    def trailing_zeros(self, a: Value) -> Value:
        """Zero bits below the lowest set one; the width for 0."""
        return self._unary("cttz", a)

    def count_ones(self, a: Value) -> Value:
        """Set bits."""
        return self._unary("ctpop", a)

    def bitcast(self, a: Value, dtype: str) -> Value:
        """The same bits as lanes of another type, as many as there are bits for."""
        return (
            a
            if a.type.dtype == dtype
            else self.pure("bitcast", Type(dtype, a.type.lanes * BITS[a.type.dtype] // BITS[dtype]), (a,))
        )
