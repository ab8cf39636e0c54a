"""Operators that compute each element from the elements at the same place."""

from __future__ import annotations

import math as pymath
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
from xdsl.dialects import arith, math
from xdsl.dialects.builtin import i1
from xdsl.ir import SSAValue

from fuseline.frontends.onnx import scalars as s
from fuseline.frontends.onnx.dtypes import from_onnx, is_float, is_unsigned, mlir_element
from fuseline.frontends.onnx.emission import BOOL, cast, elementwise
from fuseline.frontends.onnx.node import OnnxNode
from fuseline.frontends.onnx.registry import onnx_op
from fuseline.frontends.onnx.tensors import NoNativeLowering, Tensor, known
from fuseline.ir.build import Body

DType = np.dtype[Any]
Scalar = Callable[[Body, DType, SSAValue], SSAValue]


def constant(b: Body, dtype: DType, value: float | int) -> SSAValue:
    """A number of the operand's type."""
    return b.constant(value, mlir_element(dtype))


def unary(node: OnnxNode, body: Scalar, *, float_only: bool = False) -> Tensor:
    """`body` on every element of the first input."""
    x = node[0]
    if float_only and not is_float(x.dtype):
        raise NoNativeLowering("unsupported-dtype", x.dtype.name)
    return elementwise(node, [x], x.dtype, lambda b, e: body(b, x.dtype, e))


def _math(kind: Callable[[SSAValue], Any]) -> Scalar:
    return lambda b, dtype, x: b.op(kind, x)


_FLOAT_UNARY: dict[str, Scalar] = {
    "Exp": _math(math.ExpOp),
    "Log": _math(math.LogOp),
    "Sqrt": _math(math.SqrtOp),
    "Sin": _math(math.SinOp),
    "Cos": _math(math.CosOp),
    "Tan": _math(math.TanOp),
    "Tanh": _math(math.TanhOp),
    "Erf": _math(math.ErfOp),
    "Floor": _math(math.FloorOp),
    "Ceil": _math(math.CeilOp),
    "Round": _math(math.RoundEvenOp),
    "Reciprocal": lambda b, t, x: b.op(arith.DivfOp, constant(b, t, 1.0), x),
}

_COMPOSED: dict[str, Scalar] = {
    "Sigmoid": lambda b, t, x: sigmoid(b, t, x),
    "Softplus": lambda b, t, x: softplus(b, t, x),
    "Softsign": lambda b, t, x: b.op(arith.DivfOp, x, b.op(arith.AddfOp, constant(b, t, 1.0), b.op(math.AbsFOp, x))),
    "Mish": lambda b, t, x: b.op(arith.MulfOp, x, b.op(math.TanhOp, softplus(b, t, x))),
    "HardSwish": lambda b, t, x: b.op(arith.MulfOp, x, hard_sigmoid(b, t, x, 1 / 6, 0.5)),
}


def _register_unary(name: str, body: Scalar) -> None:
    onnx_op(name, in_f32=name in _COMPOSED)(lambda node: unary(node, body, float_only=True))


for _name, _body in {**_FLOAT_UNARY, **_COMPOSED}.items():
    _register_unary(_name, _body)


def sigmoid(b: Body, t: DType, x: SSAValue) -> SSAValue:
    """`1 / (1 + exp(-x))`, below 0 as `exp(x) / (1 + exp(x))`: an exponential of what is never positive cannot
    overflow, and takes less time."""
    one = constant(b, t, 1.0)
    tail = b.op(math.ExpOp, b.op(arith.NegfOp, b.op(math.AbsFOp, x)))
    share = b.op(arith.SelectOp, s.compare(b, t, "lt", x, constant(b, t, 0.0)), tail, one)
    return b.op(arith.DivfOp, share, b.op(arith.AddfOp, one, tail))


def softplus(b: Body, t: DType, x: SSAValue) -> SSAValue:
    """`log(1 + exp(x))`, as max(x, 0) + log(1 + exp(-|x|)) so that it does not overflow."""
    tail = b.op(math.ExpOp, b.op(arith.NegfOp, b.op(math.AbsFOp, x)))
    return b.op(arith.AddfOp, b.op(arith.MaximumfOp, x, constant(b, t, 0.0)), _log_of_one_and(b, t, tail))


