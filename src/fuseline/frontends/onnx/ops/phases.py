"""Transposed convolutions with strides as plain ones of the small image, one channel per place of an output within its
stride.

    full[s q + p] = sum over t of x[q - t] * w[s t + p]        for every phase p in 0..s - 1, t in 0..ceil(k / s) - 1

So `x`, padded by ceil(k / s) - 1, is convolved with filters of ceil(k / s) taps, which give the phases as channels;
then the phases are put side by side and the border is cut off, or left out where that is no more than a shift of
phases. No product with a zero between the elements of the image is ever formed. (Shi et al., Is the deconvolution layer
the same as a convolutional layer?, 2016.)
"""

from __future__ import annotations

from collections.abc import Sequence
from math import prod
from typing import Any

import numpy as np
from numpy.typing import NDArray
from xdsl.dialects import arith
from xdsl.ir import SSAValue
from xdsl.ir.affine import AffineExpr, AffineMap

from fuseline.frontends.onnx.emission import reshape, result
from fuseline.frontends.onnx.node import OnnxNode
from fuseline.frontends.onnx.ops.indexing import gather_at
from fuseline.frontends.onnx.ops.shape import transposed
from fuseline.frontends.onnx.ops.slices import slice_of
from fuseline.frontends.onnx.ops.windows import Window, pad
from fuseline.frontends.onnx.scalars import index_constant, loop_index
from fuseline.frontends.onnx.tensors import Tensor, known, static_sizes
from fuseline.ir.build import Body
from fuseline.ir.dim import Dim, add, floor_div, mul


