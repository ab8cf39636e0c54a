"""Slice: positions that are negative, beyond the end or symbolic; forward steps are slices, backward steps read in
reverse."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from xdsl.dialects import arith
from xdsl.ir import SSAValue

from fuseline.errors import FuselineError
from fuseline.frontends.onnx import scalars as s
from fuseline.frontends.onnx.computed_sizes import is_computed
from fuseline.frontends.onnx.node import OnnxNode, normal_axis
from fuseline.frontends.onnx.ops.computed_slices import computed_slice
from fuseline.frontends.onnx.ops.indexing import gather_at
from fuseline.frontends.onnx.ops.slices import axes_and_steps, slice_of
from fuseline.frontends.onnx.registry import onnx_op
from fuseline.frontends.onnx.tensors import Tensor, known, static_size
from fuseline.ir.build import Body
from fuseline.ir.dim import Dim, add, floor_div, lower_bound, maximum, minimum, mul, sub, upper_bound

FAR = 10**9
"""From here on a position of a symbolic axis means its end: exporters write the largest 32- or 64-bit number, tf2onnx
10**9."""

WHOLE = (2**31 - 1, 2**63 - 1)
"""Ends that onnxruntime takes as `None` of a Python slice in either direction; the standard names them for forward
steps only."""

TO_THE_FRONT = -(2**63)


@dataclass(frozen=True)
class Cut:
    """What is taken along one axis: `count` elements from `offset` on, `step` apart (backwards if negative)."""

    offset: Dim
    count: Dim
    step: int


@onnx_op("Slice")
def slice_op(node: OnnxNode) -> Tensor:
    """From starts to ends in steps, per axis; negative positions count from the end. Raises FuselineError: E0107 for a
    step of 0."""
    x = node[0]
    if any(not node.has(name) and is_computed([node[i]]) for name, i in (("starts", 1), ("ends", 2))):
        return computed_slice(node)
    starts, ends = (_positions(node, name, i) for name, i in (("starts", 1), ("ends", 2)))
    axes, steps = axes_and_steps(node, len(starts))
    if 0 in steps:
        raise FuselineError("E0107", "a slice has step 0", hint="steps are positive or negative")
    cuts = [Cut(0, size, 1) for size in x.dims]
    for axis, first, last, step in zip(axes, starts, ends, steps, strict=True):
        at = normal_axis(axis, x.rank)
        last = TO_THE_FRONT if step < 0 and isinstance(last, int) and last in WHOLE else last
        inside = step > 0 and _stays_inside(node, first, last, x.dims[at])
        cuts[at] = Cut(first, _count(sub(last, first), step), step) if inside else cut_of(first, last, step, x.dims[at])
    return taken(node, x, cuts)


def _stays_inside(node: OnnxNode, first: Dim, last: Dim, size: Dim) -> bool:
    """Whether a cut up to a symbolic position of a table needs no clamping, as with positions up to the length of a
    sequence: the reader of the table could not take fewer rows, so that longer sequences are refused when they are
    fed."""
    if (
        not isinstance(size, int)
        or isinstance(last, int)
        or (lower_bound(first) or 0) < 0
        or lower_bound(first) is None
    ):
        return False
    room = lower_bound(sub(last, first))
    return room is not None and room >= 0 and node.program.limit(last, size)


def _count(span: Dim, step: int) -> Dim:
    return maximum(floor_div(add(span, abs(step) - 1), abs(step)), 0)


def _positions(node: OnnxNode, name: str, index: int) -> list[Dim]:
    return list(node.integers(name)) if node.has(name) else node[index].sizes()


def cut_of(first: Dim, last: Dim, step: int, size: Dim) -> Cut:
    """The positions from `first` to `last` (exclusive) of an axis of `size`, as NumPy understands them.

    >>> cut_of(-1, -100, -2, 5)
    Cut(offset=4, count=3, step=-2)
    """
    if step > 0:
        begin, end = _clamped(first, 0, size, size), _clamped(last, 0, size, size)
        span = _span(begin, end, first, size)
    else:
        top = sub(size, 1)
        begin, end = _clamped(first, 0, top, size), _clamped(last, -1, top, size)
        span = sub(begin, end)
    count = _count(span, step)
    return Cut(
        begin, count if (lower_bound(size) or 0) > 0 else minimum(count, size), step
    )  # of nothing no cut takes anything


def _span(begin: Dim, end: Dim, first: Dim, size: Dim) -> Dim:
    """`end - begin`; the last n elements of a symbolic size are `min(n, size)`."""
    if end == size and isinstance(first, int) and first < 0 and not isinstance(size, int):
        return minimum(-first, size)
    return sub(end, begin)


def _clamped(position: Dim, low: int, high: Dim, size: Dim) -> Dim:
    """`position` counted from the front and brought into `low..high`: no slice reads outside its tensor whatever the
    sizes are."""
    if isinstance(position, int) and not isinstance(size, int) and abs(position) >= FAR:
        return high if position > 0 else low
    return maximum(minimum(_from_front(position, size), high), low)


def _from_front(position: Dim, size: Dim) -> Dim:
    least, most = lower_bound(position), upper_bound(position)
    if least is not None and least >= 0:
        return position
    if most is not None and most < 0:
        return add(position, size)
    negative = sub(1, minimum(maximum(add(position, 1), 0), 1))  # 1 below zero, else 0
    return add(position, mul(size, negative))


def taken(node: OnnxNode, x: Tensor, cuts: Sequence[Cut]) -> Tensor:
    """`x` cut along every axis."""
    if x.array is not None and all(isinstance(cut.offset, int) and isinstance(cut.count, int) for cut in cuts):
        return known(x.array[tuple(_as_slice(cut) for cut in cuts)], x.dtype, x.name)
    forward = [cut if cut.step > 0 else Cut(0, size, 1) for cut, size in zip(cuts, x.dims, strict=True)]
    x = slice_of(
        node, x, [cut.offset for cut in forward], [cut.count for cut in forward], [cut.step for cut in forward]
    )
    return x if all(cut.step > 0 for cut in cuts) else _reversed(node, x, cuts)


def _as_slice(cut: Cut) -> slice:
    offset, count = static_size(cut.offset), static_size(cut.count)
    stop = offset + count * cut.step
    return slice(offset, None if stop < 0 else stop, cut.step) if count else slice(0, 0)


def _reversed(node: OnnxNode, x: Tensor, cuts: Sequence[Cut]) -> Tensor:
    """The axes that run backwards, read from their far end."""
    offsets = [node.index(cut.offset) if cut.step < 0 else None for cut in cuts]
    dims = [cut.count if cut.step < 0 else size for cut, size in zip(cuts, x.dims, strict=True)]

    def coordinates(b: Body) -> list[SSAValue]:
        return [_backwards(b, axis, offset, -cuts[axis].step) for axis, offset in enumerate(offsets)]

    return gather_at(node, x, [], dims, coordinates)


def _backwards(b: Body, axis: int, offset: SSAValue | None, step: int) -> SSAValue:
    at = s.loop_index(b, axis)
    if offset is None:
        return at
    back = at if step == 1 else b.op(arith.MuliOp, at, s.index_constant(b, step))
    return b.op(arith.SubiOp, offset, back)