def _log_of_one_and(b: Body, t: DType, x: SSAValue) -> SSAValue:
    """`log(1 + x)` for x in 0..1, as good for small x, too: what 1 + x loses of x is added to first order."""
    whole = b.op(arith.AddfOp, constant(b, t, 1.0), x)
    lost = b.op(arith.SubfOp, x, b.op(arith.SubfOp, whole, constant(b, t, 1.0)))
    return b.op(arith.AddfOp, b.op(math.LogOp, whole), b.op(arith.DivfOp, lost, whole))


def hard_sigmoid(b: Body, t: DType, x: SSAValue, alpha: float, beta: float) -> SSAValue:
    """`max(0, min(1, alpha * x + beta))`."""
    line = b.op(arith.AddfOp, b.op(arith.MulfOp, x, constant(b, t, alpha)), constant(b, t, beta))
    return b.op(arith.MaximumfOp, b.op(arith.MinimumfOp, line, constant(b, t, 1.0)), constant(b, t, 0.0))


def _positive(b: Body, t: DType, x: SSAValue) -> SSAValue:
    return s.compare(b, t, "gt", x, constant(b, t, 0))


@onnx_op("Identity")
def identity(node: OnnxNode) -> Tensor:
    """The input itself."""
    return node[0]


@onnx_op("Relu")
def relu(node: OnnxNode) -> Tensor:
    """`max(x, 0)`."""
    return unary(node, lambda b, t, x: s.maximum(b, t, x, constant(b, t, 0)))


@onnx_op("Neg")
def negate(node: OnnxNode) -> Tensor:
    """`-x`."""
    return unary(node, lambda b, t, x: b.op(arith.NegfOp, x) if is_float(t) else s.sub(b, t, constant(b, t, 0), x))


@onnx_op("Abs")
def absolute(node: OnnxNode) -> Tensor:
    """`|x|`."""

    def body(b: Body, t: DType, x: SSAValue) -> SSAValue:
        if is_float(t):
            return b.op(math.AbsFOp, x)
        return x if is_unsigned(t) else s.maximum(b, t, x, s.sub(b, t, constant(b, t, 0), x))

    return unary(node, body)


@onnx_op("Sign")
def sign(node: OnnxNode) -> Tensor:
    """-1, 0 or 1."""

    def body(b: Body, t: DType, x: SSAValue) -> SSAValue:
        zero, one = constant(b, t, 0), constant(b, t, 1)
        positive = s.select(b, s.compare(b, t, "gt", x, zero), one, x if is_float(t) else zero)
        if is_unsigned(t):
            return positive
        return s.select(b, s.compare(b, t, "lt", x, zero), constant(b, t, -1), positive)

    return unary(node, body)


@onnx_op("LeakyRelu", in_f32=True)
def leaky_relu(node: OnnxNode) -> Tensor:
    """x, or alpha * x below 0."""
    alpha = node.number("alpha", 0.01)
    return unary(
        node,
        lambda b, t, x: s.select(b, _positive(b, t, x), x, b.op(arith.MulfOp, x, constant(b, t, alpha))),
        float_only=True,
    )


def _exp_minus_one(b: Body, t: DType, x: SSAValue) -> SSAValue:
    return b.op(arith.SubfOp, b.op(math.ExpOp, x), constant(b, t, 1.0))


@onnx_op("Elu", in_f32=True)
def elu(node: OnnxNode) -> Tensor:
    """x, or alpha * (exp(x) - 1) below 0."""
    alpha = node.number("alpha", 1.0)
    return unary(
        node,
        lambda b, t, x: s.select(
            b, _positive(b, t, x), x, b.op(arith.MulfOp, constant(b, t, alpha), _exp_minus_one(b, t, x))
        ),
        float_only=True,
    )


