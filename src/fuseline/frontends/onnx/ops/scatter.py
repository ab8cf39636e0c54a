"""Scatter. At known places each element of the result knows whether it comes from the data or from an update, and from
which.

    out[i] = table[i] < 0 ? data[i] : updates[table[i]]

Updates of one run of neighbours, as slice assignments are exported, become a concat instead. Updates that are combined,
and places that are computed: `computed_positions.py`.
"""

from __future__ import annotations

from collections.abc import Sequence
from math import prod
from typing import Any

import numpy as np
from numpy.typing import NDArray
from xdsl.dialects import arith, tensor
from xdsl.ir import SSAValue

from fuseline.errors import FuselineError
from fuseline.frontends.onnx import scalars as s
from fuseline.frontends.onnx.dtypes import INDEX_DTYPE, mlir_element
from fuseline.frontends.onnx.emission import elementwise, mapped, reshape, result
from fuseline.frontends.onnx.node import OnnxNode, normal_axis
from fuseline.frontends.onnx.ops.computed_positions import Positions, filled_up, scattered_at
from fuseline.frontends.onnx.ops.indexing import column, position
from fuseline.frontends.onnx.ops.slices import slice_of
from fuseline.frontends.onnx.registry import onnx_op
from fuseline.frontends.onnx.tensors import NoNativeLowering, Tensor, known, static_size, static_sizes, view
from fuseline.ir.build import Body, element_of, tensor_type
from fuseline.ir.constant_budget import folded_name
from fuseline.ir.dim import Dim, product, sum_of, to_text
from fuseline.ir.fast.create import create_concat

MOST_PLACES = 1 << 20
"""Elements (or slices) of a table; larger ones would be more constants than they are worth."""


@onnx_op("ScatterND", since=11, least_ranks=(1, 1))
def scatter_nd(node: OnnxNode) -> Tensor:
    """Updates of slices at positions given for the leading axes. Raises FuselineError: E0107 for indices or updates
    that do not fit the data, and constant indices outside of it."""
    data, indices, updates = node[0], node[1], node[2]
    depth = static_size(indices.dims[-1])
    if depth > data.rank:
        raise FuselineError("E0107", f"indices of {depth} axes for data of {data.rank}", node=node.label)
    _check_updates(node, updates, (*indices.dims[:-1], *data.dims[depth:]))
    if 0 in indices.dims[:-1]:
        return data
    if not _is_known(node):
        return _rows_at(node, data, indices, updates, depth)
    positions = indices.numbers().astype(np.int64)
    lead = static_sizes(data.dims[:depth])
    return _scattered(node, data, updates, _table(node, lead, tuple(positions.reshape(-1, depth).T)), data.dims[depth:])


def _rows_at(node: OnnxNode, data: Tensor, indices: Tensor, updates: Tensor, depth: int) -> Tensor:
    """Slices of the data, whose first `depth` axes count as one, at computed places."""
    if depth == 0:
        raise NoNativeLowering("scatter-form", "indices of no axis")
    lead, rest, count = data.dims[:depth], data.dims[depth:], product(indices.dims[:-1])
    rows = reshape(node, updates, (count, *rest))
    columns = [view(reshape(node, column(node, indices, i), (count,)), rows.dims, [0]) for i in range(depth)]

    def row(b: Body, *elements: SSAValue) -> SSAValue:
        at = position(node, b, elements[0], indices, lead[0])
        for element, size in zip(elements[1:], lead[1:], strict=True):
            along = s.index_constant(b, size) if isinstance(size, int) else node.index(size)
            at = b.op(arith.AddiOp, b.op(arith.MuliOp, at, along), position(node, b, element, indices, size))
        return at

    flat = reshape(node, data, (product(lead), *rest))
    out = scattered_at(node, flat, Positions(0, flat.dims[0], columns, row), rows, node.text("reduction", "none"))
    return reshape(node, out, data.dims)


@onnx_op("Scatter", since=9)
@onnx_op("ScatterElements", since=11)
def scatter_elements(node: OnnxNode) -> Tensor:
    """Updates at positions given along one axis. Raises FuselineError: E0107 as `scatter_nd` does."""
    data, updates = node[0], node[2]
    _check_updates(node, updates, node[1].dims)
    if 0 in node[1].dims:
        return data
    along = normal_axis(node.integer("axis"), data.rank)
    if not _is_known(node):
        return _elements_at(node, data, node[1], updates, along)
    given = node[1].numbers().astype(np.int64)
    positions = [given if axis == along else index for axis, index in enumerate(np.indices(given.shape, np.int64))]
    return _scattered(
        node, data, updates, _table(node, static_sizes(data.dims), tuple(index.reshape(-1) for index in positions)), ()
    )


def _elements_at(node: OnnxNode, data: Tensor, indices: Tensor, updates: Tensor, axis: int) -> Tensor:
    """Elements at computed places along `axis`. Where the updates do not cover the data beside it, those that are
    missing go nowhere."""
    size, reduction = data.dims[axis], node.text("reduction", "none")
    covered = all(a == b for i, (a, b) in enumerate(zip(indices.dims, data.dims, strict=True)) if i != axis)
    if covered:
        positions = Positions(axis, size, [indices], lambda b, element: position(node, b, element, indices, size))
        return scattered_at(node, data, positions, updates, reduction)
    element = mlir_element(INDEX_DTYPE)
    normal = elementwise(
        node, [indices], INDEX_DTYPE, lambda b, e: b.op(arith.IndexCastOp, position(node, b, e, indices, size), element)
    )
    positions = Positions(axis, size, [filled_up(node, normal, data.dims, axis, -1)], s.as_index)
    return scattered_at(node, data, positions, filled_up(node, updates, data.dims, axis, 0), reduction)


