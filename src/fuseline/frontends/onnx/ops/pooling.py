"""Poolings: a window operand of the window's shape gives the loops of the window, as in MLIR's named poolings."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from xdsl.dialects import arith
from xdsl.ir import SSAValue

from fuseline.frontends.onnx import scalars as s
from fuseline.frontends.onnx.dtypes import is_float, lowest, mlir_element
from fuseline.frontends.onnx.emission import elementwise, filled, mapped, reduce, reshape, result
from fuseline.frontends.onnx.node import OnnxNode
from fuseline.frontends.onnx.registry import onnx_op
from fuseline.frontends.onnx.tensors import NoNativeLowering, Tensor, static_size
from fuseline.frontends.onnx.windows import Window, pad_spatial, window_map, window_of
from fuseline.ir.build import PARALLEL, REDUCTION, Body, dims_map, element_of
from fuseline.ir.dim import product

Combine = Callable[[Body, SSAValue, SSAValue], SSAValue]


@onnx_op("MaxPool")
def max_pool(node: OnnxNode) -> Tensor:
    """The maximum in each window."""
    x = node[0]
    if node.wants_output(1):
        raise NoNativeLowering("indices-output", "the indices of the maxima")
    window = window_of(node, x.dims[2:], node.integers("kernel_shape"))
    start = lowest(x.dtype)
    return pool(node, pad_spatial(node, x, window, start), window, start, lambda b, e, acc: s.maximum(b, x.dtype, acc, e))


@onnx_op("AveragePool")
def average_pool(node: OnnxNode) -> Tensor:
    """The mean in each window; the padding counts only with `count_include_pad`."""
    x = node[0]
    window = window_of(node, x.dims[2:], node.integers("kernel_shape"))
    total = pool(node, pad_spatial(node, x, window, 0.0), window, 0.0, lambda b, e, acc: b.op(arith.AddfOp, acc, e))
    counts = _counts(node, window, x)
    if counts.size == 1 or (counts == counts.flat[0]).all():
        number = float(counts.flat[0])
        return elementwise(node, [total], x.dtype, lambda b, e: b.op(arith.DivfOp, e, b.constant(number, mlir_element(x.dtype))))
    divisor = Tensor(x.dtype, tuple(counts.shape), array=counts.astype(x.dtype), name="window_counts")
    spatial = list(range(2, x.rank))
    return mapped(node, [(total, list(range(x.rank))), (divisor, spatial)], total.dims, x.dtype, lambda b, e, c: b.op(arith.DivfOp, e, c))


def _counts(node: OnnxNode, window: Window, x: Tensor) -> np.ndarray:
    """How many elements each window averages."""
    if not window.padded:
        return np.array([float(np.prod(window.kernel))])
    if not all(isinstance(size, int) for size in x.dims[2:]):
        raise NoNativeLowering("symbolic-window", "an average over a padded symbolic size")
    given = node.integers("pads") or [0] * (2 * len(window.kernel))
    n = len(window.kernel)
    out = np.ones([1] * n)
    for axis in range(n):
        size, low = static_size(x.dims[2 + axis]), window.low[axis]
        first, last = (0, size) if not node.integer("count_include_pad") else (-low, size + max(given[n + axis], 0))
        starts = np.arange(static_size(window.out[axis])) * window.strides[axis] - low
        taps = starts[:, None] + np.arange(window.kernel[axis])[None, :] * window.dilations[axis]
        count = ((taps >= first) & (taps < last)).sum(axis=1).astype(float)
        out = out * count.reshape([-1 if i == axis else 1 for i in range(n)])
    return out


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
    axes = list(range(2, x.rank))
    count = product(x.dims[2:])
    if not isinstance(count, int):
        raise NoNativeLowering("symbolic-window", "the mean over a symbolic size")
    total = reduce(node, [x], axes, 0.0, lambda b, e, acc: b.op(arith.AddfOp, acc, e), dtype=x.dtype)
    element = mlir_element(x.dtype)
    mean = elementwise(node, [total], x.dtype, lambda b, e: b.op(arith.DivfOp, e, b.constant(float(count), element)))
    return reshape(node, mean, (*x.dims[:2], *(1 for _ in axes)))


@onnx_op("GlobalMaxPool")
def global_max_pool(node: OnnxNode) -> Tensor:
    """The maximum of each channel."""
    x = node[0]
    axes = list(range(2, x.rank))
    out = reduce(node, [x], axes, lowest(x.dtype), lambda b, e, acc: s.maximum(b, x.dtype, acc, e), dtype=x.dtype)
    return reshape(node, out, (*x.dims[:2], *(1 for _ in axes)))


@onnx_op("LpPool")
def lp_pool(node: OnnxNode) -> Tensor:
    """The p-norm in each window."""
    x, order = node[0], node.integer("p", 2)
    if not is_float(x.dtype):
        raise NoNativeLowering("unsupported-order", f"p = {order}")
    from xdsl.dialects import math

    window = window_of(node, x.dims[2:], node.integers("kernel_shape"))

    def combine(b: Body, e: SSAValue, acc: SSAValue) -> SSAValue:
        size = b.op(math.AbsFOp, e)
        if order > 2:
            size = b.op(math.PowFOp, size, b.constant(order, element_of(e)))
        return b.op(arith.AddfOp, acc, b.op(arith.MulfOp, e, e) if order == 2 else size)

    total = pool(node, pad_spatial(node, x, window, 0.0), window, 0.0, combine)
    if order == 1:
        return total
    root = (lambda b, e: b.op(math.SqrtOp, e)) if order == 2 else (lambda b, e: b.op(math.PowFOp, e, b.constant(1 / order, element_of(e))))
    return elementwise(node, [total], x.dtype, root)
