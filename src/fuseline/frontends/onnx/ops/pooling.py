"""Poolings: a window operand of the window's shape gives the loops of the window, as in MLIR's named poolings."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np
from xdsl.dialects import arith, math
from xdsl.dialects.builtin import i64
from xdsl.ir import SSAValue

from fuseline.frontends.onnx import scalars as s
from fuseline.frontends.onnx.dtypes import INDEX_DTYPE, is_float, lowest, mlir_element
from fuseline.frontends.onnx.emission import elementwise, filled, mapped, reduce, reshape, result
from fuseline.frontends.onnx.node import OnnxNode
from fuseline.frontends.onnx.ops.counts import count_divided
from fuseline.frontends.onnx.ops.pooling_positions import max_pool_with_positions
from fuseline.frontends.onnx.ops.reduction import mean_of
from fuseline.frontends.onnx.ops.windows import Window, pad_spatial, window_map, window_of
from fuseline.frontends.onnx.registry import onnx_op
from fuseline.frontends.onnx.tensors import NoNativeLowering, Tensor, static_size, static_sizes
from fuseline.ir.build import PARALLEL, REDUCTION, Body, dims_map, element_of
from fuseline.ir.dim import Dim, add, mul

Combine = Callable[[Body, SSAValue, SSAValue], SSAValue]


@onnx_op("MaxPool")
def max_pool(node: OnnxNode) -> Tensor | list[Tensor]:
    """The maximum in each window, and its place where it is asked for."""
    x = node[0]
    if node.wants_output(1):
        return max_pool_with_positions(node)
    window = window_of(node, x.dims[2:], node.integers("kernel_shape"))
    start = lowest(x.dtype)
    return pool(
        node, pad_spatial(node, x, window, start), window, start, lambda b, e, acc: s.maximum(b, x.dtype, acc, e)
    )


@onnx_op("AveragePool", in_f32=True)
def average_pool(node: OnnxNode) -> Tensor:
    """The mean in each window; the padding counts only with `count_include_pad`."""
    x = node[0]
    window = window_of(node, x.dims[2:], node.integers("kernel_shape"))
    total = pool(node, pad_spatial(node, x, window, 0.0), window, 0.0, lambda b, e, acc: b.op(arith.AddfOp, acc, e))
    if not window.padded:
        return count_divided(node, total, window.kernel)
    if not all(isinstance(size, int) for size in (*x.dims[2:], *window.low, *window.high)):
        return _divided_where_it_stands(node, total, window, x.dims[2:])
    counts = _counts(node, window, static_sizes(x.dims[2:]))
    alike = np.unique(counts)
    if alike.size <= 1:  # none where there is no window
        return count_divided(node, total, [int(count) for count in alike])
    divisor = Tensor(x.dtype, tuple(counts.shape), array=counts.astype(x.dtype), name="window_counts")
    spatial = list(range(2, x.rank))
    return mapped(
        node,
        [(total, list(range(x.rank))), (divisor, spatial)],
        total.dims,
        x.dtype,
        lambda b, e, c: b.op(arith.DivfOp, e, c),
    )


def _counted(node: OnnxNode, window: Window, axis: int, size: Dim) -> tuple[Dim, Dim]:
    """The first position along an axis that counts, and the one behind the last."""
    return (
        (mul(window.low[axis], -1), add(size, window.explicit_high[axis]))
        if node.integer("count_include_pad")
        else (0, size)
    )


def _counts(node: OnnxNode, window: Window, image: Sequence[int]) -> np.ndarray:
    """How many elements each window averages."""
    out = np.ones([1] * len(image))
    for axis, size in enumerate(image):
        first, last = static_sizes(_counted(node, window, axis, size))
        starts = np.arange(static_size(window.out[axis])) * window.strides[axis] - static_size(window.low[axis])
        taps = starts[:, None] + np.arange(window.kernel[axis])[None, :] * window.dilations[axis]
        count = ((taps >= first) & (taps < last)).sum(axis=1).astype(float)
        out = out * count.reshape([-1 if i == axis else 1 for i in range(len(image))])
    return out


def _divided_where_it_stands(node: OnnxNode, total: Tensor, window: Window, image: Sequence[Dim]) -> Tensor:
    """Around symbolic sizes the number of elements is computed with each window."""
    if any(step != 1 for step in window.dilations):
        raise NoNativeLowering("symbolic-window", "an average over a dilated window in a padded symbolic size")
    ends = [
        tuple(node.index(size) for size in (window.low[axis], *_counted(node, window, axis, image[axis])))
        for axis in range(len(image))
    ]

    def body(b: Body, e: SSAValue) -> SSAValue:
        for axis, (low, first, last) in enumerate(ends):
            start = b.op(
                arith.SubiOp,
                b.op(arith.MuliOp, s.loop_index(b, 2 + axis), s.index_constant(b, window.strides[axis])),
                low,
            )
            end = b.op(arith.MinSIOp, b.op(arith.AddiOp, start, s.index_constant(b, window.kernel[axis])), last)
            count = b.op(arith.IndexCastOp, b.op(arith.SubiOp, end, b.op(arith.MaxSIOp, start, first)), i64)
            e = b.op(arith.DivfOp, e, s.convert(b, count, INDEX_DTYPE, total.dtype))
        return e

    return elementwise(node, [total], total.dtype, body)


def pool(node: OnnxNode, x: Tensor, window: Window, start: float | int, combine: Combine) -> Tensor:
    """Loops: batch, channel, positions | window. `combine(b, element, accumulator)`."""
    n = len(window.kernel)
    rank = 2 + 2 * n
    out, inside = list(range(2, 2 + n)), list(range(2 + n, rank))
    dims = (*x.dims[:2], *window.out)
    shape = node.emit.empty(mlir_element(x.dtype), window.kernel)
    maps = [window_map(rank, [0, 1], out, inside, window), dims_map(rank, inside), dims_map(rank, [0, 1, *out])]
    iterators = [PARALLEL] * (2 + n) + [REDUCTION] * n

    def body(b: Body) -> list[SSAValue]:
        return [combine(b, b.args[0], b.args[2])]

    op = node.emit.generic([node.ssa(x), shape], [filled(node, start, dims, x.dtype)], maps, iterators, body)
    return result(op.results[0], dims, x.dtype)


@onnx_op("GlobalAveragePool")
def global_average_pool(node: OnnxNode) -> Tensor:
    """The mean of each channel."""
    x = node[0]
    return mean_of(node, x, range(2, x.rank), keep=True)


@onnx_op("GlobalMaxPool")
def global_max_pool(node: OnnxNode) -> Tensor:
    """The maximum of each channel."""
    x = node[0]
    axes = list(range(2, x.rank))
    out = reduce(node, [x], axes, lowest(x.dtype), lambda b, e, acc: s.maximum(b, x.dtype, acc, e), dtype=x.dtype)
    return reshape(node, out, (*x.dims[:2], *(1 for _ in axes)))


@onnx_op("LpPool", in_f32=True)
def lp_pool(node: OnnxNode) -> Tensor:
    """The p-norm in each window."""
    x, order = node[0], _order(node)
    window = window_of(node, x.dims[2:], node.integers("kernel_shape"))
    total = pool(node, pad_spatial(node, x, window, 0.0), window, 0.0, _adding_powers(order))
    return _root(node, total, order)


@onnx_op("GlobalLpPool", in_f32=True)
def global_lp_pool(node: OnnxNode) -> Tensor:
    """The p-norm of each channel."""
    x, order = node[0], _order(node)
    total = reduce(node, [x], list(range(2, x.rank)), 0.0, _adding_powers(order), dtype=x.dtype, keep=True)
    return _root(node, total, order)


def _order(node: OnnxNode) -> int:
    order = node.number("p", 2)  # a float before version 2
    if not is_float(node[0].dtype) or order < 1 or not order.is_integer():
        raise NoNativeLowering("unsupported-order", f"p = {order:g}")
    return int(order)


def _adding_powers(order: int) -> Combine:
    """Adds the magnitude of an element to the power of `order`."""

    def combine(b: Body, e: SSAValue, acc: SSAValue) -> SSAValue:
        size = b.op(math.AbsFOp, e)
        if order > 2:
            size = b.op(math.PowFOp, size, b.constant(order, element_of(e)))
        return b.op(arith.AddfOp, acc, b.op(arith.MulfOp, e, e) if order == 2 else size)

    return combine


def _root(node: OnnxNode, total: Tensor, order: int) -> Tensor:
    """The root of `order` of sums of powers."""

    def root(b: Body, e: SSAValue) -> SSAValue:
        return b.op(math.SqrtOp, e) if order == 2 else b.op(math.PowFOp, e, b.constant(1 / order, element_of(e)))

    return total if order == 1 else elementwise(node, [total], total.dtype, root)
