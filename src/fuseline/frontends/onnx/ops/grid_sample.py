"""GridSample: an image read between its pixels, at the places that a grid gives.

Along each axis a place is read from one, two or four pixels around it, each with its share (`_taps`); the image is
summed over their product. Every pixel is brought into the image by itself: one outside is zero, the nearest one, or the
one that it is the mirror image of.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import reduce

from xdsl.dialects import arith, math, tensor
from xdsl.ir import SSAValue

from fuseline.frontends.onnx import scalars as s
from fuseline.frontends.onnx.dtypes import INDEX_DTYPE, accumulator, is_float, mlir_element
from fuseline.frontends.onnx.emission import DType, cast, mapped
from fuseline.frontends.onnx.node import OnnxNode
from fuseline.frontends.onnx.ops.indexing import column
from fuseline.frontends.onnx.registry import onnx_op
from fuseline.frontends.onnx.tensors import NoNativeLowering, Tensor
from fuseline.ir.build import Body, element_of

SPELLINGS = {"bilinear": "linear", "bicubic": "cubic"}
"""How operator sets before 20 call what later ones have for any number of axes."""

PADDINGS = ("zeros", "border", "reflection")
MARGIN = 4.0
"""Coordinates are cut off this far outside the image, where not reflected: all that lies there reads the same, and fits
an index."""

CUBIC = -0.75
"""The coefficient of Keys' kernel, as in PyTorch and onnxruntime."""


@dataclass(frozen=True)
class _Axis:
    """One spatial axis of the image: its size as an index and as a float, both captured from outside the body."""

    size: SSAValue
    extent: SSAValue


@dataclass(frozen=True)
class _Tap:
    """One pixel along an axis: where it is read, its share (None: all), and whether it lies inside (None: it always
    does)."""

    position: SSAValue
    share: SSAValue | None
    inside: SSAValue | None


@dataclass(frozen=True)
class _Sampler:
    """What the body of one node computes: places in `dtype`, values in `wide`."""

    node: OnnxNode
    mode: str
    padding: str
    centred: bool
    dtype: DType
    wide: DType

    def number(self, b: Body, value: float) -> SSAValue:
        """A constant among the places."""
        return b.constant(value, mlir_element(self.dtype))


@onnx_op("GridSample", since=16)
def grid_sample(node: OnnxNode) -> Tensor:
    """Nearest, linear or cubic interpolation; outside the image are zeros, the pixels at its border, or its mirror
    image."""
    image, grid = node[0], node[1]
    sampler = _sampler(node, image, grid)
    spatial = image.rank - 2
    dims = (*image.dims[:2], *grid.dims[1:-1])
    source = node.ssa(image)
    axes = [
        _Axis(node.index(size), node.program.integer(size, mlir_element(sampler.dtype), node.emit))
        for size in image.dims[2:]
    ]
    loops = [0, *range(2, 2 + spatial)]
    columns = [column(node, grid, spatial - 1 - axis) for axis in range(spatial)]  # a grid names the last axis first
    positions = [(cast(node, column, sampler.dtype), loops) for column in columns]

    def body(b: Body, *elements: SSAValue) -> SSAValue:
        taps = [_taps(sampler, b, e, axis) for e, axis in zip(elements, axes, strict=True)]
        total = _sum(sampler, b, taps, lambda chosen: _read(b, source, image.dtype, sampler.wide, chosen))
        return s.convert(b, total, sampler.wide, image.dtype)

    return mapped(node, positions, dims, image.dtype, body)


def _sampler(node: OnnxNode, image: Tensor, grid: Tensor) -> _Sampler:
    mode, padding = node.text("mode", "linear"), node.text("padding_mode", "zeros")
    mode = SPELLINGS.get(mode, mode)
    if mode not in ("nearest", "linear", "cubic") or padding not in PADDINGS:
        raise NoNativeLowering("unsupported-mode", f"{mode} with {padding}")
    if (mode != "nearest" and not is_float(image.dtype)) or not is_float(grid.dtype):
        raise NoNativeLowering("unsupported-mode", f"{mode} in {image.dtype} at places in {grid.dtype}")
    return _Sampler(
        node, mode, padding, bool(node.integer("align_corners")), accumulator(grid.dtype), accumulator(image.dtype)
    )


def _pixel(sampler: _Sampler, b: Body, position: SSAValue, axis: _Axis) -> SSAValue:
    """Where -1..1 of a grid lies in pixels: on their centres (align_corners), or on the outer edges of the first and
    last one."""
    dtype = sampler.dtype
    from_zero = s.add(b, dtype, position, sampler.number(b, 1.0))
    if sampler.centred:
        at = s.mul(
            b,
            dtype,
            s.mul(b, dtype, from_zero, sampler.number(b, 0.5)),
            s.sub(b, dtype, axis.extent, sampler.number(b, 1.0)),
        )
    else:
        at = s.mul(
            b,
            dtype,
            s.sub(b, dtype, s.mul(b, dtype, from_zero, axis.extent), sampler.number(b, 1.0)),
            sampler.number(b, 0.5),
        )
    if sampler.padding == "reflection":
        return at
    return _between(b, dtype, at, sampler.number(b, -MARGIN), s.add(b, dtype, axis.extent, sampler.number(b, MARGIN)))


def _between(b: Body, dtype: DType, at: SSAValue, low: SSAValue, high: SSAValue) -> SSAValue:
    """`at` in `low..high`; `low` where it is not a number."""
    inside = s.maximum(b, dtype, s.minimum(b, dtype, at, high), low)
    return s.select(b, s.compare(b, dtype, "eq", at, at), inside, low)


