"""Scatter: every element of the updates goes where a row of the indices and its own position in the window say.

    the axes that are addressed, as one   .. a row for each update ..   the axes that updates cover whole

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
from fuseline.frontends.stablehlo.ops.indexing import DimensionNumbers, dimension_numbers, index_column
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
    return scattered(hlo, data, indices, updates, dimension_numbers(hlo, indices), reduction)


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


def scattered(
    hlo: Hlo, data: Tensor, indices: Tensor, updates: Tensor, numbers: DimensionNumbers, reduction: str
) -> Tensor:
    """`data` with all updates. Raises FuselineError (E0302) for updates of another rank."""
    if updates.rank != len(hlo_batch(numbers, updates.rank)) + len(numbers.window):
        raise FuselineError("E0302", f"{hlo.op.name}: updates of another rank", node=hlo.location)
    if 0 in updates.dims:
        return data
    form = _form(hlo, data, updates, numbers)
    flat = reshape(hlo.node, transposed(hlo.node, data, [*form.addressed, *form.whole]), form.flat_dims(data))
    order = [*form.batch, *form.within, *(form.window[axis] for axis in form.whole)]
    moved = transposed(hlo.node, updates, order)
    count = product(updates.dims[loop] for loop in (*form.batch, *form.within))
    rows = reshape(hlo.node, moved, (count, *(data.dims[axis] for axis in form.whole)))
    at = reshape(hlo.node, _addresses(hlo, data, indices, updates, numbers, form), (count,))
    out = put_rows(hlo, flat, at, rows, reduction)
    back = reshape(hlo.node, out, [data.dims[axis] for axis in (*form.addressed, *form.whole)])
    order = [*form.addressed, *form.whole]
    return transposed(hlo.node, back, [order.index(axis) for axis in range(data.rank)])


def hlo_batch(numbers: DimensionNumbers, rank: int) -> list[int]:
    """The axes of the updates that are no window."""
    return [axis for axis in range(rank) if axis not in numbers.window]


@dataclass(frozen=True)
class _Form:
    """Which axes of the data are `addressed` and which are covered whole; of the updates, the batch, the
    window's axis of each axis of the data, and the axes of windows along addressed axes."""

    addressed: list[int]
    whole: list[int]
    batch: list[int]
    window: dict[int, int]
    within: list[int]

    def flat_dims(self, data: Tensor) -> tuple[Dim, ...]:
        """The sizes with all addressed axes as one, in front."""
        return (product(data.dims[axis] for axis in self.addressed), *(data.dims[axis] for axis in self.whole))


def _form(hlo: Hlo, data: Tensor, updates: Tensor, numbers: DimensionNumbers) -> _Form:
    kept = numbers.kept(data.rank)
    if len(kept) != len(numbers.window):
        raise FuselineError("E0302", f"{hlo.op.name}: windows of another rank", node=hlo.location)
    window = dict(zip(kept, numbers.window, strict=True))
    named = {*numbers.start, *numbers.batching, *numbers.collapsed}
    named |= {axis for axis in kept if updates.dims[window[axis]] != data.dims[axis]}
    free = {axis for axis in kept if axis in numbers.start and updates.dims[window[axis]] == data.dims[axis]}
    addressed = [axis for axis in range(data.rank) if axis in named - free]
    whole = [axis for axis in range(data.rank) if axis not in addressed]
    if free or not addressed:  # a window as long as the axis may lie outside all the same: then it is left out
        addressed = [axis for axis in range(data.rank) if axis in named] or [0]
        whole = [axis for axis in range(data.rank) if axis not in addressed]
    batch = hlo_batch(numbers, updates.rank)
    return _Form(addressed, whole, batch, window, [window[axis] for axis in addressed if axis in window])


def _addresses(
    hlo: Hlo, data: Tensor, indices: Tensor, updates: Tensor, numbers: DimensionNumbers, form: _Form
) -> Tensor:
    """Where each row goes in the axes that are addressed, -1 for nowhere: `[*batch, *window along them]`."""
    lead = [axis for axis in range(indices.rank) if axis != numbers.vector]
    loops = [*form.batch, *form.within]
    dims = [updates.dims[loop] for loop in loops]
    columns = [index_column(hlo, indices, numbers.vector, i) for i in range(len(numbers.start))]
    batch_loop = {axis: lead.index(i) for axis, i in zip(numbers.batching, numbers.indices_batching, strict=True)}

    def body(b: Body, *elements: SSAValue) -> SSAValue:
        inside, total = b.constant(1, mlir_element(np.dtype(bool))), None
        for axis in form.addressed:
            at = s.index_constant(b, 0)
            if axis in batch_loop:
                at = s.loop_index(b, batch_loop[axis])
            if axis in numbers.start:
                number = numbers.start.index(axis)
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

    known_ = _known_addresses(data, columns, dims, numbers, form, loops, updates, batch_loop)
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
    numbers: DimensionNumbers,
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
    for axis in form.addressed:
        at: NDArray[Any] = np.zeros(shape, np.int64)
        extent = static_size(data.dims[axis])
        if axis in batch_loop:
            at = grid[batch_loop[axis]]
        if axis in numbers.start:
            start = columns[numbers.start.index(axis)].numbers().astype(np.int64)
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