@onnx_op("Selu", in_f32=True)
def selu(node: OnnxNode) -> Tensor:
    """gamma * elu(x)."""
    alpha, gamma = node.number("alpha", 1.67326319217681884765625), node.number("gamma", 1.05070102214813232421875)

    def body(b: Body, t: DType, x: SSAValue) -> SSAValue:
        below = b.op(arith.MulfOp, constant(b, t, alpha), _exp_minus_one(b, t, x))
        return b.op(arith.MulfOp, constant(b, t, gamma), s.select(b, _positive(b, t, x), x, below))

    return unary(node, body, float_only=True)


@onnx_op("Celu", in_f32=True)
def celu(node: OnnxNode) -> Tensor:
    """max(0, x) + min(0, alpha * (exp(x / alpha) - 1))."""
    alpha = node.number("alpha", 1.0)

    def body(b: Body, t: DType, x: SSAValue) -> SSAValue:
        zero = constant(b, t, 0.0)
        below = b.op(
            arith.MulfOp, constant(b, t, alpha), _exp_minus_one(b, t, b.op(arith.DivfOp, x, constant(b, t, alpha)))
        )
        return b.op(arith.AddfOp, b.op(arith.MaximumfOp, x, zero), b.op(arith.MinimumfOp, below, zero))

    return unary(node, body, float_only=True)


@onnx_op("ThresholdedRelu", in_f32=True)
def thresholded_relu(node: OnnxNode) -> Tensor:
    """x above alpha, else 0."""
    alpha = node.number("alpha", 1.0)
    return unary(
        node,
        lambda b, t, x: s.select(b, s.compare(b, t, "gt", x, constant(b, t, alpha)), x, constant(b, t, 0.0)),
        float_only=True,
    )


@onnx_op("Shrink", in_f32=True)
def shrink(node: OnnxNode) -> Tensor:
    """x + bias below -lambd, x - bias above lambd, else 0."""
    bias, lambd = node.number("bias"), node.number("lambd", 0.5)

    def body(b: Body, t: DType, x: SSAValue) -> SSAValue:
        high = s.select(
            b, s.compare(b, t, "gt", x, constant(b, t, lambd)), s.sub(b, t, x, constant(b, t, bias)), constant(b, t, 0)
        )
        return s.select(b, s.compare(b, t, "lt", x, constant(b, t, -lambd)), s.add(b, t, x, constant(b, t, bias)), high)

    return unary(node, body, float_only=True)


@onnx_op("HardSigmoid", in_f32=True)
def hard_sigmoid_op(node: OnnxNode) -> Tensor:
    """`max(0, min(1, alpha * x + beta))`."""
    alpha, beta = node.number("alpha", 0.2), node.number("beta", 0.5)
    return unary(node, lambda b, t, x: hard_sigmoid(b, t, x, alpha, beta), float_only=True)


@onnx_op("Gelu", in_f32=True)
def gelu(node: OnnxNode) -> Tensor:
    """x * Phi(x), exact (erf) or with tanh."""
    if node.text("approximate", "none") == "tanh":
        return unary(node, _gelu_tanh, float_only=True)
    return unary(node, _gelu_erf, float_only=True)


def _gelu_erf(b: Body, t: DType, x: SSAValue) -> SSAValue:
    inner = b.op(math.ErfOp, b.op(arith.MulfOp, x, constant(b, t, pymath.sqrt(0.5))))
    return b.op(
        arith.MulfOp, b.op(arith.MulfOp, x, constant(b, t, 0.5)), b.op(arith.AddfOp, inner, constant(b, t, 1.0))
    )


def _gelu_tanh(b: Body, t: DType, x: SSAValue) -> SSAValue:
    cube = b.op(arith.MulfOp, b.op(arith.MulfOp, x, x), b.op(arith.MulfOp, x, constant(b, t, 0.044715)))
    inner = b.op(
        math.TanhOp, b.op(arith.MulfOp, constant(b, t, pymath.sqrt(2 / pymath.pi)), b.op(arith.AddfOp, x, cube))
    )
    return b.op(
        arith.MulfOp, b.op(arith.MulfOp, x, constant(b, t, 0.5)), b.op(arith.AddfOp, inner, constant(b, t, 1.0))
    )


