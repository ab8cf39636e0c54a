"""Scatter: every element of the updates goes to a place that a row of the indices and its own place in the window give.

    the axes that places are computed along, as one   .. a row for each update ..   the axes that updates cover whole

A window that does not fit the operand is left out, as the standard says.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from xdsl.dialects import arith
from xdsl.ir import SSAValue

from fuseline.errors import FuselineError
from fuseline.frontends.onnx import scalars as s
from fuseline.frontends.onnx.dtypes import INDEX_DTYPE, mlir_element
from fuseline.frontends.onnx.emission import mapped, reshape
from fuseline.frontends.onnx.ops.computed_positions import Positions, scattered_at
from fuseline.frontends.onnx.ops.scatter import scattered_rows
from fuseline.frontends.onnx.ops.shape import transposed
from fuseline.frontends.onnx.tensors import Tensor, known, static_size, static_sizes, view
from fuseline.frontends.stablehlo.hlo import Hlo
from fuseline.frontends.stablehlo.ops.indexing import Places, index_column, places_of
from fuseline.frontends.stablehlo.regions import region_of
from fuseline.frontends.stablehlo.registry import hlo_op
from fuseline.ir.build import Body
from fuseline.ir.dim import Dim, product

_REDUCTIONS = {
    "stablehlo.add": "add",
    "stablehlo.multiply": "mul",
    "stablehlo.maximum": "max",
    "stablehlo.minimum": "min",
}
_OF_FLAGS = {"stablehlo.or": "max", "stablehlo.and": "min", "stablehlo.add": "max", "stablehlo.multiply": "min"}


@hlo_op("scatter")
def scatter(hlo: Hlo) -> Tensor:
    """The operand with updates put in or combined with it. Raises FuselineError (E0306) for several operands at once,
    and for a region that does not combine by one op."""
    if len(hlo.inputs) != 3:
        raise hlo.refusal("several operands scattered at once")
    data, indices, updates = hlo.inputs
    reduction = reduction_of(hlo, data, 0)
    return scattered(hlo, data, indices, updates, places_of(hlo, indices), reduction)


def reduction_of(hlo: Hlo, data: Tensor, number: int) -> str:
    """How the region with that number combines what is there with what comes. Raises FuselineError (E0306) for one
    that is no single op."""
    region = region_of(hlo, number)
    if region.returned == 1:
        return "none"
    names = _OF_FLAGS if data.dtype.kind == "b" else _REDUCTIONS
    found = names.get(region.single or "")
    if found is None:
        raise hlo.refusal("its region does not combine by one sum, product, maximum or minimum")
    return found


def scattered(hlo: Hlo, data: Tensor, indices: Tensor, updates: Tensor, places: Places, reduction: str) -> Tensor:
    """`data` with all updates. Raises FuselineError (E0302) for updates of another rank."""
    if updates.rank != len(hlo_batch(places, updates.rank)) + len(places.window):
        raise FuselineError("E0302", f"{hlo.op.name}: updates of another rank", node=hlo.place)
    if 0 in updates.dims:
        return data
    form = _form(hlo, data, updates, places)
    flat = reshape(hlo.node, transposed(hlo.node, data, [*form.placed, *form.whole]), form.flat_dims(data))
    order = [*form.batch, *form.within, *(form.window[axis] for axis in form.whole)]
    moved = transposed(hlo.node, updates, order)
    count = product(updates.dims[loop] for loop in (*form.batch, *form.within))
    rows = reshape(hlo.node, moved, (count, *(data.dims[axis] for axis in form.whole)))
    at = reshape(hlo.node, _addresses(hlo, data, indices, updates, places, form), (count,))
    out = put_rows(hlo, flat, at, rows, reduction)
    back = reshape(hlo.node, out, [data.dims[axis] for axis in (*form.placed, *form.whole)])
    order = [*form.placed, *form.whole]
    return transposed(hlo.node, back, [order.index(axis) for axis in range(data.rank)])


def hlo_batch(places: Places, rank: int) -> list[int]:
    """The axes of the updates that are no window."""
    return [axis for axis in range(rank) if axis not in places.window]


@dataclass(frozen=True)
class _Form:
    """Which axes of the data are addressed (`placed`) and which are covered whole; of the updates, the batch, the
    window's axis of each axis of the data, and the axes of windows along addressed axes."""

    placed: list[int]
    whole: list[int]
    batch: list[int]
    window: dict[int, int]
    within: list[int]

    def flat_dims(self, data: Tensor) -> tuple[Dim, ...]:
        """The sizes with all addressed axes as one, in front."""
        return (product(data.dims[axis] for axis in self.placed), *(data.dims[axis] for axis in self.whole))


def _form(hlo: Hlo, data: Tensor, updates: Tensor, places: Places) -> _Form:
    kept = places.kept(data.rank)
    if len(kept) != len(places.window):
        raise FuselineError("E0302", f"{hlo.op.name}: windows of another rank", node=hlo.place)
    window = dict(zip(kept, places.window, strict=True))
    addressed = {*places.start, *places.batching, *places.collapsed}
    addressed |= {axis for axis in kept if updates.dims[window[axis]] != data.dims[axis]}
    free = {axis for axis in kept if axis in places.start and updates.dims[window[axis]] == data.dims[axis]}
    placed = [axis for axis in range(data.rank) if axis in addressed - free]
    whole = [axis for axis in range(data.rank) if axis not in placed]
    if free or not placed:  # a window as long as the axis may lie outside all the same: then it is left out
        placed = [axis for axis in range(data.rank) if axis in addressed] or [0]
        whole = [axis for axis in range(data.rank) if axis not in placed]
    batch = hlo_batch(places, updates.rank)
    return _Form(placed, whole, batch, window, [window[axis] for axis in placed if axis in window])


