"""Scatter at known places: each element of the result knows whether it comes from the data or from an update, and from which.

    out[i] = table[i] < 0 ? data[i] : updates[table[i]]

Updates of one run of neighbours, as slice assignments are exported, become a concat instead. Places that are computed run on the host.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray
from xdsl.dialects import arith, tensor
from xdsl.ir import SSAValue

from fuseline.errors import FuselineError
from fuseline.frontends.onnx import scalars as s
from fuseline.frontends.onnx.dtypes import INDEX_DTYPE, mlir_element
from fuseline.frontends.onnx.emission import mapped, reshape, result
from fuseline.frontends.onnx.node import OnnxNode, normal_axis
from fuseline.frontends.onnx.registry import onnx_op
from fuseline.frontends.onnx.slices import slice_of
from fuseline.frontends.onnx.tensors import NoNativeLowering, Tensor, known, static_sizes
from fuseline.ir.build import Body, element_of, tensor_type
from fuseline.ir.create import create_concat
from fuseline.ir.dim import Dim, add

MOST_PLACES = 1 << 20
"""Elements (or slices) of a table; larger ones would be more constants than they are worth."""


@onnx_op("ScatterND", since=11)
def scatter_nd(node: OnnxNode) -> Tensor:
    """Updates of slices at positions given for the leading axes."""
    data, updates = node[0], node[2]
    places = _places(node)
    lead = static_sizes(data.dims[: places.shape[-1]])
    rows = places.reshape(-1, places.shape[-1]).T
    return _scattered(node, data, updates, _table(node, lead, tuple(rows)), data.dims[len(lead) :])


@onnx_op("ScatterElements", since=11)
def scatter_elements(node: OnnxNode) -> Tensor:
    """Updates at positions given along one axis."""
    data, updates = node[0], node[2]
    along, given = normal_axis(node.integer("axis"), data.rank), _places(node)
    places = [given if axis == along else index for axis, index in enumerate(np.indices(given.shape, np.int64))]
    return _scattered(node, data, updates, _table(node, static_sizes(data.dims), tuple(index.reshape(-1) for index in places)), ())


def _places(node: OnnxNode) -> NDArray[np.int64]:
    if node.text("reduction", "none") != "none":
        raise NoNativeLowering("scatter-reduction", f"updates are combined: {node.text('reduction')}")
    return node[1].numbers().astype(np.int64)


def _table(node: OnnxNode, sizes: Sequence[int], places: tuple[NDArray[np.int64], ...]) -> NDArray[np.int64]:
    """For each place of `sizes` the update that it takes, the last one of several; -1 for none."""
    if np.prod(sizes) > MOST_PLACES:
        raise NoNativeLowering("scatter-size", f"{int(np.prod(sizes))} places")
    wrapped = [np.where(index < 0, index + size, index) for index, size in zip(places, sizes, strict=True)]
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
    sizes: Dim = 0
    for part in parts:
        sizes = add(sizes, part.dims[0])
    op = create_concat([node.ssa(part) for part in parts], 0, tensor_type(mlir_element(data.dtype), (sizes, *rest)))
    return result(node.emit.add(op).result, (sizes, *rest), data.dtype)


def _rows(node: OnnxNode, x: Tensor, first: int, last: int) -> Tensor:
    return slice_of(node, x, [first, *[0] * (x.rank - 1)], [last - first, *x.dims[1:]], [1] * x.rank)


def _chosen(node: OnnxNode, data: Tensor, updates: Tensor, table: NDArray[np.int64]) -> Tensor:
    value, rank = node.ssa(updates), data.rank
    element: Any = element_of(value)

    def body(b: Body, old: SSAValue, place: SSAValue) -> SSAValue:
        zero = b.constant(0, mlir_element(INDEX_DTYPE))
        row = s.as_index(b, b.op(arith.MaxSIOp, place, zero))
        new = b.op(tensor.ExtractOp, value, [row, *(s.loop_index(b, loop) for loop in range(1, rank))], element)
        return s.select(b, s.compare(b, INDEX_DTYPE, "ge", place, zero), new, old)

    places = known(table, name="scatter_table")
    return mapped(node, [(data, list(range(rank))), (places, [0])], data.dims, data.dtype, body)
