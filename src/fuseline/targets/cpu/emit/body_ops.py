"""Scalar ops of `arith` and `math` as kernel IR: one function per op, on scalars and vectors alike.

Results equal what the op means on each element: integer divisions never trap, shifts beyond the width give 0, f16 and
bf16 round after every op.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from xdsl.dialects import arith, math
from xdsl.dialects.builtin import IntegerAttr
from xdsl.ir import Attribute, Operation

from fuseline.errors import FuselineError
from fuseline.ir.scalar_ops import RemFOp
from fuseline.targets.cpu.emit import vector_math as vm
from fuseline.targets.cpu.emit.dtypes import dtype_of
from fuseline.targets.cpu.kernel_ir.builder import KernelBuilder
from fuseline.targets.cpu.kernel_ir.types import BITS, Operand, Value

K = KernelBuilder
Rule = Callable[..., Any]


def emit_scalar_op(kernel: KernelBuilder, op: Operation, operands: Sequence[Value]) -> Value:
    """The result of `op` on `operands` (vectors, or scalars where all lanes agree). Raises E0901 for an op that no body
    may hold."""
    conversion = _CONVERSIONS.get(type(op))
    if conversion is not None:
        return conversion(kernel, operands[0], dtype_of(op.results[0].type))
    rule = _RULES.get(type(op))
    if rule is None:
        raise FuselineError("E0901", f"the CPU target has no code for {op.name}")
    if isinstance(op, arith.CmpiOp | arith.CmpfOp):
        return _compare(kernel, op, operands)
    return _rounded(kernel, rule, operands, op.results[0].type)


def _rounded(kernel: KernelBuilder, rule: Rule, operands: Sequence[Value], type_: Attribute) -> Value:
    """f16 and bf16 are computed in f32 and rounded after each op."""
    narrow = [o.type.dtype in ("f16", "bf16") for o in operands]
    if not any(narrow):
        return rule(kernel, *operands)
    wide = [kernel.cast(o, "f32") if n else o for o, n in zip(operands, narrow, strict=True)]
    result = rule(kernel, *wide)
    return kernel.cast(result, dtype_of(type_)) if result.type.is_float else result


_FLOAT_PREDICATES = (
    "false",
    "oeq",
    "ogt",
    "oge",
    "olt",
    "ole",
    "one",
    "ord",
    "ueq",
    "ugt",
    "uge",
    "ult",
    "ule",
    "une",
    "uno",
    "true",
)
_INT_PREDICATES = ("eq", "ne", "slt", "sle", "sgt", "sge", "ult", "ule", "ugt", "uge")


def _compare(kernel: KernelBuilder, op: arith.CmpiOp | arith.CmpfOp, operands: Sequence[Value]) -> Value:
    assert isinstance(op.predicate, IntegerAttr)
    number = op.predicate.value.data
    a, b = operands
    if isinstance(op, arith.CmpiOp):
        return kernel.compare(_INT_PREDICATES[number], a, b)
    name = _FLOAT_PREDICATES[number]
    if name in ("true", "false"):
        return kernel.const(int(name == "true"), "i1", max(a.type.lanes, b.type.lanes))
    if a.type.dtype in ("f16", "bf16"):
        a, b = kernel.cast(a, "f32"), kernel.cast(b, "f32")
    return kernel.compare(name, a, b)


# integers -------------------------------------------------------------------------------------------------------------


def _safe_divisor(kernel: KernelBuilder, a: Value, b: Value, *, signed: bool) -> Value:
    """`b`, or 1 where dividing by it would trap."""
    if b.op == "const" and isinstance(b.attr, int) and b.attr not in (0, -1):
        return b
    bad = kernel.compare("eq", b, kernel.const(0, *b.type))
    if signed:
        lowest = kernel.const(-(1 << (BITS[a.type.dtype] - 1)), *a.type)
        overflow = kernel.bitand(kernel.compare("eq", a, lowest), kernel.compare("eq", b, kernel.const(-1, *b.type)))
        bad = kernel.bitor(*_same_lanes(kernel, bad, overflow))
    return kernel.select(bad, kernel.const(1, *b.type), b)


def _same_lanes(kernel: KernelBuilder, a: Value, b: Value) -> tuple[Value, Value]:
    lanes = max(a.type.lanes, b.type.lanes)
    return kernel.splat(a, lanes), kernel.splat(b, lanes)


def _divsi(k: K, a: Value, b: Value) -> Value:
    return k.sdiv(a, _safe_divisor(k, a, b, signed=True))


def _remsi(k: K, a: Value, b: Value) -> Value:
    return k.srem(a, _safe_divisor(k, a, b, signed=True))


def _divui(k: K, a: Value, b: Value) -> Value:
    return k.as_value(k.div(a, _safe_divisor(k, a, b, signed=False)))


def _remui(k: K, a: Value, b: Value) -> Value:
    return k.as_value(k.rem(a, _safe_divisor(k, a, b, signed=False)))


def _floordivsi(k: K, a: Value, b: Value) -> Value:
    """One less than the truncated quotient where a rest remains and the signs differ."""
    return _away_from_truncated(k, a, b, "lt", k.sub)


def _ceildivsi(k: K, a: Value, b: Value) -> Value:
    """One more where a rest remains and the signs are the same."""
    return _away_from_truncated(k, a, b, "ge", k.add)


def _away_from_truncated(k: K, a: Value, b: Value, signs: str, step: Callable[[Value, Value], Operand]) -> Value:
    """The truncated quotient, a step further where a rest remains and the exclusive or of both sides is `signs` 0."""
    b = _safe_divisor(k, a, b, signed=True)
    quotient, rest = k.sdiv(a, b), k.srem(a, b)
    zero = k.const(0, *rest.type)
    further = k.bitand(k.compare("ne", rest, zero), k.compare(signs, k.xor(a, b), zero))
    return k.select(further, k.as_value(step(quotient, k.const(1, *quotient.type))), quotient)


def _ceildivui(k: K, a: Value, b: Value) -> Value:
    b = _safe_divisor(k, a, b, signed=False)
    quotient, rest = k.div(a, b), k.rem(a, b)
    more = k.compare("ne", rest, k.const(0, *rest.type))
    return k.as_value(k.add(quotient, k.cast(more, quotient.type.dtype)))


def _shift(name: str) -> Rule:
    def rule(k: K, a: Value, b: Value) -> Value:
        if b.op == "const" and isinstance(b.attr, int) and 0 <= b.attr < BITS[a.type.dtype]:
            return k.combine(name, a, b)
        width = k.const(BITS[a.type.dtype], *b.type)
        inside = k.compare("ult", b, width)
        shifted = k.combine(name, a, k.select(inside, b, k.const(0, *b.type)))
        return k.select(inside, shifted, k.const(0, *shifted.type))

    return rule


def _unsigned_extreme(name: str) -> Rule:
    return lambda k, a, b: k.combine(name, a, b)


def _signed_extreme(name: str) -> Rule:
    def rule(k: K, a: Value, b: Value) -> Value:
        if a.type.dtype == "i1":  # true is -1
            return k.combine({"min": "bitor", "max": "bitand"}[name], a, b)
        return k.as_value(k.combine(name, a, b))

    return rule


def _integer(name: str, on_bits: str) -> Rule:
    """A wrapping operation; on i1 it is one on bits."""

    def rule(k: K, a: Value, b: Value) -> Value:
        return k.as_value(k.combine(on_bits if a.type.dtype == "i1" else name, a, b))

    return rule


# floats ---------------------------------------------------------------------------------------------------------------


def _plain(name: str) -> Rule:
    return lambda k, *operands: getattr(k, name)(*operands)


def _maxnum(k: K, a: Value, b: Value) -> Value:
    """The larger, or the one that is a number."""
    largest = k.max(a, b)
    return largest if k.is_number(b) else k.select(k.compare("uno", b, b), a, largest)


def _minnum(k: K, a: Value, b: Value) -> Value:
    smallest = k.min(a, b)
    return smallest if k.is_number(b) else k.select(k.compare("uno", b, b), a, smallest)


def _select(k: K, condition: Value, a: Value, b: Value) -> Value:
    return k.as_value(k.select(condition, a, b))


_RULES: dict[type[Operation], Rule] = {
    arith.AddfOp: _plain("add"),
    arith.SubfOp: _plain("sub"),
    arith.MulfOp: _plain("mul"),
    arith.DivfOp: _plain("div"),
    arith.NegfOp: _plain("neg"),
    RemFOp: vm.fmod,
    arith.MaximumfOp: _plain("maximum"),
    arith.MinimumfOp: _plain("minimum"),
    arith.MaxnumfOp: _maxnum,
    arith.MinnumfOp: _minnum,
    arith.CmpfOp: _compare,
    arith.CmpiOp: _compare,
    arith.SelectOp: _select,
    arith.AddiOp: _integer("add", "xor"),
    arith.SubiOp: _integer("sub", "xor"),
    arith.MuliOp: _integer("mul", "bitand"),
    arith.DivSIOp: _divsi,
    arith.DivUIOp: _divui,
    arith.RemSIOp: _remsi,
    arith.RemUIOp: _remui,
    arith.FloorDivSIOp: _floordivsi,
    arith.CeilDivSIOp: _ceildivsi,
    arith.CeilDivUIOp: _ceildivui,
    arith.AndIOp: _plain("bitand"),
    arith.OrIOp: _plain("bitor"),
    arith.XOrIOp: _plain("xor"),
    arith.ShLIOp: _shift("shl"),
    arith.ShRUIOp: _shift("lshr"),
    arith.ShRSIOp: _shift("ashr"),
    arith.MaxSIOp: _signed_extreme("max"),
    arith.MinSIOp: _signed_extreme("min"),
    arith.MaxUIOp: _unsigned_extreme("umax"),
    arith.MinUIOp: _unsigned_extreme("umin"),
    math.AbsFOp: _plain("abs"),
    math.AbsIOp: _plain("abs"),
    math.SqrtOp: _plain("sqrt"),
    math.FloorOp: _plain("floor"),
    math.CeilOp: _plain("ceil"),
    math.RoundEvenOp: _plain("rint"),
    math.TruncOp: _plain("trunc"),
    math.FmaOp: _plain("fma"),
    math.RoundOp: vm.round_half_away,
    math.RsqrtOp: vm.rsqrt,
    math.CopySignOp: vm.copysign,
    math.ExpOp: vm.exp,
    math.Exp2Op: vm.exp2,
    math.ExpM1Op: vm.expm1,
    math.LogOp: vm.log,
    math.Log2Op: vm.log2,
    math.Log10Op: vm.log10,
    math.Log1pOp: vm.log1p,
    math.ErfOp: vm.erf,
    math.TanhOp: vm.tanh,
    math.SinOp: vm.sin,
    math.CosOp: vm.cos,
    math.TanOp: vm.tan,
    math.AsinOp: vm.asin,
    math.AcosOp: vm.acos,
    math.AtanOp: vm.atan,
    math.Atan2Op: vm.atan2,
    math.SinhOp: vm.sinh,
    math.CoshOp: vm.cosh,
    math.AsinhOp: vm.asinh,
    math.AcoshOp: vm.acosh,
    math.AtanhOp: vm.atanh,
    math.CbrtOp: vm.cbrt,
    math.PowFOp: vm.power,
    math.FPowIOp: vm.power_of_integer,
    math.IPowIOp: vm.integer_power,
    math.CountLeadingZerosOp: _plain("leading_zeros"),
    math.CountTrailingZerosOp: _plain("trailing_zeros"),
    math.CtPopOp: _plain("count_ones"),
}


def _sign_extended(k: KernelBuilder, a: Value, dtype: str) -> Any:
    """An integer in another width; truth is -1."""
    return k.sub(k.const(0, dtype, a.type.lanes), k.cast(a, dtype)) if a.type.dtype == "i1" else k.cast(a, dtype)


def _truncated(k: KernelBuilder, a: Value, dtype: str) -> Any:
    """The low bits."""
    return k.cast(k.bitand(a, k.const(1, *a.type)), dtype) if dtype == "i1" else k.cast(a, dtype)


_CONVERSIONS: dict[type[Operation], Callable[[KernelBuilder, Value, str], Any]] = {
    arith.ExtFOp: lambda k, a, t: k.cast(a, t),
    arith.TruncFOp: lambda k, a, t: k.cast(a, t),
    arith.ExtSIOp: _sign_extended,
    arith.ExtUIOp: lambda k, a, t: k.cast(a, t, unsigned=True),
    arith.TruncIOp: _truncated,
    arith.SIToFPOp: lambda k, a, t: k.neg(k.cast(a, t)) if a.type.dtype == "i1" else k.cast(a, t),
    arith.UIToFPOp: lambda k, a, t: k.cast(a, t, unsigned=True),
    arith.FPToSIOp: lambda k, a, t: k.cast(a, t),
    arith.FPToUIOp: lambda k, a, t: k.cast(a, t, unsigned=True),
    arith.IndexCastOp: lambda k, a, t: _truncated(k, a, t) if t == "i1" else _sign_extended(k, a, t),
    arith.BitcastOp: lambda k, a, t: k.bitcast(a, t),
}
