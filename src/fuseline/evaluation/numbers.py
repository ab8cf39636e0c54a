"""`arith` and `math` on NumPy scalars and arrays alike, with MLIR's semantics per dtype.

Integers are signless: they are stored signed and viewed as unsigned where the op says so; i1 is `bool` and takes part
in arithmetic as 0/1, or 0/-1 where an op is signed.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from xdsl.dialects.builtin import IntegerAttr
from xdsl.ir import Operation

from fuseline.evaluation import special
from fuseline.evaluation.program import Array, Scope, evaluates, failure
from fuseline.ir.build import element_of
from fuseline.ir.element_types import numpy_dtype

Function = Callable[..., Any]


def signed(a: Array) -> Array:
    """An integer value as a signed one; i1 `true` is -1."""
    return -np.asarray(a).astype(np.int8) if a.dtype.kind == "b" else a


def unsigned(a: Array) -> Array:
    """An integer value as an unsigned one of the same width; i1 `true` is 1."""
    if a.dtype.kind == "b":
        return a.astype(np.uint8)
    return a.view(f"u{a.dtype.itemsize}")


def _register(table: dict[str, Function], view: Callable[[Array], Array] | None) -> None:
    """Register elementwise functions whose result has the dtype of the op's result type."""
    for name, function in table.items():
        evaluates(name)(_elementwise(function, view))


def _elementwise(
    function: Function, view: Callable[[Array], Array] | None
) -> Callable[[Operation, Scope], list[Array]]:
    def handler(op: Operation, scope: Scope) -> list[Array]:
        operands = [scope[value] for value in op.operands]
        if view is not None:
            operands = [view(operand) for operand in operands]
        return [as_type(function(*operands), scope.program.dtype(op.results[0].type))]

    return handler


def as_type(value: Any, dtype: np.dtype[Any]) -> Array:
    """`value` stored as `dtype`: bits are kept between integers of one width, wider ones wrap, i1 takes the lowest
    bit."""
    if value.dtype == dtype:
        return value
    if dtype.kind == "b" and value.dtype.kind in "iu":
        return (value & 1).astype(bool)
    return value.astype(dtype)


def _truncating_quotient(a: Array, b: Array) -> Array:
    return (a - np.fmod(a, b)) // b


def _ceiling_quotient(a: Array, b: Array) -> Array:
    quotient = a // b
    return quotient + (quotient * b != a).astype(quotient.dtype)


def _shift(shift: Function) -> Function:
    """A shift whose result is defined (0) where the amount reaches the width, which MLIR leaves open."""

    def shifted(a: Array, b: Array) -> Array:
        width = a.dtype.itemsize * 8
        amount = unsigned(b)
        inside = amount < width
        return np.where(inside, shift(a, np.where(inside, amount, 0).astype(a.dtype)), a.dtype.type(0))

    return shifted


_register(
    {
        "arith.addf": np.add,
        "arith.subf": np.subtract,
        "arith.mulf": np.multiply,
        "arith.divf": np.divide,
        "arith.remf": np.fmod,
        "arith.negf": np.negative,
        "arith.maximumf": np.maximum,
        "arith.minimumf": np.minimum,
        "arith.maxnumf": np.fmax,
        "arith.minnumf": np.fmin,
        "math.absf": np.abs,
        "math.acos": np.arccos,
        "math.acosh": np.arccosh,
        "math.asin": np.arcsin,
        "math.asinh": np.arcsinh,
        "math.atan": np.arctan,
        "math.atan2": np.arctan2,
        "math.atanh": np.arctanh,
        "math.cbrt": np.cbrt,
        "math.ceil": np.ceil,
        "math.clampf": lambda a, low, high: np.minimum(np.maximum(a, low), high),
        "math.copysign": np.copysign,
        "math.cos": np.cos,
        "math.cosh": np.cosh,
        "math.erf": special.erf,
        "math.exp": np.exp,
        "math.exp2": np.exp2,
        "math.expm1": np.expm1,
        "math.floor": np.floor,
        "math.fma": special.fused_multiply_add,
        "math.fpowi": lambda a, b: np.power(a, b.astype(a.dtype)),
        "math.isfinite": np.isfinite,
        "math.isinf": np.isinf,
        "math.isnan": np.isnan,
        "math.log": np.log,
        "math.log10": np.log10,
        "math.log1p": np.log1p,
        "math.log2": np.log2,
        "math.powf": np.power,
        "math.round": special.round_half_away,
        "math.roundeven": np.rint,
        "math.rsqrt": lambda a: a.dtype.type(1) / np.sqrt(a),
        "math.sin": np.sin,
        "math.sinh": np.sinh,
        "math.sqrt": np.sqrt,
        "math.tan": np.tan,
        "math.tanh": np.tanh,
        "math.trunc": np.trunc,
        "arith.extf": lambda a: a,
        "arith.truncf": lambda a: a,
        "arith.select": lambda c, a, b: np.where(c, a, b),
    },
    None,
)

_register(
    {
        "arith.divsi": _truncating_quotient,
        "arith.remsi": np.fmod,
        "arith.floordivsi": np.floor_divide,
        "arith.ceildivsi": _ceiling_quotient,
        "arith.maxsi": np.maximum,
        "arith.minsi": np.minimum,
        "arith.shrsi": _shift(np.right_shift),
        "arith.extsi": lambda a: a,
        "arith.sitofp": lambda a: a,
        "arith.index_cast": lambda a: a,
        "math.absi": np.abs,
        "math.ipowi": special.integer_power,
    },
    signed,
)

