"""Structured ops as lowerings want them: operands broadcast through maps, accumulators filled, views read through."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from math import prod
from typing import Any

import numpy as np
from xdsl.dialects import arith
from xdsl.ir import SSAValue
from xdsl.ir.affine import AffineMap

from fuseline.analysis.indexing_maps import used_dims
from fuseline.errors import FuselineError
from fuseline.frontends.onnx import scalars
from fuseline.frontends.onnx.broadcasting import loops_of
from fuseline.frontends.onnx.dtypes import accumulator, is_float, mlir_element
from fuseline.frontends.onnx.node import OnnxNode
from fuseline.frontends.onnx.operand_maps import renumber_indices, renumbered, unfollowed
from fuseline.frontends.onnx.ops.spreading import spread
from fuseline.frontends.onnx.reshaping import reshape_value
from fuseline.frontends.onnx.tensors import NoNativeLowering, Tensor, static_size, view
from fuseline.ir.build import PARALLEL, REDUCTION, Body, dims_map
from fuseline.ir.dim import Dim, product, to_text

DType = np.dtype[Any]
ElementBody = Callable[..., SSAValue]
FLOAT32 = np.dtype(np.float32)
BOOL = np.dtype(bool)


def result(value: SSAValue, dims: Sequence[Dim], dtype: DType) -> Tensor:
    """An emitted value as a tensor of the model."""
    return Tensor(dtype, tuple(dims), value=value)


class _Operands:
    """Inputs of a generic under collection: every distinct (value, map) once, constants with one element inside the
    body."""

    def __init__(self, node: OnnxNode, rank: int) -> None:
        self.node, self.rank = node, rank
        self.values: list[SSAValue] = []
        self.maps: list[AffineMap] = []
        self._slots: list[Callable[[Body], SSAValue]] = []

    def add(self, t: Tensor, loops: Sequence[int | None]) -> None:
        """One more operand whose axis k follows `loops[k]`."""
        if t.array is not None and t.array.size == 1:
            self._slots.append(self._scalar(t))
            return
        value, map_ = self.node.program.read(t, loops, self.rank, self.node.emit)
        same = (
            i
            for i, (other, other_map) in enumerate(zip(self.values, self.maps, strict=True))
            if other is value and other_map == map_
        )
        at = next(same, len(self.values))
        if at == len(self.values):
            self.values.append(value)
            self.maps.append(map_)
        self._slots.append(lambda b: b.args[at])

    def _scalar(self, t: Tensor) -> Callable[[Body], SSAValue]:
        element = mlir_element(t.dtype)
        if t.is_constant:
            number = t.numbers().reshape(-1)[0].item()
            return lambda b: b.constant(number, element)
        outside = self.node.program.integer(t.sizes()[0], element, self.node.emit)
        return lambda b: outside

    def elements(self, b: Body) -> list[SSAValue]:
        """The operands' elements inside the body."""
        return [slot(b) for slot in self._slots]


def elementwise(
    node: OnnxNode, operands: Sequence[Tensor], dtype: DType, body: ElementBody, dims: Sequence[Dim] | None = None
) -> Tensor:
    """`body(b, *elements)` at every point of the space that the operands broadcast to (or of `dims`)."""
    out = tuple(dims) if dims is not None else node.broadcast(*(t.dims for t in operands))
    collected = _Operands(node, len(out))
    for t in operands:
        whole = spread(node, t, out)
        collected.add(whole, loops_of(whole.dims, out))
    return _parallel(node, collected, out, dtype, body)


def mapped(
    node: OnnxNode,
    operands: Sequence[tuple[Tensor, Sequence[int | None]]],
    dims: Sequence[Dim],
    dtype: DType,
    body: ElementBody,
) -> Tensor:
    """Like `elementwise`, with the loop that each axis of each operand follows given."""
    collected = _Operands(node, len(dims))
    for t, loops in operands:
        collected.add(t, loops)
    return _parallel(node, collected, tuple(dims), dtype, body)


def _parallel(node: OnnxNode, collected: _Operands, dims: tuple[Dim, ...], dtype: DType, body: ElementBody) -> Tensor:
    out = node.program.empty(dims, dtype, node.emit)
    value = node.emit.elementwise(collected.values, out, lambda b: body(b, *collected.elements(b)), collected.maps)
    return result(value, dims, dtype)


