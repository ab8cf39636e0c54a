"""Transposed convolutions with strides as plain ones of the small image, one channel per place of an output within its
stride.

    full[s q + p] = sum over t of x[q - t] * w[s t + p]        for every phase p in 0..s - 1, t in 0..ceil(k / s) - 1

So `x`, padded by ceil(k / s) - 1, is convolved with filters of ceil(k / s) taps, which give the phases as channels;
then the phases are put side by side and the border is cut off. No product with a zero between the elements of the image
is ever formed. (Shi et al., Is the deconvolution layer the same as a convolutional layer?, 2016.)
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from fuseline.frontends.onnx.emission import reshape
from fuseline.frontends.onnx.node import OnnxNode
from fuseline.frontends.onnx.ops.shape import transposed
from fuseline.frontends.onnx.ops.slices import slice_of
from fuseline.frontends.onnx.ops.windows import Window
from fuseline.frontends.onnx.tensors import Tensor
from fuseline.ir.dim import Dim, add, mul


def phase_window(image: Sequence[Dim], kernel: Sequence[int], strides: Sequence[int]) -> Window:
    """The window that slides over the small image."""
    taps = tuple(-(-size // stride) for size, stride in zip(kernel, strides, strict=True))
    border = tuple(count - 1 for count in taps)
    ones = (1,) * len(taps)
    return Window(
        taps, ones, ones, border, border, tuple(add(size, more) for size, more in zip(image, border, strict=True))
    )


def phase_filters(w: Tensor, groups: int, strides: Sequence[int]) -> Tensor:
    """Constant `[in, out / groups, *kernel]` as `[groups * phases * out / groups, in / groups, *taps]`."""
    array = w.numbers()
    inputs, per_group, *kernel = array.shape
    taps = [-(-size // stride) for size, stride in zip(kernel, strides, strict=True)]
    whole = np.pad(array, [(0, 0), (0, 0), *((0, t * s - k) for t, s, k in zip(taps, strides, kernel, strict=True))])
    parted = whole.reshape(
        groups, inputs // groups, per_group, *(size for pair in zip(taps, strides, strict=True) for size in pair)
    )
    at = [3 + 2 * axis for axis in range(len(kernel))]
    ordered = np.flip(parted, tuple(at)).transpose(0, *(axis + 1 for axis in at), 2, 1, *at)
    flat = np.ascontiguousarray(ordered).reshape(-1, inputs // groups, *taps)
    return Tensor(w.dtype, tuple(flat.shape), array=flat, name=w.name)


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
    order = [0, 1, 2 + n, *(axis for i in range(n) for axis in (3 + n + i, 2 + i))]
    spatial = [mul(size, stride) for size, stride in zip(positions, strides, strict=True)]
    joined = reshape(node, transposed(node, split, order), (batch, groups * filters, *spatial))
    if spatial == list(sizes):
        return joined
    return slice_of(node, joined, [0, 0, *begin], [*joined.dims[:2], *sizes], [1] * joined.rank)
