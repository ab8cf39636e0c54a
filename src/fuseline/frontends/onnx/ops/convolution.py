"""Convolutions, as structured ops over batch, channels, positions and the window."""

from __future__ import annotations

from collections.abc import Sequence
from math import prod
from typing import Any

import numpy as np
from xdsl.dialects import arith
from xdsl.ir import SSAValue
from xdsl.ir.affine import AffineMap

from fuseline.errors import FuselineError
from fuseline.frontends.onnx.dtypes import accumulator
from fuseline.frontends.onnx.emission import cast, filled, mapped, multiply_add_body, reshape, result
from fuseline.frontends.onnx.node import OnnxNode
from fuseline.frontends.onnx.ops.indexing import gather_at
from fuseline.frontends.onnx.ops.phases import first_phases, joined_phases, phase_filters, phase_window
from fuseline.frontends.onnx.ops.scattered import mostly_border, scattered
from fuseline.frontends.onnx.ops.slices import slice_of
from fuseline.frontends.onnx.ops.windows import Window, pad, pad_spatial, require_per_dimension, window_map, window_of
from fuseline.frontends.onnx.registry import onnx_op
from fuseline.frontends.onnx.scalars import index_constant, loop_index
from fuseline.frontends.onnx.tensors import NoNativeLowering, Tensor, static_sizes
from fuseline.ir.build import PARALLEL, REDUCTION, Body, dims_map
from fuseline.ir.dim import Dim, add, floor_div, maximum, minimum, mul, sub

ZEROS_PER_MOVE = 48
"""Products with a zero that a depthwise window forms in the time that it takes to move one element (measured: 1.2 to
1.8 ns against .033)."""


@onnx_op("Conv")
def conv(node: OnnxNode) -> Tensor:
    """A convolution of any rank, grouped or not, with bias."""
    x, w = node[0], node[1]
    kernel = _static(w.dims[2:])
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


def _static(dims: Sequence[Dim]) -> tuple[int, ...]:
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


@onnx_op("ConvTranspose")
def conv_transpose(node: OnnxNode) -> Tensor:
    """The transpose of a convolution: by phases where it has strides (`phases.py`), as a product where the image is
    small (`scattered.py`), else as a convolution with the flipped filter.

    out[o] = sum over k of spread[o + k] * flipped[k];  spread is the image with `stride - 1` zeros between its
    elements, padded by `(k - 1) * dilation - pad` on each side.
    """
    x, w = node[0], node[1]
    groups = node.integer("group", 1)
    kernel = _static(w.dims[2:])
    n = x.rank - 2
    strides = node.integers("strides") or [1] * n
    dilations = node.integers("dilations") or [1] * n
    require_per_dimension(
        node, n, window=kernel, strides=strides, dilations=dilations, pads=node.integers("pads") or [0] * 2 * n
    )
    low, high = _transposed_padding(node, x.dims[2:], kernel, strides, dilations)
    out = _without_zeros(node, x, w, strides, low, high) if max(dilations) == 1 else None
    if out is not None:
        return add_bias(node, out, node.get(2), x.dtype)
    spread = _spread(node, x, strides, low, high)
    flipped = _flipped(node, w, groups)
    out = tuple(sub(size, (k - 1) * step) for size, k, step in zip(spread.dims[2:], kernel, dilations, strict=True))
    window = Window(kernel, (1,) * n, tuple(dilations), (0,) * n, (0,) * n, out)
    return add_bias(node, convolve(node, spread, flipped, window, groups), node.get(2), x.dtype)


def _keeps_infinities(node: OnnxNode, kernel: Sequence[int], strides: Sequence[int]) -> bool:
    """Whether phases are as exact as asked for: filters that the strides do not divide end in zeros, which make a NaN
    of an infinity that the window itself would not meet."""
    return node.program.ctx.target.numerics != "strict" or all(k % s == 0 for k, s in zip(kernel, strides, strict=True))


