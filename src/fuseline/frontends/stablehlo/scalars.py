"""The elementwise ops on scalars: what a body of a structured op computes for one element, whether the op stands alone
or in the region of a reduction."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from xdsl.dialects import arith, math
from xdsl.ir import SSAValue

from fuseline.frontends.onnx import scalars as s
from fuseline.frontends.onnx.dtypes import is_float, is_unsigned, mlir_element
from fuseline.frontends.stablehlo.cell import Cell, Scalar
from fuseline.frontends.stablehlo.conversions import convert_element, reduce_precision
from fuseline.frontends.stablehlo.reading import text_of
from fuseline.frontends.stablehlo.types import DType
from fuseline.ir.build import Body
from fuseline.ir.scalar_ops import IsFiniteOp, IsInfOp


def _float(kind: Callable[..., Any]) -> Scalar:
    return lambda c, *e: c.operation(kind, *e)


def _by_type(function: Callable[..., SSAValue]) -> Scalar:
    return lambda c, x, y: function(c.b, c.dtype, x, y)


def _bits(kind: Callable[..., Any]) -> Scalar:
    return lambda c, x, y: c.operation(kind, x, y)


def _add(c: Cell, x: SSAValue, y: SSAValue) -> SSAValue:
    return c.operation(arith.OrIOp, x, y) if c.dtype.kind == "b" else s.add(c.b, c.dtype, x, y)


def _mul(c: Cell, x: SSAValue, y: SSAValue) -> SSAValue:
    return c.operation(arith.AndIOp, x, y) if c.dtype.kind == "b" else s.mul(c.b, c.dtype, x, y)


def _abs(c: Cell, x: SSAValue) -> SSAValue:
    if is_unsigned(c.dtype):
        return x
    return c.operation(math.AbsFOp if is_float(c.dtype) else math.AbsIOp, x)


def _negate(c: Cell, x: SSAValue) -> SSAValue:
    return c.operation(arith.NegfOp, x) if is_float(c.dtype) else s.sub(c.b, c.dtype, c.constant(0), x)


def _not(c: Cell, x: SSAValue) -> SSAValue:
    return c.operation(arith.XOrIOp, x, c.constant(1 if c.dtype.kind == "b" else -1))


def _sign(c: Cell, x: SSAValue) -> SSAValue:
    """-1, 0 or 1; zeros and NaN are kept."""
    above, below = c.compare("gt", x, c.constant(0)), c.compare("lt", x, c.constant(0))
    negative = c.constant(0 if is_unsigned(c.dtype) else -1)
    return s.select(c.b, above, c.constant(1), s.select(c.b, below, negative, x))


def _logistic(c: Cell, x: SSAValue) -> SSAValue:
    power = c.operation(math.ExpOp, c.operation(arith.NegfOp, x))
    return c.operation(arith.DivfOp, c.constant(1.0), c.operation(arith.AddfOp, c.constant(1.0), power))


# -- integers that machines refuse to divide ---------------------------------------------------------------------------


def _is_safe(c: Cell, y: SSAValue) -> bool:
    """Whether a divisor is a number for which there is nothing to take care of."""
    owner = y.owner
    return (
        isinstance(owner, arith.ConstantOp)
        and getattr(owner.value, "value", None) is not None
        and (
            int(getattr(owner.value, "value").data) not in (0, -1)  # noqa: B009
        )
    )


def _guarded(c: Cell, x: SSAValue, y: SSAValue) -> tuple[SSAValue, SSAValue]:
    """Whether the divisor is 0, and a divisor that can be divided by: 1 where it is 0, or where the quotient
    overflows."""
    zero = c.compare("eq", y, c.constant(0))
    unsafe = zero
    if not is_unsigned(c.dtype):
        smallest = c.compare("eq", x, c.constant(int(np.iinfo(c.dtype).min)))
        overflow = c.operation(arith.AndIOp, smallest, c.compare("eq", y, c.constant(-1)))
        unsafe = c.operation(arith.OrIOp, zero, overflow)
    return zero, s.select(c.b, unsafe, c.constant(1), y)


def _divide(c: Cell, x: SSAValue, y: SSAValue) -> SSAValue:
    """Integers truncate; by 0 it is -1 (all bits)."""
    if is_float(c.dtype):
        return c.operation(arith.DivfOp, x, y)
    kind = arith.DivUIOp if is_unsigned(c.dtype) else arith.DivSIOp
    if _is_safe(c, y):
        return c.operation(kind, x, y)
    zero, divisor = _guarded(c, x, y)
    return s.select(c.b, zero, c.constant(-1), c.operation(kind, x, divisor))


def _remainder(c: Cell, x: SSAValue, y: SSAValue) -> SSAValue:
    """With the sign of the dividend; by 0 it is the dividend."""
    if is_float(c.dtype):
        return s.rem(c.b, c.dtype, x, y)
    kind = arith.RemUIOp if is_unsigned(c.dtype) else arith.RemSIOp
    if _is_safe(c, y):
        return c.operation(kind, x, y)
    zero, divisor = _guarded(c, x, y)
    return s.select(c.b, zero, x, c.operation(kind, x, divisor))


def _power(c: Cell, x: SSAValue, y: SSAValue) -> SSAValue:
    return c.operation(math.PowFOp if is_float(c.dtype) else math.IPowIOp, x, y)


# -- shifts ------------------------------------------------------------------------------------------------------------


def _shifted(kind: Callable[..., Any]) -> Scalar:
    """A shift that leaves 0 where it goes over the end."""

    def shift(c: Cell, x: SSAValue, y: SSAValue) -> SSAValue:
        width = c.constant(8 * c.dtype.itemsize)
        inside = c.operation(arith.CmpiOp, y, width, "ult")
        near = s.select(c.b, inside, y, c.constant(0))
        return s.select(c.b, inside, c.operation(kind, x, near), c.constant(0))

    return shift


def _shift_right_arithmetic(c: Cell, x: SSAValue, y: SSAValue) -> SSAValue:
    last = c.constant(8 * c.dtype.itemsize - 1)
    return c.operation(arith.ShRSIOp, x, c.operation(arith.MinUIOp, y, last))


# -- comparisons and conversions ---------------------------------------------------------------------------------------


def _compare(c: Cell, x: SSAValue, y: SSAValue) -> SSAValue:
    predicate = text_of(c.op.attribute("comparison_direction")).lower()
    if text_of(c.op.attribute("compare_type")) == "TOTALORDER" and is_float(c.dtype):
        key = np.dtype(f"int{8 * c.dtype.itemsize}")
        return s.compare(c.b, key, predicate, total_order(c.b, c.dtype, x), total_order(c.b, c.dtype, y))
    return c.compare(predicate, x, y)


def total_order(b: Body, dtype: DType, x: SSAValue) -> SSAValue:
    """A float as an integer of the same order, in which -0 comes before 0 and NaN behind the infinity of its sign."""
    element, bits = mlir_element(np.dtype(f"int{8 * dtype.itemsize}")), 8 * dtype.itemsize
    number = b.op(arith.BitcastOp, x, element)
    sign = b.op(arith.ShRSIOp, number, b.constant(bits - 1, element))
    return b.op(arith.XOrIOp, number, b.op(arith.AndIOp, sign, b.constant((1 << (bits - 1)) - 1, element)))


# -- float helpers of CHLO ---------------------------------------------------------------------------------------------


def _infinite(sign: int) -> Scalar:
    return lambda c, x: c.compare("eq", x, c.constant(sign * float("inf")))


def _square(c: Cell, x: SSAValue) -> SSAValue:
    return s.mul(c.b, c.dtype, x, x)


def _erfc(c: Cell, x: SSAValue) -> SSAValue:
    return c.operation(arith.SubfOp, c.constant(1.0), c.operation(math.ErfOp, x))


SCALARS: dict[str, Scalar] = {
    "stablehlo.abs": _abs,
    "stablehlo.add": _add,
    "stablehlo.and": _bits(arith.AndIOp),
    "stablehlo.atan2": _float(math.Atan2Op),
    "stablehlo.cbrt": _float(math.CbrtOp),
    "stablehlo.ceil": _float(math.CeilOp),
    "stablehlo.clamp": lambda c, low, x, high: s.minimum(c.b, c.dtypes[1], s.maximum(c.b, c.dtypes[1], x, low), high),
    "stablehlo.compare": _compare,
    "stablehlo.convert": convert_element,
    "stablehlo.cosine": _float(math.CosOp),
    "stablehlo.count_leading_zeros": _float(math.CountLeadingZerosOp),
    "stablehlo.divide": _divide,
    "stablehlo.exponential": _float(math.ExpOp),
    "stablehlo.exponential_minus_one": _float(math.ExpM1Op),
    "stablehlo.floor": _float(math.FloorOp),
    "stablehlo.is_finite": lambda c, x: c.classified(IsFiniteOp, x),
    "stablehlo.log": _float(math.LogOp),
    "stablehlo.log_plus_one": _float(math.Log1pOp),
    "stablehlo.logistic": _logistic,
    "stablehlo.maximum": _by_type(s.maximum),
    "stablehlo.minimum": _by_type(s.minimum),
    "stablehlo.multiply": _mul,
    "stablehlo.negate": _negate,
    "stablehlo.not": _not,
    "stablehlo.or": _bits(arith.OrIOp),
    "stablehlo.popcnt": _float(math.CtPopOp),
    "stablehlo.power": _power,
    "stablehlo.reduce_precision": reduce_precision,
    "stablehlo.remainder": _remainder,
    "stablehlo.round_nearest_afz": _float(math.RoundOp),
    "stablehlo.round_nearest_even": _float(math.RoundEvenOp),
    "stablehlo.rsqrt": _float(math.RsqrtOp),
    "stablehlo.select": lambda c, p, x, y: s.select(c.b, p, x, y),
    "stablehlo.shift_left": _shifted(arith.ShLIOp),
    "stablehlo.shift_right_arithmetic": _shift_right_arithmetic,
    "stablehlo.shift_right_logical": _shifted(arith.ShRUIOp),
    "stablehlo.sign": _sign,
    "stablehlo.sine": _float(math.SinOp),
    "stablehlo.sqrt": _float(math.SqrtOp),
    "stablehlo.subtract": _by_type(s.sub),
    "stablehlo.tan": _float(math.TanOp),
    "stablehlo.tanh": _float(math.TanhOp),
    "stablehlo.xor": _bits(arith.XOrIOp),
    "chlo.acos": _float(math.AcosOp),
    "chlo.acosh": _float(math.AcoshOp),
    "chlo.asin": _float(math.AsinOp),
    "chlo.asinh": _float(math.AsinhOp),
    "chlo.atan": _float(math.AtanOp),
    "chlo.atanh": _float(math.AtanhOp),
    "chlo.cosh": _float(math.CoshOp),
    "chlo.erf": _float(math.ErfOp),
    "chlo.erfc": _erfc,
    "chlo.is_inf": lambda c, x: c.classified(IsInfOp, x),
    "chlo.is_neg_inf": _infinite(-1),
    "chlo.is_pos_inf": _infinite(1),
    "chlo.sinh": _float(math.SinhOp),
    "chlo.square": _square,
    "chlo.tan": _float(math.TanOp),
    "mhlo.erf": _float(math.ErfOp),
    "mhlo.tan": _float(math.TanOp),
}
"""How each op computes an element from elements: `function(cell, *elements)`."""
