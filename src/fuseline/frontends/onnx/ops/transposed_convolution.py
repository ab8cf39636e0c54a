"""Transposed convolutions: by phases where they have strides (`phases.py`, `phases_by_taps.py`), as a product where the
image is small (`scattered.py`), else as convolutions of the spread image with the flipped filter (`spread_images.py`).
"""

from __future__ import annotations

from collections.abc import Sequence
from math import prod

from fuseline.frontends.onnx.node import OnnxNode
from fuseline.frontends.onnx.ops.convolution import add_bias, convolve, filter_sizes
from fuseline.frontends.onnx.ops.phases import first_phases, joined_phases, phase_filters, phase_window
from fuseline.frontends.onnx.ops.phases_by_taps import by_taps, pays_by_taps
from fuseline.frontends.onnx.ops.scattered import mostly_border, scattered
from fuseline.frontends.onnx.ops.spread_images import flipped, spread
from fuseline.frontends.onnx.ops.windows import Window, pad_spatial, require_per_dimension
from fuseline.frontends.onnx.registry import onnx_op
from fuseline.frontends.onnx.tensors import NoNativeLowering, Tensor
from fuseline.ir.dim import Dim, add, mul, sub

ZEROS_PER_MOVE = 48
"""Products with a zero that a depthwise window forms in the time that it takes to move one element (measured: 1.2 to
1.8 ns against .033)."""


@onnx_op("ConvTranspose")
def conv_transpose(node: OnnxNode) -> Tensor:
    """The transpose of a convolution, with its bias; the image is padded by `(k - 1) * dilation - pad` on each
    side."""
    x, w = node[0], node[1]
    groups = node.integer("group", 1)
    kernel = filter_sizes(w.dims[2:])
    n = x.rank - 2
    strides = node.integers("strides") or [1] * n
    dilations = node.integers("dilations") or [1] * n
    require_per_dimension(
        node, n, window=kernel, strides=strides, dilations=dilations, pads=node.integers("pads") or [0] * 2 * n
    )
    low, high = _transposed_padding(node, x.dims[2:], kernel, strides, dilations)
    out = _without_zeros(node, x, w, strides, low, high) if max(dilations) == 1 else None
    if out is not None:
        return out
    image, filters = spread(node, x, strides, low, high), flipped(node, w, groups)
    sizes = tuple(sub(size, (k - 1) * step) for size, k, step in zip(image.dims[2:], kernel, dilations, strict=True))
    window = Window(kernel, (1,) * n, tuple(dilations), (0,) * n, (0,) * n, sizes)
    return add_bias(node, convolve(node, image, filters, window, groups), node.get(2), x.dtype)


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
    """Without a spread image, with its bias: a small one as one product, one with strides by phases; None where the
    spread one is as good, or exact."""
    groups, kernel = node.integer("group", 1), filter_sizes(w.dims[2:])
    if not _fits_phases(kernel, strides, low, high):
        return None
    begin = [size - 1 - before for size, before in zip(kernel, low, strict=True)]
    sizes = [
        add(mul(sub(size, 1), stride), 2 + before + after - extent)
        for size, stride, before, after, extent in zip(x.dims[2:], strides, low, high, kernel, strict=True)
    ]
    exact = _keeps_infinities(node, kernel, strides)
    costs = node.program.ctx.target.costs
    if exact and groups == 1 and mostly_border(x.dims[2:], kernel, strides, sizes, costs):
        return add_bias(node, scattered(node, x, w, strides, begin, sizes), node.get(2), x.dtype)
    if pays_by_taps(w, groups, strides, costs):
        return by_taps(node, x, w, node.get(2), strides, begin, sizes)
    if not exact or max(strides) == 1 or (1 < groups == x.dims[1] and _few_zeros(kernel, strides)):
        return None
    window = phase_window(x.dims[2:], kernel, strides)
    first = first_phases(window.out, strides, begin, sizes) or [0] * len(strides)
    filters = phase_filters(node, w, groups, strides, first)
    phases = convolve(node, pad_spatial(node, x, window, 0), filters, window, groups)
    return add_bias(node, joined_phases(node, phases, groups, strides, begin, sizes), node.get(2), x.dtype)


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
