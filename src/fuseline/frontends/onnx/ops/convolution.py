"""Convolutions, as structured ops over batch, channels, positions and the window."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from xdsl.dialects import arith
from xdsl.ir import SSAValue
from xdsl.ir.affine import AffineMap

from fuseline.errors import FuselineError
from fuseline.frontends.onnx.dtypes import accumulator
from fuseline.frontends.onnx.emission import cast, filled, mapped, multiply_add_body, reshape, result
from fuseline.frontends.onnx.node import OnnxNode
from fuseline.frontends.onnx.ops.windows import Window, pad_spatial, window_map, window_of
from fuseline.frontends.onnx.registry import onnx_op
from fuseline.frontends.onnx.tensors import NoNativeLowering, Tensor
from fuseline.ir.build import PARALLEL, REDUCTION, Body, dims_map
from fuseline.ir.dim import Dim, floor_div


@onnx_op("Conv")
def conv(node: OnnxNode) -> Tensor:
    """A convolution of any rank, grouped or not, with bias."""
    x, w = node[0], node[1]
    kernel = filter_sizes(w.dims[2:])
    window = window_of(node, x.dims[2:], kernel)
    padded = pad_spatial(node, x, window, 0)
    out = convolve(node, padded, w, window, node.integer("group", 1))
    return add_bias(node, out, node.get(2), x.dtype)


def add_bias(node: OnnxNode, x: Tensor, bias: Tensor | None, dtype: np.dtype[Any]) -> Tensor:
    """`x` plus one number per channel (axis 1), then as `dtype`. Raises FuselineError: E0107 for a bias that is no
    vector."""
    if bias is None:
        return cast(node, x, dtype)
    if bias.rank != 1:
        raise FuselineError("E0107", f"the bias has {bias.rank} dimensions, not one", node=node.label)

    def add(b: Body, e: SSAValue, c: SSAValue) -> SSAValue:
        return b.op(arith.AddfOp, e, c)

    operands = [(x, list(range(x.rank))), (cast(node, bias, x.dtype), [1])]
    return cast(node, mapped(node, operands, x.dims, x.dtype, add), dtype)


def filter_sizes(dims: Sequence[Dim]) -> tuple[int, ...]:
    """The extents of a window; raises NoNativeLowering where they are symbolic."""
    if not all(isinstance(size, int) for size in dims):
        raise NoNativeLowering("symbolic-window", "the filter's size is symbolic")
    return tuple(size for size in dims if isinstance(size, int))


def convolve(node: OnnxNode, x: Tensor, w: Tensor, window: Window, groups: int) -> Tensor:
    """The convolution of an image that is padded already, in the accumulator's type; without bias. `w` is `[out, in /
    groups, *window]`."""
    channels, filters = x.dims[1], w.dims[0]
    if groups == 1:
        return _plain(node, x, w, window)
    if channels == groups and w.dims[1] == 1 and filters == groups:
        return _depthwise(node, x, w, window)
    return _grouped(node, x, w, window, groups)


def _emit(
    node: OnnxNode,
    x: Tensor,
    w: Tensor,
    maps: tuple[AffineMap, AffineMap, AffineMap],
    dims: Sequence[Dim],
    reductions: int,
) -> Tensor:
    wide = accumulator(x.dtype)
    iterators = [PARALLEL] * len(dims) + [REDUCTION] * reductions
    body = multiply_add_body(x.dtype, w.dtype, wide)
    op = node.emit.generic([node.ssa(x), node.ssa(w)], [filled(node, 0, dims, wide)], maps, iterators, body)
    return result(op.results[0], dims, wide)


def _plain(node: OnnxNode, x: Tensor, w: Tensor, window: Window) -> Tensor:
    """Loops: batch, filter, positions | input channel, window."""
    n = len(window.kernel)
    rank = 3 + 2 * n
    out, inner, inside = list(range(2, 2 + n)), 2 + n, list(range(3 + n, rank))
    image = window_map(rank, [0, inner], out, inside, window)
    maps = (image, dims_map(rank, [1, inner, *inside]), dims_map(rank, [0, 1, *out]))
    return _emit(node, x, w, maps, (x.dims[0], w.dims[0], *window.out), 1 + n)


def _depthwise(node: OnnxNode, x: Tensor, w: Tensor, window: Window) -> Tensor:
    """Loops: batch, channel, positions | window. The filter loses its unit dimension."""
    n = len(window.kernel)
    rank = 2 + 2 * n
    out, inside = list(range(2, 2 + n)), list(range(2 + n, rank))
    flat = reshape(node, w, (w.dims[0], *w.dims[2:]))
    image = window_map(rank, [0, 1], out, inside, window)
    maps = (image, dims_map(rank, [1, *inside]), dims_map(rank, [0, 1, *out]))
    return _emit(node, x, flat, maps, (x.dims[0], x.dims[1], *window.out), n)


def _grouped(node: OnnxNode, x: Tensor, w: Tensor, window: Window, groups: int) -> Tensor:
    """Loops: batch, group, filter in group, positions | channel in group, window; channels are split before and joined
    after."""
    n = len(window.kernel)
    rank = 4 + 2 * n
    per_group = floor_div(w.dims[0], groups)
    split = reshape(node, x, (x.dims[0], groups, w.dims[1], *x.dims[2:]))
    filters = reshape(node, w, (groups, per_group, *w.dims[1:]))
    out, inner, inside = list(range(3, 3 + n)), 3 + n, list(range(4 + n, rank))
    image = window_map(rank, [0, 1, inner], out, inside, window)
    maps = (image, dims_map(rank, [1, 2, inner, *inside]), dims_map(rank, [0, 1, 2, *out]))
    joined = _emit(node, split, filters, maps, (x.dims[0], groups, per_group, *window.out), 1 + n)
    return reshape(node, joined, (x.dims[0], w.dims[0], *window.out))