@onnx_op("Not")
def logical_not(node: OnnxNode) -> Tensor:
    """Negation of a bool."""
    return unary(node, lambda b, t, x: b.op(arith.XOrIOp, x, b.constant(1, mlir_element(BOOL))))


@onnx_op("BitwiseNot")
def bitwise_not(node: OnnxNode) -> Tensor:
    """All bits flipped."""
    return unary(node, lambda b, t, x: b.op(arith.XOrIOp, x, constant(b, t, -1)))


@onnx_op("IsNaN")
def is_nan(node: OnnxNode) -> Tensor:
    """Whether each element is NaN."""
    x = node[0]
    return elementwise(node, [x], BOOL, lambda b, e: b.op(arith.CmpfOp, e, e, "uno"))


@onnx_op("IsInf")
def is_inf(node: OnnxNode) -> Tensor:
    """Whether each element is infinite, of the wanted signs."""
    x = node[0]
    signs = [sign for name, sign in (("detect_negative", -1), ("detect_positive", 1)) if node.integer(name, 1)]

    def body(b: Body, e: SSAValue) -> SSAValue:
        found = [b.op(arith.CmpfOp, e, constant(b, x.dtype, sign * pymath.inf), "oeq") for sign in signs]
        return (
            found[0] if len(found) == 1 else b.op(arith.OrIOp, *found) if found else b.constant(0, mlir_element(BOOL))
        )

    return elementwise(node, [x], BOOL, body)


@onnx_op("Cast")
def cast_op(node: OnnxNode) -> Tensor:
    """Elements as another type."""
    import onnx_ir as ir

    wanted = ir.DataType(node.integer("to"))
    from fuseline.frontends.onnx.dtypes import holds

    if not holds(wanted):
        raise NoNativeLowering("unsupported-dtype", wanted.name)
    return cast(node, node[0], from_onnx(wanted), asked=True)


@onnx_op("CastLike")
def cast_like(node: OnnxNode) -> Tensor:
    """Elements as the type of the second input."""
    x, dtype = node[0], node[1].dtype
    if x.is_constant and is_float(x.dtype) and is_float(dtype):
        return known(x.numbers().astype(dtype), name=x.name)
    return cast(node, x, dtype, asked=True)


# -- two and more operands ---------------------------------------------------------------------------------------------


def _binary(node: OnnxNode, body: Callable[[Body, DType, SSAValue, SSAValue], SSAValue]) -> Tensor:
    a, c = _alike(node, [node[0], node[1]])
    return elementwise(node, [a, c], a.dtype, lambda b, x, y: body(b, a.dtype, x, y))


def _alike(node: OnnxNode, operands: Sequence[Tensor]) -> list[Tensor]:
    """Operands of one type: function bodies mix an input's type with f32 and int64 constants, which counts as in
    NumPy."""
    dtypes = {t.dtype for t in operands}
    return list(operands) if len(dtypes) == 1 else [cast(node, t, np.result_type(*dtypes)) for t in operands]


for _name, _arith in {"Add": s.add, "Sub": s.sub, "Mul": s.mul, "Div": s.div}.items():
    onnx_op(_name, since=7)(lambda node, body=_arith: _binary(node, body))


@onnx_op("Mod")
def modulo(node: OnnxNode) -> Tensor:
    """The remainder: with the sign of the divisor (fmod=0), or of the dividend."""

    def body(b: Body, t: DType, x: SSAValue, y: SSAValue) -> SSAValue:
        rest = s.rem(b, t, x, y)
        if node.integer("fmod") or is_unsigned(t):
            return rest
        zero = constant(b, t, 0)
        differ = _signs_differ(b, t, rest, y, zero)
        moved = s.select(b, b.op(arith.AndIOp, s.compare(b, t, "ne", rest, zero), differ), s.add(b, t, rest, y), rest)
        if not is_float(t):
            return moved
        return s.select(b, s.compare(b, t, "eq", rest, zero), b.op(math.CopySignOp, rest, y), moved)

    return _binary(node, body)


