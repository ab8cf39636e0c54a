"""Softmax and its logarithm, along one axis or over all from an axis on."""

from __future__ import annotations

from collections.abc import Sequence

from xdsl.dialects import arith, math
from xdsl.ir import SSAValue

from fuseline.frontends.onnx import scalars as s
from fuseline.frontends.onnx.dtypes import accumulator, is_float, lowest
from fuseline.frontends.onnx.emission import (
    cast,
    elementwise,
    reduce,
)
from fuseline.frontends.onnx.node import OnnxNode
from fuseline.frontends.onnx.registry import onnx_op
from fuseline.frontends.onnx.scalars import add_float
from fuseline.frontends.onnx.tensors import NoNativeLowering, Tensor
from fuseline.ir.build import Body


def _add_exponential(b: Body, element: SSAValue, peak: SSAValue, accumulator: SSAValue) -> SSAValue:
    return add_float(b, b.op(math.ExpOp, b.op(arith.SubfOp, element, peak)), accumulator)


@onnx_op("Softmax", since=13)
def softmax(node: OnnxNode) -> Tensor:
    """exp(x) / sum of exp(x) along an axis; the maximum is subtracted first."""
    return softmax_along(node, node[0], [node.axis("axis", -1, node[0].rank)])


@onnx_op("Softmax", since=1)
def softmax_flat(node: OnnxNode) -> Tensor:
    """Before version 13: over all axes from `axis` on."""
    axis = node.axis("axis", 1, node[0].rank)
    return softmax_along(node, node[0], list(range(axis, node[0].rank)))


@onnx_op("LogSoftmax", since=13)
def log_softmax(node: OnnxNode) -> Tensor:
    """The logarithm of softmax, computed without dividing."""
    return softmax_along(node, node[0], [node.axis("axis", -1, node[0].rank)], log=True)


@onnx_op("LogSoftmax", since=1)
def log_softmax_flat(node: OnnxNode) -> Tensor:
    """Before version 13: over all axes from `axis` on."""
    axis = node.axis("axis", 1, node[0].rank)
    return softmax_along(node, node[0], list(range(axis, node[0].rank)), log=True)


def softmax_along(node: OnnxNode, x: Tensor, axes: Sequence[int], *, log: bool = False) -> Tensor:
    """Softmax (or its logarithm) over `axes`."""
    if not is_float(x.dtype):
        raise NoNativeLowering("unsupported-dtype", x.dtype.name)
    dtype = accumulator(x.dtype)
    wide = cast(node, x, dtype)
    peak = reduce(
        node, [wide], axes, lowest(dtype), lambda b, e, acc: s.maximum(b, dtype, acc, e), dtype=dtype, keep=True
    )
    shifted = [wide, peak]
    if log:
        total = reduce(node, shifted, axes, 0.0, _add_exponential, dtype=dtype, keep=True)
        rest = elementwise(node, [total], dtype, lambda b, t: b.op(math.LogOp, t))
        out = elementwise(
            node, [*shifted, rest], dtype, lambda b, e, m, t: b.op(arith.SubfOp, b.op(arith.SubfOp, e, m), t)
        )
        return cast(node, out, x.dtype)
    powers = elementwise(node, shifted, dtype, lambda b, e, m: b.op(math.ExpOp, b.op(arith.SubfOp, e, m)))
    total = reduce(node, [powers], axes, 0.0, add_float, dtype=dtype, keep=True)
    return cast(node, elementwise(node, [powers, total], dtype, lambda b, e, t: b.op(arith.DivfOp, e, t)), x.dtype)