_register(
    {
        "arith.addi": np.add,
        "arith.subi": np.subtract,
        "arith.muli": np.multiply,
        "arith.andi": np.bitwise_and,
        "arith.ori": np.bitwise_or,
        "arith.xori": np.bitwise_xor,
        "arith.shli": _shift(np.left_shift),
        "arith.divui": np.floor_divide,
        "arith.remui": np.remainder,
        "arith.ceildivui": _ceiling_quotient,
        "arith.maxui": np.maximum,
        "arith.minui": np.minimum,
        "arith.shrui": _shift(np.right_shift),
        "arith.extui": lambda a: a,
        "arith.trunci": lambda a: a,
        "arith.uitofp": lambda a: a,
        "arith.index_castui": lambda a: a,
        "math.ctlz": special.leading_zeros,
        "math.cttz": special.trailing_zeros,
        "math.ctpop": np.bitwise_count,
    },
    unsigned,
)


@evaluates("arith.fptosi", "arith.fptoui")
def float_to_integer(op: Operation, scope: Scope) -> list[Array]:
    """Rounds toward zero. What no integer is (NaN, out of range; MLIR leaves it open) becomes what x86 compilers make
    of it: the lowest signed one of 32 or 64 bits, of which narrower ones take the low bits; unsigned ones from half
    their range on are converted less that half."""
    value, dtype = np.asarray(scope[op.operands[0]]), scope.program.dtype(op.results[0].type)
    bits = max(8 * dtype.itemsize, 32)
    halves = op.name == "arith.fptoui" and 8 * dtype.itemsize == bits
    middle, lowest = 2.0 ** (bits - 1), -(1 << (bits - 1))
    upper = (value >= middle) & halves
    low = np.trunc(np.where(upper, value - middle, value))
    fits = (low >= -middle) & (low < middle)
    whole = np.where(fits, np.where(fits, low, 0).astype(np.int64), lowest)
    return [as_type(np.where(upper, whole ^ lowest, whole), dtype)]


@evaluates("arith.bitcast", "tensor.bitcast")
def bitcast(op: Operation, scope: Scope) -> list[Array]:
    """Same bits, other type; floats held as float64 take their own width first."""
    source, result = numpy_dtype(element_of(op.operands[0])), numpy_dtype(element_of(op.results[0]))
    value = np.asarray(scope[op.operands[0]]).astype(source).view(result)
    return [value.astype(scope.program.dtype(op.results[0].type))]


def _predicate(op: Operation) -> int:
    predicate = op.properties.get("predicate")
    if not isinstance(predicate, IntegerAttr):
        raise failure(op, "the comparison has no predicate")
    return predicate.value.data


_ORDERS: tuple[Function, ...] = (np.equal, np.not_equal, np.less, np.less_equal, np.greater, np.greater_equal)


@evaluates("arith.cmpi")
def compare_integers(op: Operation, scope: Scope) -> list[Array]:
    """eq, ne, then slt sle sgt sge, then ult ule ugt uge."""
    predicate = _predicate(op)
    view, order = (signed, _ORDERS[predicate]) if predicate < 6 else (unsigned, _ORDERS[predicate - 4])
    return [order(view(scope[op.operands[0]]), view(scope[op.operands[1]]))]


_FLOAT_ORDERS: dict[int, Function] = {
    1: np.equal,
    2: np.greater,
    3: np.greater_equal,
    4: np.less,
    5: np.less_equal,
    6: np.not_equal,
}


@evaluates("arith.cmpf")
def compare_floats(op: Operation, scope: Scope) -> list[Array]:
    """false, the ordered predicates oeq..one, ord, then the unordered ueq..une, uno, true."""
    a, b, predicate = scope[op.operands[0]], scope[op.operands[1]], _predicate(op)
    unordered = np.isnan(a) | np.isnan(b)
    if predicate in (0, 15):
        return [np.full(np.shape(unordered), predicate == 15)[()]]
    if predicate in (7, 14):
        return [~unordered if predicate == 7 else unordered]
    if predicate < 7:
        return [_FLOAT_ORDERS[predicate](a, b) & ~unordered]
    return [_FLOAT_ORDERS[predicate - 7](a, b) | unordered]


@evaluates("arith.addui_extended")
def add_extended(op: Operation, scope: Scope) -> list[Array]:
    """The sum, and whether it carried."""
    a, b = (unsigned(scope[value]) for value in op.operands)
    total = a + b
    return [as_type(total, scope.program.dtype(op.results[0].type)), total < a]


@evaluates("arith.mulsi_extended", "arith.mului_extended")
def multiply_extended(op: Operation, scope: Scope) -> list[Array]:
    """The low and the high half of the product."""
    view = signed if op.name == "arith.mulsi_extended" else unsigned
    a, b = (np.asarray(view(scope[value])).astype(object) for value in op.operands)
    dtype = scope.program.dtype(op.results[0].type)
    width = dtype.itemsize * 8
    product = np.asarray(a * b)
    mask = (1 << width) - 1
    halves = (product & mask, (product >> width) & mask)
    return [np.asarray(half).astype(np.uint64).astype(f"u{dtype.itemsize}").view(dtype) for half in halves]
