"""A transposed convolution as one of the image with `stride - 1` zeros between its elements, and the flipped filter.

out[o] = sum over k of spread[o + k] * flipped[k]
"""

from __future__ import annotations

from collections.abc import Sequence

from xdsl.dialects import arith
from xdsl.ir import SSAValue

from fuseline.frontends.onnx.emission import reshape
from fuseline.frontends.onnx.node import OnnxNode
from fuseline.frontends.onnx.ops.indexing import gather_at
from fuseline.frontends.onnx.ops.slices import slice_of
from fuseline.frontends.onnx.ops.windows import pad
from fuseline.frontends.onnx.scalars import index_constant, loop_index
from fuseline.frontends.onnx.tensors import Tensor, static_sizes
from fuseline.ir.build import Body
from fuseline.ir.dim import Dim, add, maximum, minimum, mul, sub


def spread(node: OnnxNode, x: Tensor, strides: Sequence[int], low: Sequence[int], high: Sequence[Dim]) -> Tensor:
    """The image with `stride - 1` zeros after each element but the last, and padded; where the padding is negative,
    cut."""
    lead = x.rank - len(strides)
    if all(stride == 1 for stride in strides):
        return framed(node, x, lead, low, high)
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
    return framed(node, joined, lead, low, [sub(h, stride - 1) for h, stride in zip(high, strides, strict=True)])


def framed(node: OnnxNode, x: Tensor, lead: int, low: Sequence[int], high: Sequence[Dim]) -> Tensor:
    """`x` from `low` elements before its start to `high` behind its end along the spatial axes, zeros where it has
    none."""
    frames = [_frame(size, before, after) for size, before, after in zip(x.dims[lead:], low, high, strict=True)]
    firsts, counts, before, after = zip(*frames, strict=True)
    cut = slice_of(node, x, [*[0] * lead, *firsts], [*x.dims[:lead], *counts], [1] * x.rank)
    return pad(node, cut, [*[0] * lead, *before], [*[0] * lead, *after], 0)


def _frame(size: Dim, low: int, high: Dim) -> tuple[Dim, Dim, Dim, Dim]:
    """What is taken along one axis: from where, how many, and how many zeros before and after."""
    whole = maximum(add(size, add(high, low)), 0)
    first = minimum(max(-low, 0), size)
    count = maximum(sub(minimum(add(size, high), size), first), 0)
    before = minimum(max(low, 0), whole)
    return first, count, before, sub(whole, add(count, before))


def flipped(node: OnnxNode, w: Tensor, groups: int, taps: Sequence[slice] | None = None) -> Tensor:
    """`[in, out / groups, *window]` as `[out, in / groups, *window]`, windows reversed; of `taps` along each axis,
    begin and step, if not of all."""
    taps = taps or [slice(0, None, 1)] * (w.rank - 2)
    if not w.is_constant:
        return _flipped_at_run_time(node, w, groups, taps)
    array = w.numbers()[(slice(None), slice(None), *taps)]
    inputs, per_group, *kernel = array.shape
    split = array.reshape(groups, inputs // groups, per_group, *kernel).swapaxes(1, 2)
    joined = split.reshape(groups * per_group, inputs // groups, *kernel)
    reverse = (slice(None), slice(None), *(slice(None, None, -1) for _ in kernel))
    return Tensor(w.dtype, tuple(joined.shape), array=joined[reverse].copy(), name=w.name)


def _flipped_at_run_time(node: OnnxNode, w: Tensor, groups: int, taps: Sequence[slice]) -> Tensor:
    """The same for weights that are computed: read in the new order through their positions."""
    inputs, per_group, *kernel = static_sizes(w.dims)
    share = inputs // groups
    places = [range(size)[axis] for size, axis in zip(kernel, taps, strict=True)]
    dims = (groups, per_group, share, *map(len, places))

    def position(b: Body) -> list[SSAValue]:
        group, channel, within = (loop_index(b, loop) for loop in range(3))
        entry = b.op(arith.AddiOp, b.op(arith.MuliOp, group, index_constant(b, share)), within)
        return [entry, channel, *(_back(b, along, loop_index(b, 3 + axis)) for axis, along in enumerate(places))]

    return reshape(node, gather_at(node, w, [], dims, position), (groups * per_group, share, *dims[3:]))


def _back(b: Body, places: range, index: SSAValue) -> SSAValue:
    """The place that is so many before the last one; there may be none, and nothing asks then."""
    last = places.start + (len(places) - 1) * places.step
    steps = index if places.step == 1 else b.op(arith.MuliOp, index, index_constant(b, places.step))
    return b.op(arith.SubiOp, index_constant(b, last), steps)