def _addresses(hlo: Hlo, data: Tensor, indices: Tensor, updates: Tensor, places: Places, form: _Form) -> Tensor:
    """Where each row goes in the axes that are addressed, -1 for nowhere: `[*batch, *window along them]`."""
    lead = [axis for axis in range(indices.rank) if axis != places.vector]
    loops = [*form.batch, *form.within]
    dims = [updates.dims[loop] for loop in loops]
    columns = [index_column(hlo, indices, places.vector, i) for i in range(len(places.start))]
    batch_loop = {axis: lead.index(i) for axis, i in zip(places.batching, places.indices_batching, strict=True)}

    def body(b: Body, *elements: SSAValue) -> SSAValue:
        inside, total = b.constant(1, mlir_element(np.dtype(bool))), None
        for axis in form.placed:
            at = s.index_constant(b, 0)
            if axis in batch_loop:
                at = s.loop_index(b, batch_loop[axis])
            if axis in places.start:
                number = places.start.index(axis)
                start = s.as_index(b, s.convert(b, elements[number], indices.dtype, INDEX_DTYPE))
                inside = b.op(arith.AndIOp, inside, _fits(hlo, b, start, data.dims[axis], _size(updates, form, axis)))
                at = start
            if axis in form.window:
                at = b.op(arith.AddiOp, at, s.loop_index(b, loops.index(form.window[axis])))
            total = (
                at
                if total is None
                else b.op(arith.AddiOp, b.op(arith.MuliOp, total, _index(hlo, b, data.dims[axis])), at)
            )
        assert total is not None
        nowhere = b.constant(-1, mlir_element(INDEX_DTYPE))
        return s.select(b, inside, b.op(arith.IndexCastOp, total, mlir_element(INDEX_DTYPE)), nowhere)

    known_ = _known_addresses(data, columns, dims, places, form, loops, updates, batch_loop)
    if known_ is not None:
        return known_
    operands = [(column, list(range(len(form.batch)))) for column in columns]
    return mapped(hlo.node, operands, dims, INDEX_DTYPE, body)


def _size(updates: Tensor, form: _Form, axis: int) -> Dim:
    return updates.dims[form.window[axis]] if axis in form.window else 1


def _index(hlo: Hlo, b: Body, size: Dim) -> SSAValue:
    return s.index_constant(b, size) if isinstance(size, int) else hlo.node.index(size)


def _fits(hlo: Hlo, b: Body, start: SSAValue, size: Dim, window: Dim) -> SSAValue:
    """Whether a window from `start` on lies inside."""
    last = b.op(arith.SubiOp, _index(hlo, b, size), _index(hlo, b, window))
    low = b.op(arith.CmpiOp, start, s.index_constant(b, 0), "sge")
    return b.op(arith.AndIOp, low, b.op(arith.CmpiOp, start, last, "sle"))


def _known_addresses(
    data: Tensor,
    columns: Sequence[Tensor],
    dims: Sequence[Dim],
    places: Places,
    form: _Form,
    loops: Sequence[int],
    updates: Tensor,
    batch_loop: dict[int, int],
) -> Tensor | None:
    """The addresses where all indices and sizes are known."""
    sizes = [*dims, *data.dims]
    if not all(column.is_constant for column in columns) or not all(isinstance(size, int) for size in sizes):
        return None
    shape = static_sizes(dims)
    if int(np.prod(shape)) > 1 << 16:
        return None
    grid = np.indices(shape, np.int64)
    total: NDArray[Any] = np.zeros(shape, np.int64)
    inside = np.ones(shape, bool)
    for axis in form.placed:
        at: NDArray[Any] = np.zeros(shape, np.int64)
        extent = static_size(data.dims[axis])
        if axis in batch_loop:
            at = grid[batch_loop[axis]]
        if axis in places.start:
            start = columns[places.start.index(axis)].numbers().astype(np.int64)
            start = start.reshape(start.shape + (1,) * (len(shape) - start.ndim))
            inside = inside & (start >= 0) & (start <= extent - static_size(_size(updates, form, axis)))
            at = np.broadcast_to(start, shape)
        if axis in form.window:
            at = at + grid[loops.index(form.window[axis])]
        total = total * extent + at
    return known(np.where(inside, total, -1), INDEX_DTYPE)


def put_rows(hlo: Hlo, data: Tensor, at: Tensor, rows: Tensor, reduction: str) -> Tensor:
    """Rows at addresses along the first axis."""
    if reduction == "none" and at.is_constant and isinstance(data.dims[0], int):
        found = scattered_rows(hlo.node, data, rows, at.numbers())
        if found is not None:
            return found
    repeated = view(at, rows.dims, [0])
    positions = Positions(0, data.dims[0], [repeated], s.as_index)
    return scattered_at(hlo.node, data, positions, rows, reduction)


@hlo_op("dynamic_update_slice")
def dynamic_update_slice(hlo: Hlo) -> Tensor:
    """The operand with a box replaced, whose start is computed and moved inside."""
    from fuseline.frontends.stablehlo.ops.boxes import with_box

    return with_box(hlo, hlo[0], hlo[1], hlo.inputs[2:])
