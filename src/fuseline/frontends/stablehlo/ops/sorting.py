"""Sorting: the operands along an axis in the order that a comparator says.

A comparator that compares keys, one after the other, each upwards or downwards, is read as those keys; any other one by
how many elements come before each, which is quadratic.
"""

from __future__ import annotations

import numpy as np
from xdsl.dialects import arith
from xdsl.ir import SSAValue

from fuseline.errors import FuselineError
from fuseline.frontends.onnx import scalars as s
from fuseline.frontends.onnx.dtypes import INDEX_DTYPE, is_float, mlir_element
from fuseline.frontends.onnx.emission import cast, elementwise, reduce
from fuseline.frontends.onnx.ops.computed_positions import Positions
from fuseline.frontends.onnx.ops.indexing import gather_at
from fuseline.frontends.onnx.ops.top_k import integer_keys, positions_in_order
from fuseline.frontends.onnx.tensors import Tensor, known, view
from fuseline.frontends.stablehlo.comparators import Key, keys_of
from fuseline.frontends.stablehlo.hlo import Hlo
from fuseline.frontends.stablehlo.regions import region_of
from fuseline.frontends.stablehlo.registry import hlo_op
from fuseline.frontends.stablehlo.scalars import total_order
from fuseline.ir.build import Body


@hlo_op("sort")
def sort(hlo: Hlo) -> list[Tensor]:
    """All operands in the order of the comparator; equal ones stay in order."""
    axis = hlo.integer("dimension", -1)
    axis = axis + hlo[0].rank if axis < 0 else axis
    if not 0 <= axis < hlo[0].rank:
        raise FuselineError("E0302", f"{hlo.op.name}: axis {axis} of {hlo[0].rank}", node=hlo.location)
    if hlo[0].dims[axis] == 1:
        return hlo.inputs
    keys = keys_of(region_of(hlo, 0))
    positions = _by_keys(hlo, keys, axis) if keys else _by_ranks(hlo, axis)
    return [taken_along(hlo, t, positions, axis) for t in hlo.inputs]


def _by_keys(hlo: Hlo, keys: list[Key], axis: int) -> Tensor:
    """The order by keys, the first being the most significant."""
    numbers = [
        integer_keys(hlo.node, _integers(hlo, hlo.inputs[key.operand], key), largest=key.largest) for key in keys
    ]
    return positions_in_order(hlo.node, numbers, hlo[0].dims[axis], axis)


def _integers(hlo: Hlo, t: Tensor, key: Key) -> Tensor:
    """A key as TopK takes it: floats in total order become integers, if NaN and zeros of both signs are not one."""
    if not is_float(t.dtype) or key.canonical:
        return t
    dtype = np.dtype(f"int{8 * t.dtype.itemsize}")
    return elementwise(hlo.node, [t], dtype, lambda b, x: total_order(b, t.dtype, x), t.dims)


def taken_along(hlo: Hlo, t: Tensor, positions: Tensor, axis: int) -> Tensor:
    """`t` at computed positions along an axis."""

    def coordinates(b: Body, at: SSAValue) -> list[SSAValue]:
        return [s.as_index(b, at) if i == axis else s.loop_index(b, i) for i in range(t.rank)]

    return gather_at(hlo.node, t, [(positions, list(range(t.rank)))], positions.dims, coordinates)


def _by_ranks(hlo: Hlo, axis: int) -> Tensor:
    """How many elements come before each: those that the comparator puts there, and of equal ones the former."""
    region, count = region_of(hlo, 0), len(hlo.inputs)
    rank = hlo[0].rank
    dims = (*hlo[0].dims, hlo[0].dims[axis])
    here = [view(t, dims, list(range(rank))) for t in hlo.inputs]
    there = [view(t, dims, [rank if i == axis else i for i in range(rank)]) for t in hlo.inputs]

    def body(b: Body, *elements: SSAValue) -> SSAValue:
        mine, other, total = elements[:count], elements[count : 2 * count], elements[-1]
        first = region.emit(b, [e for pair in zip(other, mine, strict=True) for e in pair])[0]
        after = region.emit(b, [e for pair in zip(mine, other, strict=True) for e in pair])[0]
        former = b.op(arith.CmpiOp, s.loop_index(b, rank), s.loop_index(b, axis), "slt")
        neither = b.op(arith.XOrIOp, after, b.constant(1, after.type))
        before = b.op(arith.OrIOp, first, b.op(arith.AndIOp, former, neither))
        return b.op(arith.AddiOp, total, b.op(arith.ExtUIOp, before, mlir_element(INDEX_DTYPE)))

    ranks = reduce(hlo.node, [*here, *there], [rank], 0, body, dtype=INDEX_DTYPE)
    return Positions(axis, dims[axis], [ranks], s.as_index).combined(hlo.node, None, "add")


@hlo_op("chlo.top_k")
def top_k(hlo: Hlo) -> list[Tensor]:
    """The largest elements of the last axis, and where they are."""
    x, count = hlo[0], hlo.shape()[-1]
    numbers = _integers(hlo, x, Key(0, largest=True, canonical=False))
    limit = known(np.asarray([count], np.int64))
    small = numbers if numbers.dtype.kind != "b" else cast(hlo.node, numbers, np.dtype(np.int8))
    at = hlo.onnx("TopK", [small, limit], outputs=2, axis=x.rank - 1, largest=1, sorted=1)[1]
    return [taken_along(hlo, x, at, x.rank - 1), cast(hlo.node, at, hlo.dtype(1))]