def phase_window(image: Sequence[Dim], kernel: Sequence[int], strides: Sequence[int]) -> Window:
    """The window that slides over the small image."""
    taps = tuple(-(-size // stride) for size, stride in zip(kernel, strides, strict=True))
    border = tuple(count - 1 for count in taps)
    ones = (1,) * len(taps)
    return Window(
        taps, ones, ones, border, border, tuple(add(size, more) for size, more in zip(image, border, strict=True))
    )


def phase_filters(node: OnnxNode, w: Tensor, groups: int, strides: Sequence[int], first: Sequence[int]) -> Tensor:
    """`[in, out / groups, *kernel]` of known sizes as `[groups * phases * out / groups, in / groups, *taps]`: at once
    where it is known, else moved from where it is computed. `first`: the phase that comes first along each axis."""
    whole = whole_strides(node, w, strides)
    if whole.is_constant:
        return known(ordered_phases(whole.numbers(), groups, strides, first), w.dtype, w.name)
    inputs, per_group, *kernel = static_sizes(whole.dims)
    taps = [size // stride for size, stride in zip(kernel, strides, strict=True)]
    dims = (groups * prod(strides) * per_group, inputs // groups, *taps)
    return reshape(node, _gathered_phases(node, whole, groups, strides, taps, first), dims)


def ordered_phases(w: NDArray[Any], groups: int, strides: Sequence[int], first: Sequence[int]) -> NDArray[Any]:
    """The same of numbers, whose kernel is a multiple of the strides."""
    inputs, per_group, *kernel = w.shape
    taps = [size // stride for size, stride in zip(kernel, strides, strict=True)]
    pairs = (size for pair in zip(taps, strides, strict=True) for size in pair)
    parted = w.reshape(groups, inputs // groups, per_group, *pairs)
    at = [3 + 2 * axis for axis in range(len(kernel))]
    turned = np.flip(np.roll(parted, [-phase for phase in first], [axis + 1 for axis in at]), tuple(at))
    ordered = turned.transpose(0, *(axis + 1 for axis in at), 2, 1, *at)
    return np.ascontiguousarray(ordered).reshape(-1, inputs // groups, *taps)


def whole_strides(node: OnnxNode, w: Tensor, strides: Sequence[int]) -> Tensor:
    """`[in, out, *kernel]` with zeros behind the kernel up to a multiple of the strides."""
    more = [0, 0, *(-size % stride for size, stride in zip(static_sizes(w.dims[2:]), strides, strict=True))]
    if not w.is_constant:
        return pad(node, w, [0] * w.rank, more, 0)
    return known(np.pad(w.numbers(), [(0, after) for after in more]), w.dtype, w.name)


def _gathered_phases(
    node: OnnxNode, w: Tensor, groups: int, strides: Sequence[int], taps: Sequence[int], first: Sequence[int]
) -> Tensor:
    """`[groups, *phases, out / groups, in / groups, *taps]` of a filter that is computed: read in this order
    through its positions."""
    n, (inputs, per_group, *_) = len(strides), static_sizes(w.dims)
    share = inputs // groups

    def position(b: Body) -> list[SSAValue]:
        at = [loop_index(b, loop) for loop in range(3 + 2 * n)]
        phases, (channel, within), turns = at[1 : 1 + n], at[1 + n : 3 + n], at[3 + n :]
        entry = b.op(arith.AddiOp, b.op(arith.MuliOp, at[0], index_constant(b, share)), within)
        places = [_place(b, *axis) for axis in zip(phases, turns, taps, strides, first, strict=True)]
        return [entry, channel, *places]

    return gather_at(node, w, [], (groups, *strides, per_group, share, *taps), position)


def _place(b: Body, phase: SSAValue, turn: SSAValue, taps: int, stride: int, first: int) -> SSAValue:
    """Where a tap of a phase lies in the kernel: the last tap comes first, and the phases begin with `first`."""
    if first:
        later = b.op(arith.AddiOp, phase, index_constant(b, first))
        phase = b.op(arith.RemUIOp, later, index_constant(b, stride))
    back = b.op(arith.MuliOp, turn, index_constant(b, stride))
    return b.op(arith.AddiOp, b.op(arith.SubiOp, index_constant(b, (taps - 1) * stride), back), phase)


def joined_phases(
    node: OnnxNode, x: Tensor, groups: int, strides: Sequence[int], begin: Sequence[int], sizes: Sequence[Dim]
) -> Tensor:
    """Phases in the channels of `x`, `[batch, groups * phases * filters, *positions]`, side by side, from `begin` on
    `sizes` of them."""
    n, batch = len(strides), x.dims[0]
    positions = x.dims[2:]
    channels = x.dims[1]
    assert isinstance(channels, int)
    filters = channels // groups // int(np.prod(strides))
    split = reshape(node, x, (batch, groups, *strides, filters, *positions))
    if first_phases(positions, strides, begin, sizes) is not None:
        return _side_by_side(node, split, strides, begin, sizes)
    order = [0, 1, 2 + n, *(axis for i in range(n) for axis in (3 + n + i, 2 + i))]
    spatial = [mul(size, stride) for size, stride in zip(positions, strides, strict=True)]
    joined = reshape(node, transposed(node, split, order), (batch, groups * filters, *spatial))
    if spatial == list(sizes):
        return joined
    return slice_of(node, joined, [0, 0, *begin], [*joined.dims[:2], *sizes], [1] * joined.rank)


def first_phases(
    image: Sequence[Dim], strides: Sequence[int], begin: Sequence[int], sizes: Sequence[Dim]
) -> list[int] | None:
    """The phase at which the outputs that are wanted begin along each axis, where phases are put side by side from
    there on; None: they are as they are.

        out[s q + p] = full[s q + p + b] = full[s (q + (p + b) div s) + (p + b) mod s]

    Along a line, more than two phases are put side by side faster where they begin at one position: there it takes 1.0
    to 1.12 times as long as with the slice (one thread, 400 to 4000 positions), in more dimensions .5 to 1.0 of it.
    """
    axes = list(zip(image, strides, begin, sizes, strict=True))
    whole = [mul(positions, stride) == size for positions, stride, _, size in axes]
    if all(whole) or (len(axes) == 1 and strides[0] > 2):
        return None
    if any(mul(floor_div(size, stride), stride) != size for _, stride, _, size in axes):
        return None
    if any(first == 0 and not all_ for (_, _, first, _), all_ in zip(axes, whole, strict=True)):
        return None  # cut at the end alone: that is a slice
    return [first % stride for _, stride, first, _ in axes]


def _later(phase: AffineExpr, stride: int, first: int) -> AffineExpr:
    """How many positions further a phase is taken, if the first of them is `first`."""
    if first == 0:
        return AffineExpr.constant(0)
    return phase if stride - first == 1 == first else (phase + first) // stride


def _side_by_side(
    node: OnnxNode, x: Tensor, strides: Sequence[int], begin: Sequence[int], sizes: Sequence[Dim]
) -> Tensor:
    """`[batch, groups, *phases, filters, *positions]`, of which the first phase is that of `begin`, as `sizes` outputs
    from there on."""
    (batch, groups), filters = x.dims[:2], x.dims[2 + len(strides)]
    counts = [floor_div(size, stride) for size, stride in zip(sizes, strides, strict=True)]
    dims = [batch, groups, filters, *(size for pair in zip(counts, strides, strict=True) for size in pair)]
    at = [AffineExpr.dimension(loop) for loop in range(len(dims))]
    axes = zip(at[3::2], at[4::2], strides, begin, strict=True)
    positions = [
        place + _later(phase, stride, first % stride) + first // stride for place, phase, stride, first in axes
    ]
    read = AffineMap(len(dims), 0, (at[0], at[1], *at[4::2], at[2], *positions))
    out = node.program.empty(dims, x.dtype, node.emit)
    value = node.emit.elementwise([node.ssa(x)], out, lambda b: b.args[0], [read])
    return reshape(node, result(value, dims, x.dtype), (batch, mul(groups, filters), *sizes))