def _signs_differ(b: Body, t: DType, x: SSAValue, y: SSAValue, zero: SSAValue) -> SSAValue:
    if is_float(t):
        return b.op(arith.XOrIOp, s.compare(b, t, "lt", x, zero), s.compare(b, t, "lt", y, zero))
    return s.compare(b, t, "lt", b.op(arith.XOrIOp, x, y), zero)


@onnx_op("Pow", since=7, in_f32=True)
def power(node: OnnxNode) -> Tensor:
    """x to the power y; small constant exponents become products."""
    a, c = node[0], node[1]
    exponent = float(c.numbers().reshape(-1)[0]) if c.is_scalar_constant else None
    if exponent in (2.0, 3.0, 1.0) and c.rank <= a.rank:
        return elementwise(node, [a], a.dtype, lambda b, x: _product(b, a.dtype, x, int(exponent or 1)))
    if not is_float(a.dtype):
        return _integer_power(node, a, c)
    if exponent == 0.5:
        return elementwise(node, [a], a.dtype, lambda b, x: b.op(math.SqrtOp, x))
    if c.dtype.kind in "iu" and not (
        c.is_constant and bool((c.numbers().astype(a.dtype).astype(c.dtype) == c.numbers()).all())
    ):
        return _power_of_whole(node, a, c)
    return elementwise(node, [a, cast(node, c, a.dtype)], a.dtype, lambda b, x, y: b.op(math.PowFOp, x, y))


def _power_of_whole(node: OnnxNode, a: Tensor, c: Tensor) -> Tensor:
    """A power of floats to integers: whether one is odd, and so the sign, is lost where a float does not hold it."""

    def body(b: Body, x: SSAValue, y: SSAValue) -> SSAValue:
        size = b.op(math.PowFOp, b.op(math.AbsFOp, x), s.convert(b, y, c.dtype, a.dtype))
        odd = b.op(arith.TruncIOp, y, i1)
        return s.select(b, odd, b.op(math.CopySignOp, size, x), size)

    return elementwise(node, [a, c], a.dtype, body)


def _integer_power(node: OnnxNode, a: Tensor, c: Tensor) -> Tensor:
    if not (a.dtype.kind == c.dtype.kind == "i"):  # others are powers of floats, truncated: they must be exact
        raise NoNativeLowering("unsupported-dtype", f"{a.dtype.name} to the power {c.dtype.name}")
    wide = np.result_type(a.dtype, c.dtype)
    return cast(
        node,
        elementwise(node, [cast(node, a, wide), cast(node, c, wide)], wide, lambda b, x, y: b.op(math.IPowIOp, x, y)),
        a.dtype,
    )


def _product(b: Body, t: DType, x: SSAValue, count: int) -> SSAValue:
    out = x
    for _ in range(count - 1):
        out = s.mul(b, t, out, x)
    return out


for _name, _predicate in {
    "Equal": "eq",
    "Less": "lt",
    "Greater": "gt",
    "LessOrEqual": "le",
    "GreaterOrEqual": "ge",
}.items():

    @onnx_op(_name, since=7)
    def _compare(node: OnnxNode, predicate: str = _predicate) -> Tensor:
        a, c = _alike(node, [node[0], node[1]])
        return elementwise(node, [a, c], BOOL, lambda b, x, y: s.compare(b, a.dtype, predicate, x, y))


for _name, _kind in {"And": arith.AndIOp, "Or": arith.OrIOp, "Xor": arith.XOrIOp}.items():
    for _full in (_name, f"Bitwise{_name}"):

        @onnx_op(_full, since=7)
        def _logical(node: OnnxNode, kind: Any = _kind) -> Tensor:
            a, c = node[0], node[1]
            return elementwise(node, [a, c], a.dtype, lambda b, x, y: b.op(kind, x, y))


