"""Transposed convolutions whose phases have different numbers of taps: a convolution for each phase.

    stride 2, three taps a b c         full[2 q + 0] = x[q] a + x[q - 1] c          two taps
                                       full[2 q + 1] = x[q] b                       one

One convolution that gives all phases as channels (`phases.py`) multiplies as many taps for each as for the longest, in
an image 16 products for 9. Here each phase has its own window, at its own place of the image, and bias and all that
follows is computed of each; put side by side they are a concat that each is written into.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import product
from math import prod

from fuseline.frontends.onnx.emission import reshape
from fuseline.frontends.onnx.node import OnnxNode
from fuseline.frontends.onnx.ops.convolution import add_bias, convolve
from fuseline.frontends.onnx.ops.recurrent_slices import concat
from fuseline.frontends.onnx.ops.slices import slice_of
from fuseline.frontends.onnx.ops.spread_images import flipped, framed
from fuseline.frontends.onnx.ops.windows import Window
from fuseline.frontends.onnx.tensors import Tensor, static_sizes
from fuseline.ir.costs import MachineCosts
from fuseline.ir.dim import Dim, add, ceil_div, mul

LEAST_WASTE = 1.3
"""Products of phases of as many taps each over those that are asked for, from which on convolutions of their own
pay."""

FILTERED_WASTE = 1.5
"""The same of images on a target that has minimal filtering, which spares the phases of one convolution more (one
thread, AVX-512: of 3x3 by 2 .6 to .9 of the time, between others .38 to .9; 5x5 by 2 .84 to 1.5, 7x7 1.7)."""

MOST_PHASES = 9
"""Convolutions that one layer becomes."""


def pays_by_taps(w: Tensor, groups: int, strides: Sequence[int], costs: MachineCosts) -> bool:
    """Whether each phase of the filter `[in, out, *kernel]` has taps and vectors of channels, and phases of as many
    taps each would multiply many zeros."""
    kernel = static_sizes(w.dims[2:])
    if groups != 1 or prod(strides) > MOST_PHASES or static_sizes(w.dims)[1] < costs.lanes:
        return False
    whole = prod(-(-size // stride) * stride for size, stride in zip(kernel, strides, strict=True))
    each = all(size >= stride for size, stride in zip(kernel, strides, strict=True))
    filtered = len(kernel) == 2 and costs.filtering_gain > 1
    return each and whole >= (FILTERED_WASTE if filtered else LEAST_WASTE) * prod(kernel)


def by_taps(
    node: OnnxNode,
    x: Tensor,
    w: Tensor,
    bias: Tensor | None,
    strides: Sequence[int],
    begin: Sequence[int],
    sizes: Sequence[Dim],
) -> Tensor:
    """`sizes` outputs from `begin` on of the full transposed convolution of `[n, c, *image]` with `[c, filters,
    *kernel]`, and the bias; one group, no dilation."""
    counts = [ceil_div(size, stride) for size, stride in zip(sizes, strides, strict=True)]
    kernel = static_sizes(w.dims[2:])
    axes = [list(_phases(*axis)) for axis in zip(kernel, strides, begin, counts, x.dims[2:], strict=True)]
    phases = [_phase(node, x, w, bias, along) for along in product(*axes)]
    joined = _side_by_side(node, phases, strides)
    whole = [mul(count, stride) for count, stride in zip(counts, strides, strict=True)]
    out = reshape(node, joined, (*joined.dims[:2], *whole))
    if whole == list(sizes):
        return out
    return slice_of(node, out, [0] * out.rank, [*out.dims[:2], *sizes], [1] * out.rank)


@dataclass(frozen=True, slots=True)
class _Phase:
    """Along one axis: taps of the filter, outputs, and the zeros around the image (fewer than none: what is cut)."""

    taps: slice
    count: Dim
    low: int
    high: Dim


def _phases(kernel: int, stride: int, begin: int, count: Dim, image: Dim) -> Iterator[_Phase]:
    """The phases along an axis, from the first output on.

    out[s q + r] = full[s (q + m) + p] = sum over t of x[q + m - t] w[s t + p],   p = (r + begin) mod s, m = .. div s
    """
    for output in range(begin, begin + stride):
        further, phase = divmod(output, stride)
        taps = -(-(kernel - phase) // stride)
        yield _Phase(slice(phase, None, stride), count, taps - 1 - further, add(add(count, further), mul(image, -1)))


def _phase(node: OnnxNode, x: Tensor, w: Tensor, bias: Tensor | None, along: Sequence[_Phase]) -> Tensor:
    filters = flipped(node, w, 1, [axis.taps for axis in along])
    n = len(along)
    image = framed(node, x, 2, [axis.low for axis in along], [axis.high for axis in along])
    none, ones = (0,) * n, (1,) * n
    window = Window(static_sizes(filters.dims[2:]), ones, ones, none, none, tuple(axis.count for axis in along))
    return add_bias(node, convolve(node, image, filters, window, 1), bias, x.dtype)


def _side_by_side(node: OnnxNode, phases: Sequence[Tensor], strides: Sequence[int]) -> Tensor:
    """`[n, c, *counts]` of each phase, the last axis the fastest, as `[n, c, *(count, stride)]`."""
    batch, channels, *counts = phases[0].dims
    parts = [
        reshape(node, part, (batch, channels, *(size for count in counts for size in (count, 1)))) for part in phases
    ]
    for axis, stride in reversed(list(enumerate(strides))):
        parts = [concat(node, parts[at : at + stride], 3 + 2 * axis) for at in range(0, len(parts), stride)]
    return parts[0]
