"""Where the largest and the smallest element of an axis is: ArgMax, ArgMin, Hardmax."""

from __future__ import annotations

from collections.abc import Sequence

from xdsl.dialects import arith
from xdsl.ir import SSAValue

from fuseline.frontends.onnx import scalars
from fuseline.frontends.onnx.dtypes import INDEX_DTYPE, highest, is_float, lowest, mlir_element
from fuseline.frontends.onnx.emission import (
    DType,
    elementwise,
    filled,
    reshape,
    result,
    with_units,
)
from fuseline.frontends.onnx.node import OnnxNode
from fuseline.frontends.onnx.registry import onnx_op
from fuseline.frontends.onnx.tensors import Tensor
from fuseline.ir.build import PARALLEL, REDUCTION, Body, dims_map
from fuseline.ir.dim import product


def arg_of(node: OnnxNode, x: Tensor, axis: int, *, largest: bool, last: bool) -> Tensor:
    """The position of the extreme along `axis` (first or last among equals), without that axis; NaN counts as the
    extreme."""
    kept = [a for a in range(x.rank) if a != axis]
    dims = [x.dims[a] for a in kept]
    best = filled(node, lowest(x.dtype) if largest else highest(x.dtype), dims, x.dtype)
    where = filled(node, 0, dims, INDEX_DTYPE)
    predicate = ("ge" if last else "gt") if largest else ("le" if last else "lt")
    floating = is_float(x.dtype)

    def body(b: Body) -> Sequence[SSAValue]:
        p, top, at = b.args
        here = b.op(arith.IndexCastOp, scalars.loop_index(b, axis), mlir_element(INDEX_DTYPE))
        better = scalars.compare(b, x.dtype, predicate, p, top)
        if floating:
            better = or_nan(b, x.dtype, better, p, top, last=last)
        return [scalars.select(b, better, p, top), scalars.select(b, better, here, at)]

    small = dims_map(x.rank, kept)
    iterators = [REDUCTION if a == axis else PARALLEL for a in range(x.rank)]
    op = node.emit.generic(
        [node.ssa(x)], [best, where], [dims_map(x.rank, list(range(x.rank))), small, small], iterators, body
    )
    return result(op.results[1], dims, INDEX_DTYPE)


def or_nan(b: Body, dtype: DType, better: SSAValue, p: SSAValue, top: SSAValue, *, last: bool) -> SSAValue:
    """`better`, but a NaN is the extreme, the first or the last of them (as in NumPy, which ONNX's reference uses;
    onnxruntime passes over NaN)."""
    either = b.op(arith.OrIOp, better, scalars.compare(b, dtype, "ne", p, p))
    return either if last else b.op(arith.AndIOp, either, scalars.compare(b, dtype, "eq", top, top))


@onnx_op("ArgMax")
@onnx_op("ArgMin")
def arg_extreme(node: OnnxNode) -> Tensor:
    """Positions of maxima or minima along an axis."""
    x = node[0]
    axis = node.axis("axis", 0, x.rank)
    out = arg_of(node, x, axis, largest=node.op_type == "ArgMax", last=bool(node.integer("select_last_index")))
    return with_units(out, [axis], x.rank) if node.integer("keepdims", 1) else out


@onnx_op("Hardmax", since=13)
def hardmax(node: OnnxNode) -> Tensor:
    """1 at the first maximum along an axis, else 0."""
    return _hardmax(node, node[0], node.axis("axis", -1, node[0].rank))


@onnx_op("Hardmax", since=1)
def hardmax_flat(node: OnnxNode) -> Tensor:
    """Before version 13: over all axes from `axis` on, together."""
    x = node[0]
    axis = node.axis("axis", 1, x.rank)
    matrix = reshape(node, x, (product(x.dims[:axis]), product(x.dims[axis:])))
    return reshape(node, _hardmax(node, matrix, 1), x.dims)


def _hardmax(node: OnnxNode, x: Tensor, axis: int) -> Tensor:
    best = with_units(arg_of(node, x, axis, largest=True, last=False), [axis], x.rank)
    element = mlir_element(x.dtype)

    def body(b: Body, p: SSAValue, at: SSAValue) -> SSAValue:
        here = b.op(arith.IndexCastOp, scalars.loop_index(b, axis), mlir_element(INDEX_DTYPE))
        return scalars.select(b, b.op(arith.CmpiOp, here, at, "eq"), b.constant(1, element), b.constant(0, element))

    return elementwise(node, [x, best], x.dtype, body)