def filled(node: OnnxNode, value: float | int, dims: Sequence[Dim], dtype: DType) -> SSAValue:
    """A tensor of one value."""
    return node.emit.fill(value, node.program.empty(dims, dtype, node.emit))


def reduce(
    node: OnnxNode,
    operands: Sequence[Tensor],
    axes: Sequence[int],
    start: float | int | Tensor,
    body: ElementBody,
    *,
    dtype: DType,
    keep: bool = False,
) -> Tensor:
    """Reduce `axes` of the operands' common space: `body(b, *elements, accumulator)`, from `start` (a number, or a
    tensor of the result's sizes), in `dtype`.

    With `keep` the answer is a view with the reduced dimensions as ones.
    """
    dims = node.broadcast(*(t.dims for t in operands))
    operands = [spread(node, t, dims) for t in operands]
    kept = [axis for axis in range(len(dims)) if axis not in axes]
    collected = _collected(node, operands, dims)
    if any(dims[axis] != 1 for axis in unfollowed(collected.maps, axes)):
        # a repeated dimension is reduced: some operand must spell it
        solid = result(node.ssa(broadcast_to(operands[0], dims)), dims, operands[0].dtype)
        collected = _collected(node, [solid, *operands[1:]], dims)
    init = node.ssa(start) if isinstance(start, Tensor) else filled(node, start, [dims[axis] for axis in kept], dtype)
    maps = [*collected.maps, dims_map(len(dims), kept)]
    # a unit axis that nothing follows is no loop
    loops = [axis for axis in range(len(dims)) if any(axis in used_dims(map_) for map_ in maps)]
    op = node.emit.generic(
        collected.values,
        [init],
        [renumbered(map_, loops) for map_ in maps],
        [REDUCTION if axis in axes else PARALLEL for axis in loops],
        lambda b: [body(b, *collected.elements(b), b.args[-1])],
    )
    if len(loops) < len(dims):
        renumber_indices(op, loops)
    small = result(op.results[0], [dims[axis] for axis in kept], dtype)
    return with_units(small, axes, len(dims)) if keep else small


def _collected(node: OnnxNode, operands: Sequence[Tensor], dims: Sequence[Dim]) -> _Operands:
    collected = _Operands(node, len(dims))
    for t in operands:
        collected.add(t, loops_of(t.dims, dims))
    return collected


def with_units(t: Tensor, axes: Sequence[int], rank: int) -> Tensor:
    """`t` as a view of `rank` dimensions with ones at `axes`."""
    kept = [axis for axis in range(rank) if axis not in axes]
    dims: list[Dim] = [1] * rank
    for axis, size in zip(kept, t.dims, strict=True):
        dims[axis] = size
    return view(t, dims, kept)


def contract(
    node: OnnxNode,
    lhs: tuple[Tensor, Sequence[int | None]],
    rhs: tuple[Tensor, Sequence[int | None]],
    loops: Sequence[Dim],
    out_loops: Sequence[int],
    dtype: DType,
) -> Tensor:
    """Sum of products over the loops that are not in `out_loops`; each operand comes with the loop of each of its axes.

    Integers are widened to `dtype` inside the body; 16-bit floats accumulate in f32 and are rounded once at the end.
    """
    program, emit, rank = node.program, node.emit, len(loops)
    wide = accumulator(dtype)
    summed = [axis for axis in range(rank) if axis not in out_loops and loops[axis] != 1]
    sides = [program.read(*side, rank, emit) for side in (lhs, rhs)]
    for at, (t, axes) in enumerate((lhs, rhs)):
        if any(loop in axes for loop in unfollowed([map_ for _, map_ in sides], summed)):
            sides[at] = (
                program.ssa(t, emit),
                dims_map(rank, list(axes)),
            )  # the tensor itself spells what its view or its base leaves out
    dims = [loops[axis] for axis in out_loops]
    maps = [*(map_ for _, map_ in sides), dims_map(rank, list(out_loops))]
    run_axes = [
        axis for axis in range(rank) if any(axis in used_dims(map_) for map_ in maps)
    ]  # a sum over one element is no loop
    iterators = [PARALLEL if axis in out_loops else REDUCTION for axis in run_axes]
    body = _multiply_add(lhs[0].dtype, rhs[0].dtype, wide)
    op = emit.generic(
        [value for value, _ in sides],
        [filled(node, 0, dims, wide)],
        [renumbered(map_, run_axes) for map_ in maps],
        iterators,
        body,
    )
    return cast(node, result(op.results[0], dims, wide), dtype)


