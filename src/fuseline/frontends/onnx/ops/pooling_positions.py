"""MaxPool with the places of its maxima, and MaxUnpool, which puts values back there.

A place is a number among all elements of the tensor, in row-major order (or, with `storage_order` 1, column-major
within a channel); the padding is not counted. Each tap of a window computes its own, so that the maximum and its place
are one reduction with two results.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from xdsl.dialects import arith
from xdsl.ir import SSAValue

from fuseline.frontends.onnx import scalars as s
from fuseline.frontends.onnx.dtypes import INDEX_DTYPE, is_float, lowest, mlir_element
from fuseline.frontends.onnx.emission import filled, reshape, result
from fuseline.frontends.onnx.node import OnnxNode
from fuseline.frontends.onnx.ops.arg_extremes import or_nan
from fuseline.frontends.onnx.ops.computed_positions import Positions, scattered_at
from fuseline.frontends.onnx.ops.indexing import position
from fuseline.frontends.onnx.ops.windows import Window, pad_spatial, window_map, window_of
from fuseline.frontends.onnx.registry import onnx_op
from fuseline.frontends.onnx.tensors import NoNativeLowering, Tensor
from fuseline.ir.build import PARALLEL, REDUCTION, Body, dims_map
from fuseline.ir.dim import Dim, add, mul, product, sub


@dataclass(frozen=True)
class _Counting:
    """How places of a tensor of `dims` are counted: how far the next one is along each axis."""

    steps: tuple[SSAValue, ...]

    def number(self, b: Body, at: Sequence[SSAValue]) -> SSAValue:
        """The number of the element at `at`."""
        total = s.index_constant(b, 0)
        for coordinate, step in zip(at, self.steps, strict=True):
            total = b.op(arith.AddiOp, total, b.op(arith.MuliOp, coordinate, step))
        return b.op(arith.IndexCastOp, total, mlir_element(INDEX_DTYPE))


def _counting(node: OnnxNode, dims: Sequence[Dim]) -> _Counting:
    columns = bool(node.integer("storage_order"))
    image = list(range(2, len(dims)))
    inner = {axis: image[: axis - 2] if columns else image[axis - 1 :] for axis in image}
    steps = [product(dims[1:]), product(dims[2:]), *(product(dims[other] for other in inner[axis]) for axis in image)]
    return _Counting(tuple(node.index(step) for step in steps))


def max_pool_with_positions(node: OnnxNode) -> list[Tensor]:
    """The maximum in each window and its place: the first of equals. What is no number is the maximum, as without
    places.

    Loops: batch, channel, positions | window.
    """
    x = node[0]
    window = window_of(node, x.dims[2:], node.integers("kernel_shape"))
    n, start = len(window.kernel), lowest(x.dtype)
    rank, out, inside = 2 + 2 * n, list(range(2, 2 + n)), list(range(2 + n, 2 + 2 * n))
    dims = (*x.dims[:2], *window.out)
    shape, small = node.emit.empty(mlir_element(x.dtype), window.kernel), dims_map(rank, [0, 1, *out])
    maps = [window_map(rank, [0, 1], out, inside, window), dims_map(rank, inside), small, small]
    starts = [filled(node, start, dims, x.dtype), filled(node, -1, dims, INDEX_DTYPE)]
    operands = [node.ssa(pad_spatial(node, x, window, start)), shape]
    body = _better_of(node, x, window)
    op = node.emit.generic(operands, starts, maps, [PARALLEL] * (2 + n) + [REDUCTION] * n, body)
    return [result(op.results[0], dims, x.dtype), result(op.results[1], dims, INDEX_DTYPE)]


def _better_of(node: OnnxNode, x: Tensor, window: Window) -> Callable[[Body], list[SSAValue]]:
    """A body that keeps the larger element and its place, and the first one inside the image whatever it is."""
    counting, sizes, lows = (
        _counting(node, x.dims),
        [node.index(size) for size in x.dims[2:]],
        [node.index(low) for low in window.low],
    )
    beside = [
        axis for axis, (low, high) in enumerate(zip(window.low, window.high, strict=True)) if low != 0 or high != 0
    ]
    element_type = mlir_element(INDEX_DTYPE)

    def body(b: Body) -> list[SSAValue]:
        element, _, best, winner = b.args
        at = _tapped(b, window, lows)
        first = s.compare(b, INDEX_DTYPE, "lt", winner, b.constant(0, element_type))
        for axis in beside:
            first = b.op(
                arith.AndIOp, first, b.op(arith.CmpiOp, at[2 + axis], sizes[axis], "ult")
            )  # what is below 0 is large without a sign
        better = s.compare(b, x.dtype, "gt", element, best)
        if is_float(x.dtype):
            better = or_nan(b, x.dtype, better, element, best, last=False)
        better = b.op(arith.OrIOp, first, better)
        return [s.select(b, better, element, best), s.select(b, better, counting.number(b, at), winner)]

    return body


def _tapped(b: Body, window: Window, lows: Sequence[SSAValue]) -> list[SSAValue]:
    """The coordinates in the image of an element of a window."""
    at = [s.loop_index(b, 0), s.loop_index(b, 1)]
    for axis, (stride, step, low) in enumerate(zip(window.strides, window.dilations, lows, strict=True)):
        start = b.op(arith.SubiOp, b.op(arith.MuliOp, s.loop_index(b, 2 + axis), s.index_constant(b, stride)), low)
        tap = b.op(arith.MuliOp, s.loop_index(b, 2 + len(lows) + axis), s.index_constant(b, step))
        at.append(b.op(arith.AddiOp, start, tap))
    return at


@onnx_op("MaxUnpool", since=9)
def max_unpool(node: OnnxNode) -> Tensor:
    """Zeros, with each value at its place, a number among all elements of the result."""
    x, indices = node[0], node[1]
    dims = _unpooled(node, x)
    flat = _zeros(node, product(dims), x)
    count = product(x.dims)
    at, values = reshape(node, indices, (count,)), reshape(node, x, (count,))
    positions = Positions(0, flat.dims[0], [at], lambda b, element: position(node, b, element, indices, flat.dims[0]))
    return reshape(node, scattered_at(node, flat, positions, values, "none"), dims)


def _zeros(node: OnnxNode, count: Dim, like: Tensor) -> Tensor:
    return result(filled(node, 0, (count,), like.dtype), (count,), like.dtype)


def _unpooled(node: OnnxNode, x: Tensor) -> tuple[Dim, ...]:
    wanted, kernel = node.get(2), node.integers("kernel_shape")
    if wanted is not None:
        return tuple(wanted.sizes())
    n = len(kernel)
    if x.rank != n + 2:
        raise NoNativeLowering("unsupported-rank", f"rank {x.rank} with a window of {n} axes")
    strides, pads = node.integers("strides") or [1] * n, node.integers("pads") or [0] * (2 * n)
    sizes = [
        add(mul(sub(size, 1), stride), k - a - z)
        for size, stride, k, a, z in zip(x.dims[2:], strides, kernel, pads[:n], pads[n:], strict=True)
    ]
    return (*x.dims[:2], *sizes)
