"""Reductions over axes, and what is computed from them: softmax, arg-max, cumulative sums."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
from xdsl.dialects import arith, math
from xdsl.ir import SSAValue

from fuseline.frontends.onnx import scalars
from fuseline.frontends.onnx.dtypes import INDEX_DTYPE, accumulator, highest, is_float, is_half, lowest, mlir_element
from fuseline.frontends.onnx.emission import (
    FLOAT32,
    DType,
    cast,
    elementwise,
    filled,
    reduce,
    result,
    with_units,
)
from fuseline.frontends.onnx.node import OnnxNode, normal_axis
from fuseline.frontends.onnx.ops.counts import count_divided
from fuseline.frontends.onnx.registry import onnx_op
from fuseline.frontends.onnx.tensors import Tensor, view
from fuseline.ir.build import Body

Prologue = Callable[[Body, SSAValue, DType], SSAValue]


def _axes(node: OnnxNode, rank: int) -> list[int] | None:
    """The axes to reduce, sorted; None for none at all (`noop_with_empty_axes`)."""
    given = node.ints_or_input("axes", 1)
    if not given:
        return None if node.integer("noop_with_empty_axes", 0) else list(range(rank))
    return sorted({normal_axis(axis, rank) for axis in given})


def _plain(b: Body, x: SSAValue, dtype: DType) -> SSAValue:
    return x


def _square(b: Body, x: SSAValue, dtype: DType) -> SSAValue:
    return scalars.mul(b, dtype, x, x)


def _magnitude(b: Body, x: SSAValue, dtype: DType) -> SSAValue:
    if dtype.kind == "u":
        return x
    return b.op(math.AbsFOp if is_float(dtype) else math.AbsIOp, x)


def sum_of(
    node: OnnxNode, x: Tensor, axes: Sequence[int], prologue: Prologue = _plain, *, dtype: DType | None = None
) -> Tensor:
    """The sum of `prologue(x)` over `axes` in `dtype` (default: the accumulator's type), without the reduced
    dimensions."""
    wide = accumulator(x.dtype) if dtype is None else dtype

    def body(b: Body, p: SSAValue, acc: SSAValue) -> SSAValue:
        return scalars.add(b, wide, acc, prologue(b, scalars.convert(b, p, x.dtype, wide), wide))

    return reduce(node, [x], axes, 0, body, dtype=wide)


def mean_of(node: OnnxNode, x: Tensor, axes: Sequence[int], *, keep: bool) -> Tensor:
    """The mean over `axes`. A sum of integers is kept in 64 bits: it may leave the type that the mean is in."""
    total = sum_of(node, x, axes, dtype=INDEX_DTYPE if x.dtype.kind in "iu" and x.dtype.itemsize < 8 else None)
    small = cast(node, count_divided(node, total, [x.dims[axis] for axis in axes]), x.dtype)
    return with_units(small, axes, x.rank) if keep else small


def _finish(node: OnnxNode, small: Tensor, x: Tensor, axes: Sequence[int]) -> Tensor:
    small = cast(node, small, x.dtype)
    return with_units(small, axes, x.rank) if node.integer("keepdims", 1) else small


def _summing(op_type: str, prologue: Prologue, epilogue: Any = None) -> None:
    @onnx_op(op_type)
    def lower(node: OnnxNode) -> Tensor:
        x = node[0]
        axes = _axes(node, x.rank)
        wide = None if epilogue is None else _summed_in(x.dtype)
        if axes is None:
            return _pointwise(node, x, prologue, epilogue, wide or x.dtype)
        total = sum_of(node, x, axes, prologue, dtype=wide)
        return _finish(node, total if epilogue is None else _float_unary(node, total, epilogue), x, axes)


def _summed_in(dtype: DType) -> DType:
    """Where the sum is that a float function is applied to: of integers in f64 as in onnxruntime, for it may leave the
    type that the result is in."""
    return accumulator(dtype) if is_float(dtype) else np.dtype(np.float64)


def _float_unary(node: OnnxNode, t: Tensor, kind: Any) -> Tensor:
    inner = t.dtype if is_float(t.dtype) and not is_half(t.dtype) else FLOAT32
    return elementwise(
        node,
        [t],
        t.dtype,
        lambda b, p: scalars.convert(b, b.op(kind, scalars.convert(b, p, t.dtype, inner)), inner, t.dtype),
    )


def _pointwise(node: OnnxNode, x: Tensor, prologue: Prologue, epilogue: Any, wide: DType) -> Tensor:
    """A reduction over no axes still applies its function to every element, in `wide`."""
    if prologue is _plain and epilogue is None:
        return x
    out = elementwise(node, [x], wide, lambda b, p: prologue(b, scalars.convert(b, p, x.dtype, wide), wide))
    return cast(node, out if epilogue is None else _float_unary(node, out, epilogue), x.dtype)


for _name, _prologue, _epilogue in (
    ("ReduceSum", _plain, None),
    ("ReduceSumSquare", _square, None),
    ("ReduceL1", _magnitude, None),
    ("ReduceL2", _square, math.SqrtOp),
    ("ReduceLogSum", _plain, math.LogOp),
):
    _summing(_name, _prologue, _epilogue)


@onnx_op("ReduceMean")
def reduce_mean(node: OnnxNode) -> Tensor:
    """The mean over axes."""
    x = node[0]
    axes = _axes(node, x.rank)
    return x if axes is None else mean_of(node, x, axes, keep=bool(node.integer("keepdims", 1)))


def _folding(op_type: str, start: Callable[[DType], float | int], scalar: Any) -> None:
    @onnx_op(op_type)
    def lower(node: OnnxNode) -> Tensor:
        x = node[0]
        axes = _axes(node, x.rank)
        if axes is None:
            return x
        return _finish(
            node,
            reduce(node, [x], axes, start(x.dtype), lambda b, p, acc: scalar(b, x.dtype, acc, p), dtype=x.dtype),
            x,
            axes,
        )


for _name, _start, _scalar in (
    ("ReduceMax", lowest, scalars.maximum),
    ("ReduceMin", highest, scalars.minimum),
    ("ReduceProd", lambda dtype: 1, scalars.mul),
):
    _folding(_name, _start, _scalar)


@onnx_op("ReduceLogSumExp")
def reduce_log_sum_exp(node: OnnxNode) -> Tensor:
    """`log(sum(e**x))`, shifted by the maximum."""
    x = cast(node, node[0], FLOAT32 if is_half(node[0].dtype) else _summed_in(node[0].dtype))
    axes = _axes(node, x.rank)
    if axes is None:
        return node[0]
    top = _finite(
        node,
        reduce(node, [x], axes, lowest(x.dtype), lambda b, p, acc: scalars.maximum(b, x.dtype, acc, p), dtype=x.dtype),
    )
    shifted = exp_shifted(node, x, with_units(top, axes, x.rank))
    total = sum_of(node, shifted, axes)
    out = elementwise(node, [total, top], x.dtype, lambda b, p, q: b.op(arith.AddfOp, b.op(math.LogOp, p), q))
    return _finish(node, out, node[0], axes)


def _finite(node: OnnxNode, t: Tensor) -> Tensor:
    """Infinite shifts replaced by 0, so that `inf - inf` does not arise."""
    element = mlir_element(t.dtype)

    def body(b: Body, p: SSAValue) -> SSAValue:
        size = b.op(math.AbsFOp, p)
        return scalars.select(
            b, scalars.compare(b, t.dtype, "eq", size, b.constant(float("inf"), element)), b.constant(0.0, element), p
        )

    return elementwise(node, [t], t.dtype, body)


def exp_shifted(node: OnnxNode, x: Tensor, shift: Tensor) -> Tensor:
    """`e**(x - shift)`."""
    return elementwise(node, [x, shift], x.dtype, lambda b, p, q: b.op(math.ExpOp, b.op(arith.SubfOp, p, q)))


@onnx_op("CumSum")
@onnx_op("CumProd")
def cumulative(node: OnnxNode) -> Tensor:
    """Sums (products) of all elements up to each along an axis: a reduction over the lower (or upper) triangle."""
    x = node[0]
    axis = normal_axis(int(node[1].numbers().reshape(-1)[0]), x.rank)
    exclusive, reverse = bool(node.integer("exclusive")), bool(node.integer("reverse"))
    product_ = node.op_type == "CumProd"
    if x.dims[axis] == 1:
        return x if not exclusive else result(filled(node, 1 if product_ else 0, x.dims, x.dtype), x.dims, x.dtype)
    wide = accumulator(x.dtype)
    element = mlir_element(wide)
    predicate = ("sgt" if exclusive else "sge") if not reverse else ("slt" if exclusive else "sle")
    start = 1 if product_ else 0

    def body(b: Body, p: SSAValue, acc: SSAValue) -> SSAValue:
        inside = b.op(arith.CmpiOp, scalars.loop_index(b, axis), scalars.loop_index(b, x.rank), predicate)
        value = scalars.select(b, inside, scalars.convert(b, p, x.dtype, wide), b.constant(start, element))
        return (scalars.mul if product_ else scalars.add)(b, wide, acc, value)

    loops = [x.rank if a == axis else a for a in range(x.rank)]
    dims = (*x.dims, x.dims[axis])
    spread = view(x, dims, loops)
    return cast(node, reduce(node, [spread], [x.rank], start, body, dtype=wide), x.dtype)


@onnx_op("LpNormalization")
def lp_normalization(node: OnnxNode) -> Tensor:
    """Divided by the 1- or 2-norm along an axis; 0 where the norm is 0."""
    x = node[0]
    axis, power = node.axis("axis", -1, x.rank), node.integer("p", 2)
    norm = sum_of(node, x, [axis], _square if power == 2 else _magnitude)
    if power == 2:
        norm = elementwise(node, [norm], norm.dtype, lambda b, p: b.op(math.SqrtOp, p))
    element = mlir_element(norm.dtype)

    def body(b: Body, p: SSAValue, q: SSAValue) -> SSAValue:
        value = b.op(arith.DivfOp, scalars.convert(b, p, x.dtype, norm.dtype), q)
        zero = scalars.compare(b, norm.dtype, "eq", q, b.constant(0.0, element))
        return scalars.convert(b, scalars.select(b, zero, b.constant(0.0, element), value), norm.dtype, x.dtype)

    return elementwise(node, [x, with_units(norm, [axis], x.rank)], x.dtype, body)