@onnx_op("BitShift")
def bit_shift(node: OnnxNode) -> Tensor:
    """Shift by a number of bits; by the width or more (or a negative number) nothing of the value is left but, to the
    right, its sign."""
    left = node.text("direction") == "LEFT"

    def body(b: Body, t: DType, x: SSAValue, y: SSAValue) -> SSAValue:
        if not left and t.kind == "i":
            return b.op(arith.ShRSIOp, x, b.op(arith.MinUIOp, y, constant(b, t, t.itemsize * 8 - 1)))
        shifted = b.op(
            arith.ShLIOp if left else arith.ShRUIOp, x, b.op(arith.MinUIOp, y, constant(b, t, t.itemsize * 8 - 1))
        )
        return s.select(b, b.op(arith.CmpiOp, y, constant(b, t, t.itemsize * 8), "ult"), shifted, constant(b, t, 0))

    return _binary(node, body)


@onnx_op("PRelu", since=7)
def prelu(node: OnnxNode) -> Tensor:
    """x, or slope * x below 0."""
    return _binary(
        node, lambda b, t, x, y: s.select(b, s.compare(b, t, "lt", x, constant(b, t, 0)), s.mul(b, t, x, y), x)
    )


def _fold_inputs(node: OnnxNode, body: Callable[[Body, DType, SSAValue, SSAValue], SSAValue]) -> Tensor:
    inputs = _alike(node, node.present())
    dtype = inputs[0].dtype

    def fold(b: Body, *elements: SSAValue) -> SSAValue:
        out = elements[0]
        for element in elements[1:]:
            out = body(b, dtype, out, element)
        return out

    return elementwise(node, inputs, dtype, fold)


for _name, _fold in {"Sum": s.add, "Max": s.maximum, "Min": s.minimum}.items():
    onnx_op(_name, since=6, in_f32=_name == "Sum")(lambda node, body=_fold: _fold_inputs(node, body))


@onnx_op("Mean", since=6, in_f32=True)
def mean(node: OnnxNode) -> Tensor:
    """The mean of all inputs."""
    inputs = node.present()
    dtype = inputs[0].dtype

    def body(b: Body, *elements: SSAValue) -> SSAValue:
        out = elements[0]
        for element in elements[1:]:
            out = b.op(arith.AddfOp, out, element)
        return b.op(arith.DivfOp, out, constant(b, dtype, float(len(elements))))

    return elementwise(node, inputs, dtype, body)


@onnx_op("Where")
def where(node: OnnxNode) -> Tensor:
    """x where the condition holds, else y."""
    x, y = _alike(node, [node[1], node[2]])
    return elementwise(node, [node[0], x, y], x.dtype, s.select)


@onnx_op("Clip", since=6)
def clip_attributes(node: OnnxNode) -> Tensor:
    """Limits as attributes."""
    low = node.number("min") if node.has("min") else None
    high = node.number("max") if node.has("max") else None
    return _clip(node, low, high)


@onnx_op("Clip", since=11)
def clip(node: OnnxNode) -> Tensor:
    """Limits as inputs; either may be left out."""
    low, high = node.get(1), node.get(2)
    if all(limit is None or limit.is_scalar_constant for limit in (low, high)):
        numbers = [None if limit is None else limit.numbers().reshape(-1)[0].item() for limit in (low, high)]
        return _clip(node, *numbers)
    limits = [limit for limit in (low, high) if limit is not None]
    dtype = node[0].dtype

    def body(b: Body, x: SSAValue, *bounds: SSAValue) -> SSAValue:
        rest = list(bounds)
        if low is not None:
            x = s.maximum(b, dtype, x, rest.pop(0))
        return s.minimum(b, dtype, x, rest.pop(0)) if high is not None else x

    return elementwise(node, [node[0], *limits], dtype, body)


def _clip(node: OnnxNode, low: float | None, high: float | None) -> Tensor:
    def body(b: Body, t: DType, x: SSAValue) -> SSAValue:
        if low is not None:
            x = s.maximum(b, t, x, constant(b, t, low))
        return s.minimum(b, t, x, constant(b, t, high)) if high is not None else x

    return unary(node, body)