def _multiply_add(left: DType, right: DType, wide: DType) -> Callable[[Body], Sequence[SSAValue]]:
    multiply, add = (arith.MulfOp, arith.AddfOp) if is_float(wide) else (arith.MuliOp, arith.AddiOp)

    def body(b: Body) -> Sequence[SSAValue]:
        x, y, acc = b.args
        return [b.op(add, acc, b.op(multiply, scalars.convert(b, x, left, wide), scalars.convert(b, y, right, wide)))]

    return body


def multiply_add_body(left: DType, right: DType, wide: DType) -> Callable[[Body], Sequence[SSAValue]]:
    """The body of contractions and convolutions: `acc + left * right`, operands widened first."""
    return _multiply_add(left, right, wide)


def cast(node: OnnxNode, t: Tensor, dtype: DType, *, asked: bool = False) -> Tensor:
    """`t` converted to `dtype` (itself where it has it); `asked` by the model, or only how the value is stored."""
    if t.dtype == dtype:
        return t
    return elementwise(node, [t], dtype, lambda b, x: scalars.convert(b, x, t.dtype, dtype, asked=asked))


def reshape(node: OnnxNode, t: Tensor, dims: Sequence[Dim]) -> Tensor:
    """`t` with other dimensions and as many elements: a view where only ones come or go.

    Raises:
        FuselineError: E0107 for another number of elements, where it is known.
    """
    dims = tuple(dims)
    if dims == t.dims:
        return t
    count, wanted = product(t.dims), product(dims)
    if isinstance(count, int) and isinstance(wanted, int) and count != wanted:
        found, asked = (", ".join(map(to_text, sizes)) for sizes in (t.dims, dims))
        raise FuselineError(
            "E0107", f"the sizes [{found}] hold {count} elements, [{asked}] take {wanted}", node=node.label
        )
    if t.array is not None and all(isinstance(size, int) for size in dims):
        sizes = [static_size(size) for size in dims]
        if min(sizes, default=0) < 0 or prod(sizes) != t.array.size:
            raise FuselineError("E0107", f"{t.array.size} elements cannot have the shape {sizes}", node=node.label)
        return Tensor(t.dtype, dims, array=t.array.reshape(sizes), name=t.name)
    if [s for s in dims if s != 1] == [s for s in t.dims if s != 1]:
        return _unit_view(t, dims)
    if 0 in dims:
        return result(node.program.empty(dims, t.dtype, node.emit), dims, t.dtype)
    return Tensor(t.dtype, dims, value=reshape_value(node.emit, node.ssa(t), t.dims, dims, node.index), reshaped=t)


def _unit_view(t: Tensor, dims: tuple[Dim, ...]) -> Tensor:
    positions = iter([axis for axis, size in enumerate(dims) if size != 1])
    return view(t, dims, [None if size == 1 else next(positions) for size in t.dims])


def collapse(node: OnnxNode, t: Tensor, groups: Sequence[Sequence[int]]) -> Tensor:
    """`t` with each group of neighbouring axes as one."""
    return reshape(node, t, [product(t.dims[axis] for axis in group) for group in groups])


def broadcast_to(t: Tensor, dims: Sequence[Dim]) -> Tensor:
    """`t` repeated to `dims`, as a view."""
    dims = tuple(dims)
    return t if t.dims == dims else view(t, dims, loops_of(t.dims, dims))


def require_rank(t: Tensor, low: int, high: int | None = None) -> None:
    """Refuse (NoNativeLowering) ranks outside `low..high`."""
    if t.rank < low or (high is not None and t.rank > high):
        raise NoNativeLowering("unsupported-rank", f"rank {t.rank}")
