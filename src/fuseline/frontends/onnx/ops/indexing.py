"""Operators that read at computed positions: the coordinates are computed in the body, the tensor is read with
`tensor.extract`."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray
from xdsl.dialects import tensor
from xdsl.ir import SSAValue

from fuseline.errors import FuselineError
from fuseline.frontends.onnx import scalars as s
from fuseline.frontends.onnx.emission import mapped, reshape
from fuseline.frontends.onnx.node import OnnxNode
from fuseline.frontends.onnx.ops.regular_positions import taken_by_rule
from fuseline.frontends.onnx.ops.slices import slice_of
from fuseline.frontends.onnx.registry import onnx_op
from fuseline.frontends.onnx.tensors import Tensor, known, static_size
from fuseline.ir.build import Body, element_of
from fuseline.ir.dim import Dim


def gather_at(
    node: OnnxNode,
    source: Tensor,
    operands: Sequence[tuple[Tensor, Sequence[int | None]]],
    dims: Sequence[Dim],
    coordinates: Callable[..., Sequence[SSAValue]],
) -> Tensor:
    """`source[coordinates(b, *elements)]` at every point of `dims`; the function answers one index per axis of the
    source."""
    value = node.ssa(source)

    def body(b: Body, *elements: SSAValue) -> SSAValue:
        return b.op(tensor.ExtractOp, value, list(coordinates(b, *elements)), element_of(value))

    return mapped(node, operands, dims, source.dtype, body)


def position(node: OnnxNode, b: Body, index: SSAValue, indices: Tensor, size: Dim) -> SSAValue:
    """An index element as a position: negative ones count from the end, and what lies outside is the nearest end (ONNX
    calls it an error; a program must not read outside its tensors whatever it is fed)."""
    if (
        indices.is_constant
        and isinstance(size, int)
        and bool(((indices.numbers() >= 0) & (indices.numbers() < size)).all())
    ):
        return s.as_index(b, index)
    zero = b.constant(0, index.type)
    extent = b.constant(size, index.type) if isinstance(size, int) else b.op(_index_to, node.index(size), index)
    counted = s.select(b, s.compare(b, indices.dtype, "lt", index, zero), s.add(b, indices.dtype, index, extent), index)
    last = s.sub(b, indices.dtype, extent, b.constant(1, index.type))
    return s.as_index(b, s.maximum(b, indices.dtype, s.minimum(b, indices.dtype, counted, last), zero))


def _index_to(value: SSAValue, like: SSAValue):
    from xdsl.dialects import arith

    return arith.IndexCastOp(value, like.type)


def _require_inside(node: OnnxNode, indices: NDArray[Any], size: int) -> None:
    """Refuse (E0105) positions that constant data does not have: nothing could be computed."""
    wild = indices[(indices < -size) | (indices >= size)]
    if wild.size:
        hint = "export the model again: other runtimes refuse it, too"
        raise FuselineError(
            "E0105",
            f"index {wild.reshape(-1)[0]} lies outside a constant of {size} along the axis",
            node=node.label,
            hint=hint,
        )


@onnx_op("Gather")
def gather(node: OnnxNode) -> Tensor:
    """Slices of the data along an axis, at the positions that the indices give. Raises FuselineError: E0105 for a
    constant index outside of constant data."""
    data, indices = node[0], node[1]
    axis = node.axis("axis", 0, data.rank)
    if data.array is not None and indices.is_constant and indices.numbers().size * data.array.size <= 1 << 16:
        _require_inside(node, indices.numbers(), data.array.shape[axis])
        return known(np.take(data.array, indices.numbers(), axis=axis), data.dtype)
    dims = (*data.dims[:axis], *indices.dims, *data.dims[axis + 1 :])
    if indices.is_scalar_constant and data.array is None:
        return _one(node, data, axis, int(indices.numbers().reshape(-1)[0]), dims)
    by_rule = taken_by_rule(node, data, axis, indices.numbers()) if indices.is_constant else None
    if by_rule is not None:
        return by_rule
    loops = [axis + i for i in range(indices.rank)]

    def coordinates(b: Body, index: SSAValue) -> list[SSAValue]:
        before = [s.loop_index(b, i) for i in range(axis)]
        after = [s.loop_index(b, i) for i in range(axis + indices.rank, len(dims))]
        return [*before, position(node, b, index, indices, data.dims[axis]), *after]

    return gather_at(node, data, [(indices, loops)], dims, coordinates)


def _one(node: OnnxNode, data: Tensor, axis: int, index: int, dims: Sequence[Dim]) -> Tensor:
    from fuseline.ir.dim import add

    offsets: list[Dim] = [0] * data.rank
    offsets[axis] = add(data.dims[axis], index) if index < 0 else index
    sizes = [1 if i == axis else size for i, size in enumerate(data.dims)]
    return reshape(node, slice_of(node, data, offsets, sizes, [1] * data.rank), dims)


@onnx_op("GatherElements")
def gather_elements(node: OnnxNode) -> Tensor:
    """One element for every index, from its own coordinates along all axes but one."""
    data, indices = node[0], node[1]
    axis = node.axis("axis", 0, data.rank)

    def coordinates(b: Body, index: SSAValue) -> list[SSAValue]:
        return [
            position(node, b, index, indices, data.dims[axis]) if i == axis else s.loop_index(b, i)
            for i in range(data.rank)
        ]

    return gather_at(node, data, [(indices, list(range(indices.rank)))], indices.dims, coordinates)


@onnx_op("GatherND", least_ranks=(1, 1))
def gather_nd(node: OnnxNode) -> Tensor:
    """Slices of the data at the positions that the last axis of the indices spells. Raises FuselineError: E0107 for
    indices that do not fit the data."""
    data, indices = node[0], node[1]
    batch = node.integer("batch_dims")
    depth = static_size(indices.dims[-1])
    if not 0 <= batch <= min(data.rank, indices.rank) - 1 or batch + depth > data.rank:
        raise FuselineError(
            "E0107",
            f"indices {indices.dims} with {batch} batch dimensions do not fit data {data.dims}",
            node=node.label,
        )
    for size, count in zip(data.dims[:batch], indices.dims[:batch], strict=True):
        node.program.require_equal(size, count, node.label)
    lead = indices.rank - 1
    dims = (*indices.dims[:-1], *data.dims[batch + depth :])
    columns = [column(node, indices, i) for i in range(depth)]
    loops = list(range(lead))

    def coordinates(b: Body, *elements: SSAValue) -> list[SSAValue]:
        spelled = [position(node, b, e, indices, data.dims[batch + i]) for i, e in enumerate(elements)]
        return [
            *(s.loop_index(b, i) for i in range(batch)),
            *spelled,
            *(s.loop_index(b, i) for i in range(lead, len(dims))),
        ]

    return gather_at(node, data, [(positions, loops) for positions in columns], dims, coordinates)


def column(node: OnnxNode, indices: Tensor, i: int) -> Tensor:
    """Number `i` along the last axis."""
    if indices.array is not None:
        return known(np.ascontiguousarray(indices.array[..., i]), indices.dtype, f"{indices.name}_{i}")
    offsets: list[Dim] = [*(0 for _ in indices.dims[1:]), i]
    cut = slice_of(node, indices, offsets, [*indices.dims[:-1], 1], [1] * indices.rank)
    return reshape(node, cut, indices.dims[:-1])


_FAR = 1 << 62
"""Further than any diagonal, and still a number of 64 bits when a row is added."""


@onnx_op("Trilu", since=14)
def trilu(node: OnnxNode) -> Tensor:
    """The upper or lower triangle, zeros elsewhere."""
    from xdsl.dialects import arith

    from fuseline.frontends.onnx.dtypes import mlir_element

    x, upper = node[0], node.integer("upper", 1)
    k = node.get(1)
    offset = max(-_FAR, min(_FAR, int(k.numbers().reshape(-1)[0]))) if k is not None else 0

    def body(b: Body, e: SSAValue) -> SSAValue:
        row, column = s.loop_index(b, x.rank - 2), s.loop_index(b, x.rank - 1)
        shifted = b.op(arith.AddiOp, row, s.index_constant(b, offset))
        keep = b.op(arith.CmpiOp, column, shifted, "sge" if upper else "sle")
        return s.select(b, keep, e, b.constant(0, mlir_element(x.dtype)))

    return mapped(node, [(x, list(range(x.rank)))], x.dims, x.dtype, body)