def _fits_phases(kernel: Sequence[int], strides: Sequence[int], low: Sequence[int], high: Sequence[int]) -> bool:
    """Whether the output lies within what the phases give: no more zeros on either side than the window is wide."""
    return all(b < k and e < -(-k // s) * s for k, s, b, e in zip(kernel, strides, low, high, strict=True))


def _few_zeros(kernel: Sequence[int], strides: Sequence[int]) -> bool:
    """Whether a window of one channel meets the inserted zeros, in vectors of channels, faster than phases are put side
    by side."""
    return prod(kernel) - prod(-(-k // s) for k, s in zip(kernel, strides, strict=True)) <= ZEROS_PER_MOVE


def _without_zeros(
    node: OnnxNode, x: Tensor, w: Tensor, strides: Sequence[int], low: Sequence[int], high: Sequence[int]
) -> Tensor | None:
    """Without a spread image: a small one as one product, one with strides by phases; None where the spread one is as
    good, or exact."""
    groups, kernel = node.integer("group", 1), _static(w.dims[2:])
    if not _keeps_infinities(node, kernel, strides) or not _fits_phases(kernel, strides, low, high):
        return None
    begin = [size - 1 - before for size, before in zip(kernel, low, strict=True)]
    sizes = [
        add(mul(sub(size, 1), stride), 2 + before + after - extent)
        for size, stride, before, after, extent in zip(x.dims[2:], strides, low, high, kernel, strict=True)
    ]
    if groups == 1 and mostly_border(x.dims[2:], kernel, strides, sizes, node.program.ctx.target.costs):
        return scattered(node, x, w, strides, begin, sizes)
    if max(strides) == 1 or (1 < groups == x.dims[1] and _few_zeros(kernel, strides)):
        return None
    window = phase_window(x.dims[2:], kernel, strides)
    first = first_phases(window.out, strides, begin, sizes) or [0] * len(strides)
    filters = phase_filters(node, w, groups, strides, first)
    phases = convolve(node, pad_spatial(node, x, window, 0), filters, window, groups)
    return joined_phases(node, phases, groups, strides, begin, sizes)


def _transposed_padding(
    node: OnnxNode, image: Sequence[Dim], kernel: Sequence[int], strides: Sequence[int], dilations: Sequence[int]
) -> tuple[list[int], list[int]]:
    n = len(kernel)
    extra = node.integers("output_padding") or [0] * n
    pads = node.integers("pads") or [0] * (2 * n)
    wanted = node.integers("output_shape")
    mode = node.text("auto_pad", "NOTSET") or "NOTSET"
    low, high = [], []
    for axis in range(n):
        span = (kernel[axis] - 1) * dilations[axis] + 1
        begin, end = pads[axis], pads[n + axis]
        full = add(mul(sub(image[axis], 1), strides[axis]), extra[axis] + span)
        target = wanted[-n:][axis] if wanted else mul(image[axis], strides[axis]) if mode.startswith("SAME") else None
        if target is not None:
            total = sub(full, target)
            if not isinstance(total, int):
                raise NoNativeLowering("symbolic-window", "an output of given size from a symbolic size")
            begin = total // 2 if mode == "SAME_UPPER" else total - total // 2
            begin = max(begin, 0)  # what a larger output adds lies at the end
            end = total - begin
        low.append(span - 1 - begin)
        high.append(span - 1 - end + extra[axis])
    return low, high


def _spread(node: OnnxNode, x: Tensor, strides: Sequence[int], low: Sequence[int], high: Sequence[int]) -> Tensor:
    """The image with `stride - 1` zeros after each element but the last, and padded; where the padding is negative,
    cut."""
    lead = x.rank - len(strides)
    if all(stride == 1 for stride in strides):
        return _framed(node, x, lead, low, high)
    image = x.dims[lead:]
    wide: list[Dim] = list(x.dims[:lead])
    for size in image:
        wide += [size, 1]
    opened = reshape(node, x, wide)
    after = [0] * lead
    for stride in strides:
        after += [0, stride - 1]
    filled_in = pad(node, opened, [0] * len(wide), after, 0)
    joined = reshape(
        node, filled_in, (*x.dims[:lead], *(mul(size, stride) for size, stride in zip(image, strides, strict=True)))
    )
    return _framed(node, joined, lead, low, [h - (stride - 1) for h, stride in zip(high, strides, strict=True)])


def _framed(node: OnnxNode, x: Tensor, lead: int, low: Sequence[int], high: Sequence[int]) -> Tensor:
    """`x` from `low` elements before its start to `high` behind its end along the spatial axes, zeros where it has
    none."""
    frames = [_frame(size, before, after) for size, before, after in zip(x.dims[lead:], low, high, strict=True)]
    firsts, counts, before, after = zip(*frames, strict=True)
    cut = slice_of(node, x, [*[0] * lead, *firsts], [*x.dims[:lead], *counts], [1] * x.rank)
    return pad(node, cut, [*[0] * lead, *before], [*[0] * lead, *after], 0)


def _frame(size: Dim, low: int, high: int) -> tuple[Dim, Dim, Dim, Dim]:
    """What is taken along one axis: from where, how many, and how many zeros before and after."""
    whole = maximum(add(size, low + high), 0)
    first = minimum(max(-low, 0), size)
    count = maximum(sub(minimum(add(size, high), size), first), 0)
    before = minimum(max(low, 0), whole)
    return first, count, before, sub(whole, add(count, before))


def _flipped(node: OnnxNode, w: Tensor, groups: int) -> Tensor:
    """`[in, out / groups, *window]` as `[out, in / groups, *window]`, windows reversed."""
    if not w.is_constant:
        return _flipped_at_run_time(node, w, groups)
    array = w.numbers()
    inputs, per_group, *kernel = array.shape
    split = array.reshape(groups, inputs // groups, per_group, *kernel).swapaxes(1, 2)
    joined = split.reshape(groups * per_group, inputs // groups, *kernel)
    reverse = (slice(None), slice(None), *(slice(None, None, -1) for _ in kernel))
    return Tensor(w.dtype, tuple(joined.shape), array=joined[reverse].copy(), name=w.name)


def _flipped_at_run_time(node: OnnxNode, w: Tensor, groups: int) -> Tensor:
    """The same for weights that are computed: read in the new order through their positions."""
    inputs, per_group, *kernel = static_sizes(w.dims)
    share = inputs // groups
    dims = (groups, per_group, share, *kernel)

    def position(b: Body) -> list[SSAValue]:
        group, channel, within = (loop_index(b, loop) for loop in range(3))
        entry = b.op(arith.AddiOp, b.op(arith.MuliOp, group, index_constant(b, share)), within)
        reverse = [
            b.op(arith.SubiOp, index_constant(b, size - 1), loop_index(b, 3 + axis)) for axis, size in enumerate(kernel)
        ]
        return [entry, channel, *reverse]

    return reshape(node, gather_at(node, w, [], dims, position), (groups * per_group, share, *kernel))
