"""`tensor` ops: shapes, slices, pads. Arrays are never written in place; `tensor.empty` is poison that costs no
memory."""

from __future__ import annotations

from collections.abc import Sequence
from math import prod
from typing import Any

import numpy as np
from xdsl.dialects import tensor
from xdsl.dialects.builtin import DYNAMIC_INDEX, DenseArrayBase, TensorType
from xdsl.ir import Attribute, Operation, SSAValue

from fuseline.evaluation.access import loop_indices
from fuseline.evaluation.program import Array, Scope, evaluates, failure


def mixed_sizes(static: DenseArrayBase[Any], dynamic: Sequence[SSAValue], scope: Scope) -> list[int]:
    """A list of sizes, some static, the others the next of `dynamic`."""
    rest = iter(dynamic)
    return [int(scope[next(rest)]) if value == DYNAMIC_INDEX else int(value) for value in static.get_values()]


def result_shape(type_: Attribute, dynamic: Sequence[SSAValue], scope: Scope) -> list[int]:
    """The shape of a tensor type whose unknown sizes are given in order."""
    assert isinstance(type_, TensorType)
    rest = iter(dynamic)
    return [int(scope[next(rest)]) if size == DYNAMIC_INDEX else size for size in type_.get_shape()]


def checked(op: Operation, array: Array, type_: Attribute) -> Array:
    """`array` if its shape is what the type says; else E0305."""
    assert isinstance(type_, TensorType)
    shape = type_.get_shape()
    if len(shape) != array.ndim or any(s not in (DYNAMIC_INDEX, n) for s, n in zip(shape, array.shape, strict=True)):
        raise failure(op, f"the result has shape {array.shape}, its type is {type_}")
    return array


@evaluates("tensor.empty")
def empty(op: Operation, scope: Scope) -> list[Array]:
    """NaN (the least value, for integers) everywhere, so that reading what was never written shows."""
    assert isinstance(op, tensor.EmptyOp)
    dtype = scope.program.dtype(op.tensor.type)
    poison = np.iinfo(dtype).min if dtype.kind in "iu" else (dtype.kind == "b" or np.nan)
    return [np.broadcast_to(np.asarray(poison, dtype), result_shape(op.tensor.type, op.dynamic_sizes, scope))]


@evaluates("tensor.dim")
def dim(op: Operation, scope: Scope) -> list[Array]:
    """The size along a dimension; raises E0305 for a dimension that is not there."""
    assert isinstance(op, tensor.DimOp)
    shape, axis = scope[op.source].shape, int(scope[op.index])
    if not 0 <= axis < len(shape):
        raise failure(op, f"dimension {axis} of a tensor of rank {len(shape)}")
    return [np.int64(shape[axis])]  # pyright: ignore[reportReturnType]


@evaluates("tensor.cast")
def cast(op: Operation, scope: Scope) -> list[Array]:
    """The same tensor under another static shape; raises E0305 when the shape is not that."""
    return [checked(op, scope[op.operands[0]], op.results[0].type)]


@evaluates("tensor.collapse_shape")
def collapse_shape(op: Operation, scope: Scope) -> list[Array]:
    """Groups of dimensions become one each."""
    assert isinstance(op, tensor.CollapseShapeOp)
    source = scope[op.src]
    groups: Any = op.reassociation.data
    shape = [prod([source.shape[i.value.data] for i in group.data]) for group in groups]
    return [checked(op, source.reshape(shape), op.result.type)]


@evaluates("tensor.expand_shape")
def expand_shape(op: Operation, scope: Scope) -> list[Array]:
    """Dimensions split into groups; raises E0305 when the sizes do not multiply up."""
    assert isinstance(op, tensor.ExpandShapeOp)
    source, shape = scope[op.src], mixed_sizes(op.static_output_shape, op.dynamic_output_shape, scope)
    if prod(shape) != source.size:
        raise failure(op, f"{source.shape} cannot expand to {tuple(shape)}")
    return [checked(op, source.reshape(shape), op.result.type)]


@evaluates("tensor.reshape")
def reshape(op: Operation, scope: Scope) -> list[Array]:
    """Any shape of equal size; raises E0305 otherwise."""
    source, shape = scope[op.operands[0]], [int(n) for n in scope[op.operands[1]]]
    if prod(shape) != source.size:
        raise failure(op, f"{source.shape} cannot be reshaped to {tuple(shape)}")
    return [checked(op, source.reshape(shape), op.results[0].type)]


def _slices(
    op: tensor.ExtractSliceOp | tensor.InsertSliceOp, shape: Sequence[int], scope: Scope
) -> tuple[tuple[slice, ...], list[int]]:
    offsets = mixed_sizes(op.static_offsets, op.offsets, scope)
    sizes = mixed_sizes(op.static_sizes, op.sizes, scope)
    strides = mixed_sizes(op.static_strides, op.strides, scope)
    for axis, (offset, size, stride) in enumerate(zip(offsets, sizes, strides, strict=True)):
        ends = (offset, offset + (size - 1) * stride)
        if size < 0 or (size > 0 and (min(ends) < 0 or max(ends) >= shape[axis])):
            raise failure(
                op, f"dimension {axis} of size {shape[axis]} is sliced at {offset}, {size} elements, stride {stride}"
            )
    return tuple(_slice(*bounds) for bounds in zip(offsets, sizes, strides, strict=True)), sizes


