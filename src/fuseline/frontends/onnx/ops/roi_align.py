"""RoiAlign: regions of images, each in as many bins, averaged over places between the pixels.

    result[r, c, i, j] = the mean of S x S samples of image[batch[r], c] in bin (i, j) of region r

A sample is read from the four pixels around it: their sum in their shares, or with `max` the largest share, as ONNX's
reference and onnxruntime have it. The samples are an op of their own, which the mean behind reads where it stands.
Regions that say by their own size how many samples they take (`sampling_ratio` 0) have no lowering.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import reduce as fold

import numpy as np
from xdsl.dialects import arith, math, tensor
from xdsl.ir import SSAValue

from fuseline.frontends.onnx import scalars as s
from fuseline.frontends.onnx.dtypes import INDEX_DTYPE, accumulator, is_float, mlir_element
from fuseline.frontends.onnx.emission import DType, cast, elementwise, mapped, reduce
from fuseline.frontends.onnx.node import OnnxNode
from fuseline.frontends.onnx.ops.indexing import column, position
from fuseline.frontends.onnx.registry import onnx_op
from fuseline.frontends.onnx.tensors import NoNativeLowering, Tensor, known, view
from fuseline.ir.build import Body, element_of
from fuseline.ir.dim import Dim

MOVED_SINCE = 16
"""Operator set since which corners lie half a pixel before their numbers, where nothing else is said."""

REGION, BINS, SAMPLES, CHANNEL = 0, (1, 3), (2, 4), 5
"""The loops of the samples: region, bin and sample along either axis of the image, and last the channel, whose places
are those of all others."""

CORNERS = ((1, 3), (0, 2))
"""Where a region names its first and last place along either axis of the image."""


@dataclass(frozen=True)
class _Regions:
    """How regions lie on the image, in `dtype`: corners times `scale`, less `offset`, and at the least of size `least`
    (None: any). They have `bins` along either axis, each with `samples`, of which `combine` makes one in `wide`."""

    dtype: DType
    wide: DType
    scale: float
    offset: float
    least: float | None
    bins: tuple[int, int]
    samples: int
    combine: Callable[[Body, DType, SSAValue, SSAValue], SSAValue]

    def number(self, b: Body, value: float) -> SSAValue:
        """A constant among the places."""
        return b.constant(value, mlir_element(self.dtype))


@dataclass(frozen=True)
class _Around:
    """Along one axis of the image: the two pixels around a sample, the share of each, and whether the sample counts."""

    pixels: tuple[SSAValue, SSAValue]
    shares: tuple[SSAValue, SSAValue]
    counts: SSAValue


@onnx_op("RoiAlign", since=10)
def roi_align(node: OnnxNode) -> Tensor:
    """Means, or maxima, of regions `rois` (x and y of two corners) of the images that `batch_indices` names."""
    image, mean = node[0], node.text("mode", "avg") == "avg"
    regions = _regions(node, mean)
    wide, combine = regions.wide, regions.combine
    found = _samples(node, regions)
    start = 0.0 if mean else -np.inf
    total = reduce(node, [found], SAMPLES, start, lambda b, x, held: combine(b, wide, held, x), dtype=wide)
    if mean:
        count = float(regions.samples**2)
        total = elementwise(node, [total], wide, lambda b, x: s.div(b, wide, x, b.constant(count, mlir_element(wide))))
    total = cast(node, total, image.dtype)
    regions_of, rows, columns, channels = total.dims
    return view(total, [regions_of, channels, rows, columns], [0, 2, 3, 1])


def _regions(node: OnnxNode, mean: bool) -> _Regions:
    samples = node.integer("sampling_ratio")
    if samples < 1 or not is_float(node[0].dtype):
        raise NoNativeLowering("runtime-value", "regions say by their size how many samples they take")
    default = "half_pixel" if node.opset >= MOVED_SINCE else "output_half_pixel"
    moved = node.text("coordinate_transformation_mode", default) == "half_pixel"
    return _Regions(
        accumulator(node[1].dtype),
        accumulator(node[0].dtype),
        node.number("spatial_scale", 1.0),
        offset=0.5 if moved else 0.0,
        least=None if moved else 1.0,
        bins=(node.integer("output_height", 1), node.integer("output_width", 1)),
        samples=samples,
        combine=s.add if mean else s.maximum,
    )


def _samples(node: OnnxNode, regions: _Regions) -> Tensor:
    """Every sample of every bin, in the type in which they are added up."""
    image, rois, batch = node[0], cast(node, node[1], regions.dtype), node[2]
    images, channels, height, width = image.dims
    dtype, source = regions.dtype, node.ssa(view(image, [images, height, width, channels], [0, 3, 1, 2]))
    sizes = [(node.index(size), node.program.integer(size, mlir_element(dtype), node.emit)) for size in (height, width)]
    within = known((np.arange(regions.samples) + 0.5).astype(dtype))
    operands: list[tuple[Tensor, Sequence[int | None]]] = [(batch, [REGION])]
    for axis in (0, 1):
        operands += [(column(node, rois, corner), [REGION]) for corner in CORNERS[axis]]
        operands += [(known(np.arange(regions.bins[axis]).astype(dtype)), [BINS[axis]]), (within, [SAMPLES[axis]])]
    rows, columns = regions.bins
    dims: list[Dim] = [rois.dims[0], rows, regions.samples, columns, regions.samples, channels]

    def body(b: Body, index: SSAValue, *given: SSAValue) -> SSAValue:
        places = [_place(regions, b, given[4 * axis : 4 * axis + 4], regions.bins[axis]) for axis in (0, 1)]
        around = [_around(regions, b, at, *sizes[axis]) for axis, at in enumerate(places)]
        number, channel = position(node, b, index, batch, images), s.loop_index(b, CHANNEL)
        return _between(regions, b, around, lambda at: _pixel(regions, b, source, image.dtype, [number, *at, channel]))

    return mapped(node, operands, dims, regions.wide, body)


def _pixel(regions: _Regions, b: Body, source: SSAValue, dtype: DType, at: Sequence[SSAValue]) -> SSAValue:
    return s.convert(b, b.op(tensor.ExtractOp, source, list(at), element_of(source)), dtype, regions.wide)


def _place(regions: _Regions, b: Body, given: Sequence[SSAValue], bins: int) -> SSAValue:
    """Where a sample lies along one axis, of the corners, the number of the bin and the middle of the sample in it."""
    dtype, (*corners, number, middle) = regions.dtype, given
    scaled = [s.mul(b, dtype, corner, regions.number(b, regions.scale)) for corner in corners]
    first, last = (s.sub(b, dtype, corner, regions.number(b, regions.offset)) for corner in scaled)
    size = s.sub(b, dtype, last, first)
    if regions.least is not None:
        size = s.maximum(b, dtype, size, regions.number(b, regions.least))
    whole = s.div(b, dtype, size, regions.number(b, float(bins)))
    start = s.add(b, dtype, first, s.mul(b, dtype, number, whole))
    part = s.div(b, dtype, s.mul(b, dtype, middle, whole), regions.number(b, float(regions.samples)))
    return s.add(b, dtype, start, part)


def _around(regions: _Regions, b: Body, at: SSAValue, size: SSAValue, extent: SSAValue) -> _Around:
    """The pixels around `at`: what lies further than a pixel outside of the image counts nothing, other samples read
    its border. No number is nowhere."""
    dtype, one, zero = regions.dtype, regions.number(b, 1.0), regions.number(b, 0.0)
    from_front = s.compare(b, dtype, "ge", at, regions.number(b, -1.0))
    counts = b.op(arith.AndIOp, from_front, s.compare(b, dtype, "le", at, extent))
    inside = s.maximum(b, dtype, s.select(b, counts, at, zero), zero)
    last, end = s.sub(b, dtype, extent, one), b.op(arith.SubiOp, size, s.index_constant(b, 1))
    low = s.minimum(b, dtype, b.op(math.FloorOp, inside), last)
    share = s.select(b, s.compare(b, dtype, "ge", low, last), zero, s.sub(b, dtype, inside, low))
    first = b.op(arith.MaxSIOp, s.as_index(b, s.convert(b, low, dtype, INDEX_DTYPE)), s.index_constant(b, 0))
    second = b.op(arith.MinSIOp, b.op(arith.AddiOp, first, s.index_constant(b, 1)), end)
    return _Around((first, second), (s.sub(b, dtype, one, share), share), counts)


def _between(
    regions: _Regions, b: Body, around: Sequence[_Around], read: Callable[[Sequence[SSAValue]], SSAValue]
) -> SSAValue:
    """What `combine` makes of four pixels in their shares; zero for a sample that does not count."""
    rows, columns = around
    terms: list[SSAValue] = []
    for row, high in zip(rows.pixels, rows.shares, strict=True):
        for pixel, across in zip(columns.pixels, columns.shares, strict=True):
            share = s.convert(b, s.mul(b, regions.dtype, high, across), regions.dtype, regions.wide)
            terms.append(s.mul(b, regions.wide, share, read([row, pixel])))
    total = fold(lambda one, other: regions.combine(b, regions.wide, one, other), terms)
    both = b.op(arith.AndIOp, rows.counts, columns.counts)
    return s.select(b, both, total, b.constant(0.0, mlir_element(regions.wide)))
