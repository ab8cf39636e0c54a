"""Pieces of the tensors of a recurrent layer, and what its cells do with them."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from xdsl.dialects import arith, tensor
from xdsl.dialects.builtin import IntegerAttr, i64

from fuseline.frontends.onnx.dtypes import mlir_element
from fuseline.frontends.onnx.emission import contract, elementwise, reshape, result
from fuseline.frontends.onnx.node import OnnxNode
from fuseline.frontends.onnx.ops.slices import slice_of
from fuseline.frontends.onnx.tensors import Tensor, known, static_size
from fuseline.ir.build import tensor_type
from fuseline.ir.dim import Dim


def section(node: OnnxNode, x: Tensor, axis: int, offset: int, size: Dim) -> Tensor:
    """`size` elements along `axis` from `offset` on; constants are cut at once."""
    if x.array is not None:
        cut = tuple(slice(offset, offset + static_size(size)) if i == axis else slice(None) for i in range(x.rank))
        return known(np.ascontiguousarray(x.array[cut]), x.dtype, f"{x.name}_{offset}")
    offsets: list[Dim] = [offset if i == axis else 0 for i in range(x.rank)]
    return slice_of(node, x, offsets, [size if i == axis else dim for i, dim in enumerate(x.dims)], [1] * x.rank)


def gates_of(node: OnnxNode, x: Tensor, axis: int, hidden: int) -> tuple[Tensor, ...]:
    """The section of each gate along `axis`."""
    return tuple(section(node, x, axis, k * hidden, hidden) for k in range(static_size(x.dims[axis]) // hidden))


def entry(node: OnnxNode, x: Tensor, index: int) -> Tensor:
    """Entry `index` of the first axis."""
    return reshape(node, section(node, x, 0, index, 1), x.dims[1:])


def concat(node: OnnxNode, parts: Sequence[Tensor], axis: int) -> Tensor:
    """`parts` one after the other along `axis`."""
    if len(parts) == 1:
        return parts[0]
    if all(t.array is not None for t in parts):
        return known(np.concatenate([t.numbers() for t in parts], axis=axis), parts[0].dtype)
    total = sum(static_size(t.dims[axis]) for t in parts)
    dims = (*parts[0].dims[:axis], total, *parts[0].dims[axis + 1 :])
    type_ = tensor_type(mlir_element(parts[0].dtype), dims)
    op = tensor.ConcatOp.build(
        operands=[[node.ssa(t) for t in parts]], result_types=[type_], properties={"dim": IntegerAttr(axis, i64)}
    )
    return result(node.emit.add(op).result, dims, parts[0].dtype)


def total(node: OnnxNode, x: Tensor, y: Tensor) -> Tensor:
    """`x + y`; of constants at once."""
    if x.is_constant and y.is_constant and x.dims == y.dims:
        return known(x.numbers() + y.numbers(), x.dtype, x.name)
    return elementwise(node, [x, y], x.dtype, lambda b, p, q: b.op(arith.AddfOp, p, q))


def times(node: OnnxNode, h: Tensor, r: Tensor) -> Tensor:
    """`h @ r'`."""
    return contract(node, (h, [0, 2]), (r, [1, 2]), [h.dims[0], r.dims[0], h.dims[1]], [0, 1], h.dtype)


def sum_of_biases(node: OnnxNode, both: Tensor) -> tuple[Tensor, None]:
    """The biases of input and state `[2 * gates * hidden]` added: the cell needs no more than their sum."""
    half = static_size(both.dims[0]) // 2
    return total(node, section(node, both, 0, 0, half), section(node, both, 0, half, half)), None
