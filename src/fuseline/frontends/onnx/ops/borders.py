"""Borders that repeat the tensor itself: Pad's reflect, edge and wrap modes as reads at positions that are computed, or
looked up in a table where one turn does not reach them all."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray
from xdsl.dialects import arith
from xdsl.ir import SSAValue

from fuseline.analysis.border_modes import BORDER_MODES, BorderMode, reach
from fuseline.frontends.onnx import scalars as s
from fuseline.frontends.onnx.node import OnnxNode
from fuseline.frontends.onnx.ops.indexing import gather_at
from fuseline.frontends.onnx.tensors import NoNativeLowering, Tensor, known
from fuseline.ir.build import Body
from fuseline.ir.dim import Dim, add, maximum, sub


def bordered(node: OnnxNode, x: Tensor, low: Sequence[Dim], high: Sequence[Dim], mode: str) -> Tensor:
    """`x` with `low` and `high` more elements per axis, numbers or sizes, read from inside by `mode`."""
    if mode not in BORDER_MODES:
        raise NoNativeLowering("pad-mode", mode)
    changed = [axis for axis in range(x.rank) if low[axis] != 0 or high[axis] != 0]
    tables = {axis: _table(x, axis, low[axis], high[axis], mode) for axis in changed}
    looked_up = {axis: table for axis, table in tables.items() if table is not None}
    for axis in changed:
        _require_reach(node, x.dims[axis], maximum(low[axis], high[axis]), mode)
    sizes = [size for axis in changed for size in (x.dims[axis], low[axis])]
    run = {size: node.index(size) for size in sizes if not isinstance(size, int)}
    dims = [add(size, add(before, after)) for size, before, after in zip(x.dims, low, high, strict=True)]

    def place(b: Body, *elements: SSAValue) -> list[SSAValue]:
        found = dict(zip(looked_up, elements, strict=True))
        return [along(b, axis, found) for axis in range(x.rank)]

    def along(b: Body, axis: int, found: dict[int, SSAValue]) -> SSAValue:
        if axis in found:
            return s.as_index(b, found[axis])
        loop = s.loop_index(b, axis)
        if axis not in tables:
            return loop
        before, extent = (
            s.index_constant(b, size) if isinstance(size, int) else run[size] for size in (low[axis], x.dims[axis])
        )
        return _source(b, loop, before, extent, mode)

    return gather_at(node, x, [(table, [axis]) for axis, table in looked_up.items()], dims, place)


def _require_reach(node: OnnxNode, size: Dim, amount: Dim, mode: BorderMode) -> None:
    """One turn must reach every position around a size, or by an amount, that only the run knows: smaller sizes are
    refused when they are fed, as in onnxruntime."""
    if mode == "edge":
        amount = 1
    elif mode == "reflect":
        amount = add(amount, 1)
    room, least = (size, amount) if isinstance(amount, int) else (sub(size, amount), 0)
    if not isinstance(room, int):
        node.program.require_at_least(room, least, node.label)


def _table(x: Tensor, axis: int, low: Dim, high: Dim, mode: BorderMode) -> Tensor | None:
    """Where to read along an axis of known sizes; None where one turn reaches every position, which are then
    computed."""
    size = x.dims[axis]
    if size == 0:
        raise NoNativeLowering("empty-border", "nothing to repeat")
    if not (isinstance(size, int) and isinstance(low, int) and isinstance(high, int)):
        return None
    most = reach(size, mode)
    return None if most is None or max(low, high) <= most else known(_positions(size, low, high, mode))


def _positions(size: int, low: int, high: int, mode: str) -> NDArray[np.int64]:
    """For every output position along an axis the input position that it repeats, by `reflect` or `wrap`: an edge
    reaches everywhere."""
    at = np.arange(-low, size + high, dtype=np.int64)
    if mode == "wrap":
        return at % size
    period = max(2 * (size - 1), 1)
    turned = at % period
    return np.minimum(turned, period - turned) if size > 1 else np.zeros_like(at)


def _source(b: Body, loop: SSAValue, low: SSAValue, size: SSAValue, mode: BorderMode) -> SSAValue:
    """The position behind `loop`: `loop - low` clamped, mirrored at the first and last element, or taken around."""
    zero, one = s.index_constant(b, 0), s.index_constant(b, 1)
    at = b.op(arith.SubiOp, loop, low)
    last = b.op(arith.SubiOp, size, one)
    if mode == "edge":
        return b.op(arith.MinSIOp, b.op(arith.MaxSIOp, at, zero), last)
    if mode == "reflect":
        mirrored = b.op(arith.MaxSIOp, at, b.op(arith.SubiOp, zero, at))
        return b.op(arith.MinSIOp, mirrored, b.op(arith.SubiOp, b.op(arith.AddiOp, last, last), mirrored))
    before, beyond = b.op(arith.CmpiOp, at, zero, "slt"), b.op(arith.CmpiOp, at, size, "sge")
    turned = s.select(b, beyond, b.op(arith.SubiOp, at, size), at)
    return s.select(b, before, b.op(arith.AddiOp, at, size), turned)
