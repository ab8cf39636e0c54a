"""Scalars of orders: numbers as integers that come in their order, and which of two elements comes first.

Ranks are written with these (`analysis/ranks.py` reads them).
"""

from __future__ import annotations

from collections.abc import Sequence

from xdsl.dialects import arith
from xdsl.dialects.builtin import AnyFloat, IndexType, IntegerType, f32, i32, i64
from xdsl.ir import Attribute, SSAValue

from fuseline.ir.build import Body


def ordered_type(kind: Attribute) -> IntegerType:
    """The type of `ordered_integer` of numbers of a type. Raises TypeError for what is no number."""
    if isinstance(kind, IndexType):
        return i64
    if not isinstance(kind, AnyFloat | IntegerType):
        raise TypeError(f"{kind} has no order")
    return i32 if kind.bitwidth <= 32 else i64


def ordered_integer(b: Body, x: SSAValue, *, unsigned: bool = False) -> SSAValue:
    """A number as an i32, or an i64 where it has more bits, of the same order: of floats NaN is the largest, and both
    zeros are one. `unsigned`: how integers are compared. Raises TypeError for what is no number."""
    kind = x.type
    if isinstance(kind, IndexType):
        return b.op(arith.IndexCastOp, x, i64)
    if isinstance(kind, IntegerType):
        return _of_integer(b, x, kind.width.data, unsigned=unsigned)
    if not isinstance(kind, AnyFloat):
        raise TypeError(f"{kind} has no order")
    return _of_float(b, b.op(arith.ExtFOp, x, f32) if kind.bitwidth < 32 else x)


def _of_integer(b: Body, x: SSAValue, bits: int, *, unsigned: bool) -> SSAValue:
    wide = i32 if bits <= 32 else i64
    if bits != wide.width.data:
        return b.op(arith.ExtUIOp if unsigned or bits == 1 else arith.ExtSIOp, x, wide)
    return b.op(arith.XOrIOp, x, b.constant(-(1 << (bits - 1)), wide)) if unsigned else x


def _of_float(b: Body, x: SSAValue) -> SSAValue:
    """The bits, those behind the sign turned over where it is set."""
    assert isinstance(x.type, AnyFloat)
    element = i32 if x.type.bitwidth == 32 else i64
    most = (1 << (x.type.bitwidth - 1)) - 1
    bits = b.op(arith.BitcastOp, x, element)
    sign = b.op(arith.ShRSIOp, bits, b.constant(x.type.bitwidth - 1, element))
    ordered = b.op(arith.XOrIOp, bits, b.op(arith.AndIOp, sign, b.constant(most, element)))
    zero = b.op(arith.CmpfOp, x, b.constant(0.0, x.type), "oeq")
    proper = b.op(arith.SelectOp, zero, b.constant(0, element), ordered)
    return b.op(arith.SelectOp, b.op(arith.CmpfOp, x, x, "une"), b.constant(most, element), proper)


def turned(b: Body, key: SSAValue) -> SSAValue:
    """An integer of the opposite order."""
    return b.op(arith.XOrIOp, key, b.constant(-1, key.type))


def comes_before(b: Body, there: Sequence[SSAValue], here: Sequence[SSAValue], former: SSAValue) -> SSAValue:
    """Whether an element with the keys `there` (signed integers, the most significant first) comes before one with the
    keys `here`; of equals the `former` one does."""
    *_, p = there
    *_, q = here
    no_more, less = b.op(arith.CmpiOp, p, q, "sle"), b.op(arith.CmpiOp, p, q, "slt")
    found = b.op(arith.SelectOp, former, no_more, less)
    for p, q in reversed(list(zip(there[:-1], here[:-1], strict=True))):
        equal = b.op(arith.AndIOp, b.op(arith.CmpiOp, p, q, "eq"), found)
        found = b.op(arith.OrIOp, b.op(arith.CmpiOp, p, q, "slt"), equal)
    return found
