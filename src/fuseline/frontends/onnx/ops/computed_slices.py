"""Slices from and to positions that are computed: where each begins and how much it takes, the run learns as sizes.

begin = clamp(start < 0 ? start + n : start, 0, n)        count = max(ceil((clamp(end ..) - begin) / step), 0)
"""

from __future__ import annotations

from xdsl.dialects import arith
from xdsl.ir import SSAValue

from fuseline.frontends.onnx import scalars as s
from fuseline.frontends.onnx.computed_sizes import constant, count_between, parts_of, sizes_of_all
from fuseline.frontends.onnx.dtypes import INDEX_DTYPE
from fuseline.frontends.onnx.emission import elementwise, reshape
from fuseline.frontends.onnx.node import OnnxNode, normal_axis
from fuseline.frontends.onnx.ops.slices import axes_and_steps, slice_of
from fuseline.frontends.onnx.tensors import NoNativeLowering, Tensor, known_sizes
from fuseline.ir.build import Body
from fuseline.ir.dim import Dim


def computed_slice(node: OnnxNode) -> Tensor:
    """From starts to ends in steps, per axis, like `Slice`. Raises NoNativeLowering for steps that are computed or not
    positive."""
    x = node[0]
    starts, ends = (_positions_of(node, node[index]) for index in (1, 2))
    axes, steps = axes_and_steps(node, len(starts))
    if any(step < 1 for step in steps):
        raise NoNativeLowering("runtime-value", "a slice backwards whose ends are computed")
    places = [normal_axis(axis, x.rank) for axis in axes]
    cuts = [
        _cut(node, first, last, step, x.dims[at])
        for at, first, last, step in zip(places, starts, ends, steps, strict=True)
    ]
    read = iter(sizes_of_all(node, [(t, x.dims[at]) for at, cut in zip(places, cuts, strict=True) for t in cut]))
    offsets, sizes, strides = list[Dim]([0] * x.rank), list(x.dims), [1] * x.rank
    for at, step in zip(places, steps, strict=True):
        (offsets[at],), (sizes[at],), strides[at] = next(read), next(read), step
    return slice_of(node, x, offsets, sizes, strides)


def _positions_of(node: OnnxNode, t: Tensor) -> list[Tensor]:
    """The elements of `t`, each as a tensor without dimensions."""
    return [element for part in parts_of(t) for element in _elements(node, part)]


def _elements(node: OnnxNode, part: Tensor) -> list[Tensor]:
    if part.array is not None:
        return [_number(node, size) for size in part.sizes()]
    if all(size == 1 for size in part.dims):
        return [reshape(node, part, ())]
    (count,) = part.dims
    assert isinstance(count, int)
    return [reshape(node, slice_of(node, part, [i], [1], [1]), ()) for i in range(count)]


def _cut(node: OnnxNode, first: Tensor, last: Tensor, step: int, size: Dim) -> tuple[Tensor, Tensor]:
    """Where a slice of an axis of `size` begins, and how many elements it takes."""
    whole = _number(node, size)
    at_front = first.array is not None and first.sizes()[0] == 0
    begin = _number(node, 0) if at_front else _clamped(node, first, whole)
    ends = [begin, _clamped(node, last, whole)]
    return begin, elementwise(node, ends, INDEX_DTYPE, lambda b, x, y: count_between(b, x, y, step))


def _number(node: OnnxNode, size: Dim) -> Tensor:
    """A size as a tensor without dimensions."""
    return reshape(node, known_sizes([size]), ())


def _clamped(node: OnnxNode, position: Tensor, size: Tensor) -> Tensor:
    """`position` counted from the front and brought into 0 to `size`."""

    def body(b: Body, at: SSAValue, n: SSAValue) -> SSAValue:
        zero, wide = constant(b, 0), s.convert(b, at, position.dtype, INDEX_DTYPE)
        from_end = s.compare(b, INDEX_DTYPE, "lt", wide, zero)
        front = s.select(b, from_end, b.op(arith.AddiOp, wide, n), wide)
        return b.op(arith.MaxSIOp, b.op(arith.MinSIOp, front, n), zero)

    return elementwise(node, [position, size], INDEX_DTYPE, body)
