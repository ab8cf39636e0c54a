"""Transposed convolutions of small images as one product: every pixel times the whole filter, and what overlaps summed
up.

    full[s q + p] = sum over t of y[q - t, t, p],   y[i, t, p] = x[i] * w[s t + p]
            for p in 0..s - 1, t in 0..ceil(k / s) - 1

Phases (`phases.py`) multiply `q + ceil(k / s) - 1` places along an axis of `q` pixels: for one pixel and a window of
four that is four times the work. Here nothing but pixels is multiplied; in exchange all of `y` is stored and read once
more.
"""

from __future__ import annotations

from collections.abc import Sequence
from math import prod

from xdsl.dialects import arith
from xdsl.ir.affine import AffineExpr, AffineMap

from fuseline.frontends.onnx.dtypes import accumulator
from fuseline.frontends.onnx.emission import contract, filled, reshape, result
from fuseline.frontends.onnx.node import OnnxNode
from fuseline.frontends.onnx.ops.phases import whole_strides
from fuseline.frontends.onnx.ops.shape import transposed
from fuseline.frontends.onnx.ops.slices import slice_of
from fuseline.frontends.onnx.ops.windows import pad
from fuseline.frontends.onnx.tensors import Tensor, static_sizes
from fuseline.ir.build import PARALLEL, REDUCTION, dims_map
from fuseline.ir.costs import MachineCosts
from fuseline.ir.dim import Dim

PADDING_WORK_RATIO = 1.5
"""Places over pixels from which on the product is worth another pass."""


def mostly_border(
    image: Sequence[Dim], kernel: Sequence[int], strides: Sequence[int], sizes: Sequence[Dim], costs: MachineCosts
) -> bool:
    """Whether a convolution that makes `sizes` outputs would work on zeros around the image for a good part. It makes
    all places of the phases, but for strides of 1 just the outputs. Larger images are left to the minimal filtering of
    a target that has it."""
    if not all(isinstance(size, int) for size in (*image, *sizes)):
        return False
    pixels = static_sizes(image)
    axes = zip(pixels, kernel, strides, static_sizes(sizes), strict=True)
    positions = [size + -(-k // s) - 1 if max(strides) > 1 else out for size, k, s, out in axes]
    few = costs.filtering_pixels ** len(pixels) if costs.filtering_gain > 1 else prod(pixels)
    return 0 < prod(pixels) <= few and prod(positions) >= PADDING_WORK_RATIO * prod(pixels)


def scattered(
    node: OnnxNode, x: Tensor, w: Tensor, strides: Sequence[int], begin: Sequence[int], sizes: Sequence[Dim]
) -> Tensor:
    """`sizes` outputs from `begin` on of the full transposed convolution of a static image `[n, c, *image]` with
    `[c, filters, *kernel]`, in the accumulator's type; one group, no dilation."""
    image, (channels, filters, *kernel) = static_sizes(x.dims[2:]), static_sizes(w.dims)
    n, taps = len(image), [-(-k // s) for k, s in zip(kernel, strides, strict=True)]
    flat = _columns(node, w, taps, strides)
    loops = [x.dims[0], *image, flat.dims[1], channels]
    wide = accumulator(x.dtype)
    y = contract(node, (x, [0, n + 2, *range(1, n + 1)]), (flat, [n + 2, n + 1]), loops, list(range(n + 2)), wide)
    overlapped = _overlapped(node, reshape(node, y, (x.dims[0], *image, *taps, *strides, filters)), taps)
    positions = [(size + t - 1) * s for size, t, s in zip(image, taps, strides, strict=True)]
    joined = reshape(
        node, transposed(node, overlapped, [0, 2 * n + 1, *range(1, 2 * n + 1)]), (x.dims[0], filters, *positions)
    )
    return (
        joined
        if positions == list(sizes)
        else slice_of(node, joined, [0, 0, *begin], [*joined.dims[:2], *sizes], [1] * joined.rank)
    )


def _columns(node: OnnxNode, w: Tensor, taps: Sequence[int], strides: Sequence[int]) -> Tensor:
    """`[c, filters, *kernel]` as `[c, *taps * *strides * filters]`, kernels filled up with zeros."""
    channels, filters, *_ = static_sizes(w.dims)
    n = len(taps)
    pairs = (size for pair in zip(taps, strides, strict=True) for size in pair)
    parted = reshape(node, whole_strides(node, w, strides), (channels, filters, *pairs))
    ordered = transposed(node, parted, [0, *range(2, 2 + 2 * n, 2), *range(3, 3 + 2 * n, 2), 1])
    return reshape(node, ordered, (channels, prod(taps) * prod(strides) * filters))


def _overlapped(node: OnnxNode, y: Tensor, taps: Sequence[int]) -> Tensor:
    """`[n, *image, *taps, *strides, filters]` as `[n, (position, phase) per axis, filters]`: what meets at a position
    is summed up."""
    n = len(taps)
    border = [0, *(t - 1 for t in taps), *[0] * (2 * n + 1)]
    padded = pad(node, y, border, border, 0)
    image, strides, filters = static_sizes(y.dims[1 : n + 1]), static_sizes(y.dims[2 * n + 1 : -1]), y.dims[-1]
    positions = [size + t - 1 for size, t in zip(image, taps, strict=True)]
    dims = [y.dims[0], *(size for pair in zip(positions, strides, strict=True) for size in pair), filters]
    rank = len(dims) + n
    at = [AffineExpr.dimension(i) for i in range(rank)]
    position, phase, tap = at[1 : 1 + 2 * n : 2], at[2 : 2 + 2 * n : 2], at[rank - n :]
    moved = [p + AffineExpr.constant(t - 1) - k for p, t, k in zip(position, taps, tap, strict=True)]
    maps = [AffineMap(rank, 0, (at[0], *moved, *tap, *phase, at[1 + 2 * n])), dims_map(rank, list(range(len(dims))))]
    init = filled(node, 0, dims, y.dtype)
    iterators = [PARALLEL] * len(dims) + [REDUCTION] * n
    op = node.emit.generic(
        [node.ssa(padded)], [init], maps, iterators, lambda b: [b.op(arith.AddfOp, b.args[1], b.args[0])]
    )
    return result(op.results[0], dims, y.dtype)
