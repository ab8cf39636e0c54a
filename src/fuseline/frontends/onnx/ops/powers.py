"""Powers of elements: of floats to floats and to integers, of integers, to small constant exponents."""

from __future__ import annotations

import numpy as np
from xdsl.dialects import arith, math
from xdsl.dialects.builtin import i1
from xdsl.ir import SSAValue

from fuseline.frontends.onnx import scalars as s
from fuseline.frontends.onnx.dtypes import is_float
from fuseline.frontends.onnx.emission import cast, elementwise
from fuseline.frontends.onnx.node import OnnxNode
from fuseline.frontends.onnx.ops.elementwise import DType
from fuseline.frontends.onnx.registry import onnx_op
from fuseline.frontends.onnx.tensors import NoNativeLowering, Tensor
from fuseline.ir.build import Body


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
