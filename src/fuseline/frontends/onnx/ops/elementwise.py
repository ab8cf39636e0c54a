"""Operators that compute each element from the elements at the same place."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
from xdsl.dialects import arith, math
from xdsl.ir import SSAValue

from fuseline.frontends.onnx import scalars as s
from fuseline.frontends.onnx.dtypes import from_onnx, is_float, is_unsigned, mlir_element
from fuseline.frontends.onnx.emission import cast, elementwise
from fuseline.frontends.onnx.host_values import Value
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

for _name, _body in _FLOAT_UNARY.items():
    onnx_op(_name)(lambda node, body=_body: unary(node, body, float_only=True))


@onnx_op("Identity", of_sequences=True)
def identity(node: OnnxNode) -> Value:
    """The input itself."""
    return node.value(0)


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


@onnx_op("Cast", since=6)
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


def binary(node: OnnxNode, body: Callable[[Body, DType, SSAValue, SSAValue], SSAValue]) -> Tensor:
    """`body` on the elements of two inputs, in one type."""
    a, c = alike(node, [node[0], node[1]])
    return elementwise(node, [a, c], a.dtype, lambda b, x, y: body(b, a.dtype, x, y))


def alike(node: OnnxNode, operands: Sequence[Tensor]) -> list[Tensor]:
    """Operands of one type: function bodies mix an input's type with f32 and int64 constants, which counts as in
    NumPy."""
    dtypes = {t.dtype for t in operands}
    return list(operands) if len(dtypes) == 1 else [cast(node, t, np.result_type(*dtypes)) for t in operands]


for _name, _arith in {"Add": s.add, "Sub": s.sub, "Mul": s.mul, "Div": s.div}.items():
    onnx_op(_name, since=7)(lambda node, body=_arith: binary(node, body))


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

    return binary(node, body)


def _signs_differ(b: Body, t: DType, x: SSAValue, y: SSAValue, zero: SSAValue) -> SSAValue:
    if is_float(t):
        return b.op(arith.XOrIOp, s.compare(b, t, "lt", x, zero), s.compare(b, t, "lt", y, zero))
    return s.compare(b, t, "lt", b.op(arith.XOrIOp, x, y), zero)


@onnx_op("PRelu", since=7)
def prelu(node: OnnxNode) -> Tensor:
    """x, or slope * x below 0."""
    return binary(
        node, lambda b, t, x, y: s.select(b, s.compare(b, t, "lt", x, constant(b, t, 0)), s.mul(b, t, x, y), x)
    )


def _fold_inputs(node: OnnxNode, body: Callable[[Body, DType, SSAValue, SSAValue], SSAValue]) -> Tensor:
    inputs = alike(node, node.present())
    dtype = inputs[0].dtype

    def fold(b: Body, *elements: SSAValue) -> SSAValue:
        out = elements[0]
        for element in elements[1:]:
            out = body(b, dtype, out, element)
        return out

    return elementwise(node, inputs, dtype, fold)


for _name, _fold in {"Sum": s.add, "Max": s.maximum, "Min": s.minimum}.items():
    onnx_op(_name, in_f32=_name == "Sum")(lambda node, body=_fold: _fold_inputs(node, body))


@onnx_op("Mean", in_f32=True)
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


@onnx_op("Clip")
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