def _slice(offset: int, size: int, stride: int) -> slice:
    stop = offset + size * stride
    return slice(offset, stop if stop >= 0 else None, stride) if size else slice(0, 0)


def _kept_sizes(type_: Attribute, sizes: Sequence[int]) -> list[int]:
    """`sizes` without the unit dimensions that a rank-reducing slice drops."""
    assert isinstance(type_, TensorType)
    wanted = list(type_.get_shape())
    drop = len(sizes) - len(wanted)
    out: list[int] = []
    for size in sizes:
        if size == 1 and drop and wanted[len(out) : len(out) + 1] != [1]:
            drop -= 1
        else:
            out.append(size)
    return out


@evaluates("tensor.extract_slice")
def extract_slice(op: Operation, scope: Scope) -> list[Array]:
    """A strided box of the source, a view; raises E0305 when it leaves the source."""
    assert isinstance(op, tensor.ExtractSliceOp)
    source = scope[op.source]
    where, sizes = _slices(op, source.shape, scope)
    return [checked(op, source[where].reshape(_kept_sizes(op.result.type, sizes)), op.result.type)]


@evaluates("tensor.insert_slice")
def insert_slice(op: Operation, scope: Scope) -> list[Array]:
    """A copy of the destination with a strided box replaced; raises E0305 when it leaves the destination."""
    assert isinstance(op, tensor.InsertSliceOp)
    source, out = scope[op.source], scope[op.dest].copy()
    where, sizes = _slices(op, out.shape, scope)
    if prod(sizes) != source.size:
        raise failure(op, f"a source of shape {source.shape} does not fill a slice of sizes {tuple(sizes)}")
    out[where] = source.reshape(sizes)
    return [out]


@evaluates("tensor.concat")
def concat(op: Operation, scope: Scope) -> list[Array]:
    """The inputs one after the other along a dimension."""
    assert isinstance(op, tensor.ConcatOp)
    return [checked(op, np.concatenate([scope[value] for value in op.inputs], op.dim.value.data), op.result.type)]


@evaluates("tensor.pad")
def pad(op: Operation, scope: Scope) -> list[Array]:
    """The source inside a border whose elements the body computes; raises E0305 for a negative border."""
    assert isinstance(op, tensor.PadOp)
    source = scope[op.source]
    low, high = mixed_sizes(op.static_low, op.low, scope), mixed_sizes(op.static_high, op.high, scope)
    if min((*low, *high), default=0) < 0:
        raise failure(op, f"negative padding low {low} high {high}")
    shape = [below + size + above for below, size, above in zip(low, source.shape, high, strict=True)]
    inner = Scope(scope.program, scope)
    inner.bind(op.region.block.args, loop_indices(shape))
    (border,) = scope.program.run_block(op.region.block, inner)
    out = np.array(np.broadcast_to(border, shape))
    out[tuple(slice(below, below + size) for below, size in zip(low, source.shape, strict=True))] = source
    return [checked(op, out, op.result.type)]


@evaluates("tensor.from_elements")
def from_elements(op: Operation, scope: Scope) -> list[Array]:
    """A tensor from scalars, row-major."""
    type_ = op.results[0].type
    assert isinstance(type_, TensorType)
    return [np.array([scope[value] for value in op.operands], scope.program.dtype(type_)).reshape(type_.get_shape())]


@evaluates("tensor.splat")
def splat(op: Operation, scope: Scope) -> list[Array]:
    """One scalar everywhere, a view."""
    assert isinstance(op, tensor.SplatOp)
    return [np.broadcast_to(scope[op.input], result_shape(op.result.type, op.dynamicSizes, scope))]


@evaluates("tensor.extract")
def extract(op: Operation, scope: Scope) -> list[Array]:
    """One element, or inside a body one element per point of the loops; raises E0305 out of bounds. No point reads
    nothing, wherever it lies."""
    source, where = scope[op.operands[0]], [np.asarray(scope[value]) for value in op.operands[1:]]
    if any(not index.size for index in where):
        return [np.empty(np.broadcast_shapes(*(index.shape for index in where)), source.dtype)]
    _check_indices(op, source, where)
    return [source[tuple(where)]]


def _check_indices(op: Operation, source: Array, where: Sequence[Array]) -> None:
    for axis, index in enumerate(where):
        if index.size and (index.min() < 0 or index.max() >= source.shape[axis]):
            raise failure(op, f"dimension {axis} of size {source.shape[axis]} is read at {index.min()}..{index.max()}")


@evaluates("tensor.insert")
def insert(op: Operation, scope: Scope) -> list[Array]:
    """A copy of the destination with one element replaced; raises E0305 out of bounds."""
    scalar, out, where = (
        scope[op.operands[0]],
        scope[op.operands[1]].copy(),
        [np.asarray(scope[value]) for value in op.operands[2:]],
    )
    _check_indices(op, out, where)
    out[tuple(where)] = scalar
    return [out]
