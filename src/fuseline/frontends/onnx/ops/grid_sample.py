"""GridSample: an image read between its pixels, at the places that a grid gives."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import product

from xdsl.dialects import arith, math, tensor
from xdsl.ir import SSAValue

from fuseline.frontends.onnx import scalars as s
from fuseline.frontends.onnx.dtypes import INDEX_DTYPE, mlir_element
from fuseline.frontends.onnx.emission import DType, mapped
from fuseline.frontends.onnx.node import OnnxNode
from fuseline.frontends.onnx.ops.indexing import column
from fuseline.frontends.onnx.registry import onnx_op
from fuseline.frontends.onnx.tensors import NoNativeLowering, Tensor
from fuseline.ir.build import Body, element_of
from fuseline.ir.dim import Dim

NEAREST, LINEAR = ("nearest",), ("linear", "bilinear")
MARGIN = 2.0
"""Coordinates are cut off this far outside the image: all that lies there reads the same, and fits an index."""


@dataclass(frozen=True)
class _Axis:
    """One spatial axis of the image: its size as an index and as a float, both captured from outside the body."""

    size: SSAValue
    extent: SSAValue


@onnx_op("GridSample", since=16)
def grid_sample(node: OnnxNode) -> Tensor:
    """Nearest or linear interpolation; outside the image are zeros or the pixels at its border."""
    image, grid = node[0], node[1]
    mode, padding = node.text("mode", "linear"), node.text("padding_mode", "zeros")
    if mode not in (*NEAREST, *LINEAR) or padding not in ("zeros", "border") or image.dtype != grid.dtype or image.dtype.itemsize < 4:
        raise NoNativeLowering("unsupported-mode", f"{mode} with {padding} in {image.dtype}")
    spatial = image.rank - 2
    dims = (*image.dims[:2], *grid.dims[1:-1])
    source = node.ssa(image)
    axes = [_axis(node, size, image.dtype) for size in image.dims[2:]]
    loops = [0, *range(2, 2 + spatial)]
    places = [(column(node, grid, spatial - 1 - axis), loops) for axis in range(spatial)]  # a grid names the last axis first

    def body(b: Body, *elements: SSAValue) -> SSAValue:
        at = [_pixel(node, b, image.dtype, e, axis) for e, axis in zip(elements, axes, strict=True)]
        if mode in NEAREST:
            return _read(b, source, image.dtype, [s.round_half_even(b, place) for place in at], axes, padding)
        return _interpolated(b, source, image.dtype, at, axes, padding)

    return mapped(node, places, dims, image.dtype, body)


def _axis(node: OnnxNode, size: Dim, dtype: DType) -> _Axis:
    return _Axis(node.index(size), node.program.integer(size, mlir_element(dtype), node.emit))


def _pixel(node: OnnxNode, b: Body, dtype: DType, place: SSAValue, axis: _Axis) -> SSAValue:
    """Where -1..1 of a grid lies in pixels: on their centres (align_corners), or on the outer edges of the first and last one."""

    def number(value: float) -> SSAValue:
        return b.constant(value, mlir_element(dtype))

    from_zero = s.add(b, dtype, place, number(1.0))
    if node.integer("align_corners"):
        at = s.mul(b, dtype, s.mul(b, dtype, from_zero, number(0.5)), s.sub(b, dtype, axis.extent, number(1.0)))
    else:
        at = s.mul(b, dtype, s.sub(b, dtype, s.mul(b, dtype, from_zero, axis.extent), number(1.0)), number(0.5))
    inside = s.maximum(b, dtype, s.minimum(b, dtype, at, s.add(b, dtype, axis.extent, number(MARGIN))), number(-MARGIN))
    return s.select(b, s.compare(b, dtype, "eq", at, at), inside, number(-MARGIN))  # not a number: outside


def _interpolated(b: Body, source: SSAValue, dtype: DType, at: list[SSAValue], axes: list[_Axis], padding: str) -> SSAValue:
    one = b.constant(1.0, mlir_element(dtype))
    lower = [b.op(math.FloorOp, place) for place in at]
    corners = [(low, s.add(b, dtype, low, one)) for low in lower]
    shares = [s.sub(b, dtype, place, low) for place, low in zip(at, lower, strict=True)]
    weights = [(s.sub(b, dtype, one, share), share) for share in shares]
    total: SSAValue | None = None
    for choice in product(range(2), repeat=len(axes)):
        term = _read(b, source, dtype, [pair[side] for pair, side in zip(corners, choice, strict=True)], axes, padding)
        for pair, side in zip(weights, choice, strict=True):
            term = s.mul(b, dtype, term, pair[side])
        total = term if total is None else s.add(b, dtype, total, term)
    assert total is not None
    return total


def _read(b: Body, source: SSAValue, dtype: DType, at: list[SSAValue], axes: list[_Axis], padding: str) -> SSAValue:
    """The pixel at whole coordinates; those outside are zero, or the nearest one inside."""
    zero, one = s.index_constant(b, 0), s.index_constant(b, 1)
    places = [s.as_index(b, s.convert(b, place, dtype, INDEX_DTYPE)) for place in at]
    last = [b.op(arith.SubiOp, axis.size, one) for axis in axes]
    safe = [b.op(arith.MaxSIOp, b.op(arith.MinSIOp, place, end), zero) for place, end in zip(places, last, strict=True)]
    value = b.op(tensor.ExtractOp, source, [s.loop_index(b, 0), s.loop_index(b, 1), *safe], element_of(source))
    if padding == "border":
        return value
    inside = [b.op(arith.CmpiOp, place, there, "eq") for place, there in zip(places, safe, strict=True)]
    for condition in inside:
        value = s.select(b, condition, value, b.constant(0.0, mlir_element(dtype)))
    return value