def _taps(sampler: _Sampler, b: Body, element: SSAValue, axis: _Axis) -> list[_Tap]:
    """The pixels along one axis that a place is read from."""
    at, dtype = _pixel(sampler, b, element, axis), sampler.dtype
    if sampler.mode == "nearest":
        return [_tap(sampler, b, s.round_half_even(b, at), None, axis)]
    low = b.op(math.FloorOp, at)
    share = s.sub(b, dtype, at, low)
    first, shares = (0, _linear(sampler, b, share)) if sampler.mode == "linear" else (-1, _cubic(sampler, b, share))
    positions = [s.add(b, dtype, low, sampler.number(b, float(first + i))) for i in range(len(shares))]
    return [
        _tap(sampler, b, position, s.convert(b, weight, dtype, sampler.wide), axis)
        for position, weight in zip(positions, shares, strict=True)
    ]


def _linear(sampler: _Sampler, b: Body, share: SSAValue) -> list[SSAValue]:
    return [s.sub(b, sampler.dtype, sampler.number(b, 1.0), share), share]


def _cubic(sampler: _Sampler, b: Body, share: SSAValue) -> list[SSAValue]:
    """Keys' kernel at the distances `1 + t, t, 1 - t, 2 - t`."""
    one, two = sampler.number(b, 1.0), sampler.number(b, 2.0)
    rest = s.sub(b, sampler.dtype, one, share)
    far = (CUBIC, -5 * CUBIC, 8 * CUBIC, -4 * CUBIC)
    near = (CUBIC + 2, -(CUBIC + 3), 0.0, 1.0)
    distances = [s.add(b, sampler.dtype, share, one), share, rest, s.sub(b, sampler.dtype, two, share)]
    return [_polynomial(sampler, b, d, c) for d, c in zip(distances, (far, near, near, far), strict=True)]


def _polynomial(sampler: _Sampler, b: Body, at: SSAValue, coefficients: Sequence[float]) -> SSAValue:
    first, *rest = (sampler.number(b, c) for c in coefficients)
    return reduce(lambda total, c: s.add(b, sampler.dtype, s.mul(b, sampler.dtype, total, at), c), rest, first)


def _tap(sampler: _Sampler, b: Body, whole: SSAValue, share: SSAValue | None, axis: _Axis) -> _Tap:
    """The pixel at a whole coordinate, brought into the image."""
    dtype, zero = sampler.dtype, s.index_constant(b, 0)
    if sampler.padding == "reflection":
        whole = _reflected(sampler, b, whole, axis)
    position = s.as_index(b, s.convert(b, whole, dtype, INDEX_DTYPE))
    safe = b.op(
        arith.MaxSIOp, b.op(arith.MinSIOp, position, b.op(arith.SubiOp, axis.size, s.index_constant(b, 1))), zero
    )
    return _Tap(safe, share, b.op(arith.CmpiOp, position, safe, "eq") if sampler.padding == "zeros" else None)


def _reflected(sampler: _Sampler, b: Body, at: SSAValue, axis: _Axis) -> SSAValue:
    """`at` mirrored at the first and last centres (align_corners) or at the outer edges, as often as it takes; into the
    image in any case."""
    dtype, one, two = sampler.dtype, sampler.number(b, 1.0), sampler.number(b, 2.0)
    edge = sampler.number(b, 0.0 if sampler.centred else 0.5)
    last = s.sub(b, dtype, axis.extent, one)
    period = s.maximum(
        b, dtype, s.mul(b, dtype, two, last if sampler.centred else axis.extent), one
    )  # an image of one pixel has no inside
    from_edge = s.add(b, dtype, at, edge)
    turns = b.op(math.FloorOp, s.div(b, dtype, from_edge, period))
    rest = s.sub(b, dtype, from_edge, s.mul(b, dtype, turns, period))
    folded = s.sub(b, dtype, s.minimum(b, dtype, rest, s.sub(b, dtype, period, rest)), edge)
    return _between(b, dtype, folded, sampler.number(b, 0.0), last)


def _sum(
    sampler: _Sampler, b: Body, taps: Sequence[Sequence[_Tap]], read: Callable[[list[_Tap]], SSAValue]
) -> SSAValue:
    """What `read` answers for one tap per axis, in shares summed over all of them."""
    if not taps:
        return read([])
    terms = [(tap.share, _sum(sampler, b, taps[1:], lambda chosen, tap=tap: read([tap, *chosen]))) for tap in taps[0]]
    shares = [value if share is None else s.mul(b, sampler.wide, value, share) for share, value in terms]
    return reduce(lambda total, term: s.add(b, sampler.wide, total, term), shares)


def _read(b: Body, source: SSAValue, dtype: DType, wide: DType, taps: Sequence[_Tap]) -> SSAValue:
    """The pixel at a tap of every axis; zero where one lies outside."""
    value = b.op(
        tensor.ExtractOp,
        source,
        [s.loop_index(b, 0), s.loop_index(b, 1), *(tap.position for tap in taps)],
        element_of(source),
    )
    inside = [tap.inside for tap in taps if tap.inside is not None]
    value = s.convert(b, value, dtype, wide)
    if not inside:
        return value
    everywhere = reduce(lambda one, other: b.op(arith.AndIOp, one, other), inside)
    return s.select(b, everywhere, value, b.constant(0, mlir_element(wide)))