def _check_updates(node: OnnxNode, updates: Tensor, wanted: Sequence[Dim]) -> None:
    """Refuse (E0107) updates that have not one element for each place; symbols are compared when the program runs."""
    differ = any(
        isinstance(a, int) and isinstance(b, int) and a != b for a, b in zip(updates.dims, wanted, strict=False)
    )
    if differ or updates.rank != len(wanted):
        found, asked = (", ".join(map(to_text, dims)) for dims in (updates.dims, wanted))
        raise FuselineError(
            "E0107", f"updates have sizes [{found}], data and indices ask for [{asked}]", node=node.label
        )


def _is_known(node: OnnxNode) -> bool:
    """Whether each element of the result takes a known update, and no more than one."""
    return node[1].is_constant and node.text("reduction", "none") == "none"


def _table(node: OnnxNode, sizes: Sequence[int], positions: tuple[NDArray[np.int64], ...]) -> NDArray[np.int64]:
    """For each place of `sizes` the update that it takes, the last one of several; -1 for none."""
    if len(positions) != len(sizes):
        raise FuselineError(
            "E0107", f"{node.op_type} has places of {len(positions)} axes in {len(sizes)}", node=node.label
        )
    if prod(sizes) > MOST_PLACES or not node.program.may_make(prod(sizes), INDEX_DTYPE):
        raise NoNativeLowering("scatter-size", f"{int(np.prod(sizes))} places")
    wrapped = [np.where(index < 0, index + size, index) for index, size in zip(positions, sizes, strict=True)]
    if any(((index < 0) | (index >= size)).any() for index, size in zip(wrapped, sizes, strict=True)):
        raise FuselineError("E0107", f"{node.op_type} writes outside of sizes {tuple(sizes)}", node=node.label)
    table = np.full(int(np.prod(sizes)), -1, np.int64)
    flat = np.ravel_multi_index(tuple(wrapped), tuple(sizes)) if sizes else np.zeros(1, np.int64)
    table[flat] = np.arange(flat.size)
    return table


def _scattered(node: OnnxNode, data: Tensor, updates: Tensor, table: NDArray[np.int64], rest: Sequence[Dim]) -> Tensor:
    """`data` with its leading axes taken as one, of `len(table)` slices of sizes `rest`."""
    count = int(np.prod(static_sizes(updates.dims[: updates.rank - len(rest)])))
    if count == 0:
        return data
    flat, slices = reshape(node, data, (len(table), *rest)), reshape(node, updates, (count, *rest))
    run = _run(table, count)
    out = _joined(node, flat, slices, run) if run is not None else _chosen(node, flat, slices, table)
    return reshape(node, out, data.dims)


def scattered_rows(node: OnnxNode, data: Tensor, rows: Tensor, places: NDArray[np.int64]) -> Tensor | None:
    """`data` with row i of `rows` at the known place `places[i]` along the first axis, nowhere for -1; the last one of
    several. None where there are too many places, or none in `data`."""
    size = static_size(data.dims[0])
    if size > MOST_PLACES or not node.program.may_make(size, INDEX_DTYPE):
        return None
    table = np.full(size, -1, np.int64)
    inside = places >= 0
    table[places[inside]] = np.nonzero(inside)[0]
    run = _run(table, len(places))
    return _joined(node, data, rows, run) if run is not None else _chosen(node, data, rows, table)


def _run(table: NDArray[np.int64], count: int) -> int | None:
    """Where all `count` updates stand one after the other, None where they do not."""
    (taken,) = np.nonzero(table >= 0)
    if count == 0 or len(taken) != count or not np.array_equal(table[taken[0] : taken[0] + count], np.arange(count)):
        return None
    return int(taken[0])


def _joined(node: OnnxNode, data: Tensor, updates: Tensor, start: int) -> Tensor:
    rest, total = data.dims[1:], data.dims[0]
    assert isinstance(total, int)
    end = start + static_sizes(updates.dims[:1])[0]
    pieces = [(0, start), (end, total)]
    before, after = ([_rows(node, data, first, last)] if last > first else [] for first, last in pieces)
    parts = [*before, updates, *after]
    if len(parts) == 1:
        return updates
    sizes = sum_of(part.dims[0] for part in parts)
    op = create_concat([node.ssa(part) for part in parts], 0, tensor_type(mlir_element(data.dtype), (sizes, *rest)))
    return result(node.emit.add(op).result, (sizes, *rest), data.dtype)


def _rows(node: OnnxNode, x: Tensor, first: int, last: int) -> Tensor:
    return slice_of(node, x, [first, *[0] * (x.rank - 1)], [last - first, *x.dims[1:]], [1] * x.rank)


def _chosen(node: OnnxNode, data: Tensor, updates: Tensor, table: NDArray[np.int64]) -> Tensor:
    value, rank = node.ssa(updates), data.rank
    element: Any = element_of(value)

    def body(b: Body, old: SSAValue, update: SSAValue) -> SSAValue:
        zero = b.constant(0, mlir_element(INDEX_DTYPE))
        row = s.as_index(b, b.op(arith.MaxSIOp, update, zero))
        new = b.op(tensor.ExtractOp, value, [row, *(s.loop_index(b, loop) for loop in range(1, rank))], element)
        return s.select(b, s.compare(b, INDEX_DTYPE, "ge", update, zero), new, old)

    positions = known(table, name=folded_name("scatter_table"))
    return mapped(node, [(data, list(range(rank))), (positions, [0])], data.dims, data.dtype, body)
