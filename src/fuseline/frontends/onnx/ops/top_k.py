"""TopK: every element's rank along the axis, the positions in the order of the ranks, and what stands there.

    rank[i] = number of j that come before i, up to k;    positions[r] = sum over i of (rank[i] == r ? i : 0);
            values[r] = x[positions[r]]

Elements are compared as integers of the same order, in which NaN is the largest and both zeros are one. Written out
this is quadratic; the CPU sorts the row and makes the positions in one walk (`analysis/walks.py`).
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from xdsl.dialects import arith
from xdsl.ir import SSAValue

from fuseline.errors import FuselineError
from fuseline.frontends.onnx import scalars as s
from fuseline.frontends.onnx.dtypes import INDEX_DTYPE, accumulator, is_float, is_unsigned, mlir_element
from fuseline.frontends.onnx.emission import elementwise, filled, reduce, result, with_units
from fuseline.frontends.onnx.node import OnnxNode, normal_axis
from fuseline.frontends.onnx.ops.arg_extremes import arg_of
from fuseline.frontends.onnx.ops.computed_positions import Positions
from fuseline.frontends.onnx.ops.indexing import gather_at
from fuseline.frontends.onnx.registry import onnx_op
from fuseline.frontends.onnx.tensors import NoNativeLowering, Tensor, view
from fuseline.ir.build import Body
from fuseline.ir.dim import Dim, lower_bound, maximum, sub, to_text, upper_bound
from fuseline.ir.order_bodies import comes_before, ordered_integer, turned

MOST_ELEMENTS = 1 << 17
"""Elements along the axis: rows that are known to be longer are selected from on the host."""


@onnx_op("TopK")
def top_k(node: OnnxNode) -> list[Tensor]:
    """The `k` largest (or smallest) elements along an axis in order, of equals the first first, and their positions.
    Raises FuselineError: E0107 for more elements than the axis has."""
    x, axis = node[0], normal_axis(node.integer("axis", -1), node[0].rank)
    count, size = _count(node), x.dims[axis]
    most = upper_bound(size)
    if most is not None and most > MOST_ELEMENTS:
        raise NoNativeLowering("top-k-size", f"{size} elements")
    if isinstance(size, int) and isinstance(count, int) and count > size:
        raise FuselineError("E0107", f"{count} of {size} elements are asked for", node=node.label)
    if isinstance(count, int):
        node.program.require_at_least(size, count, node.label)
    elif maximum(size, count) != size:
        node.program.require_at_least(sub(size, count), 0, node.label)
    positions = positions_in_order(node, [integer_keys(node, x, largest=bool(node.integer("largest", 1)))], count, axis)

    def position(b: Body, at: SSAValue) -> list[SSAValue]:
        return [s.as_index(b, at) if i == axis else s.loop_index(b, i) for i in range(x.rank)]

    return [gather_at(node, x, [(positions, list(range(x.rank)))], positions.dims, position), positions]


def _count(node: OnnxNode) -> Dim:
    given: list[Dim] = [node.integer("k")] if node.has("k") else node[1].sizes()  # an attribute before operator set 10
    least = lower_bound(given[0]) if given else None
    if least is None or least < 0:
        raise NoNativeLowering("top-k-size", f"k is {', '.join(map(to_text, given))}")
    return given[0]


def integer_keys(node: OnnxNode, x: Tensor, *, largest: bool) -> Tensor:
    """Signed integers that come in the order of the elements, or with `largest` in the opposite one."""
    wide = accumulator(x.dtype) if is_float(x.dtype) else x.dtype
    key = np.dtype(np.int32 if max(wide.itemsize, 4) == 4 else np.int64)

    def body(b: Body, e: SSAValue) -> SSAValue:
        number = s.convert(b, e, x.dtype, wide) if is_float(x.dtype) else e
        found = ordered_integer(b, number, unsigned=is_unsigned(x.dtype))
        return turned(b, found) if largest else found

    return elementwise(node, [x], key, body)


def positions_in_order(node: OnnxNode, keys: Sequence[Tensor], count: Dim, axis: int) -> Tensor:
    """Which elements along `axis` are the first `count` in the order of integer keys, the most significant ones
    first; of equals the first comes first."""
    if count == 0:
        dims = [count if i == axis else size for i, size in enumerate(keys[0].dims)]
        return result(filled(node, 0, dims, INDEX_DTYPE), dims, INDEX_DTYPE)
    if count == 1 and len(keys) == 1:
        return with_units(arg_of(node, keys[0], axis, largest=False, last=False), [axis], keys[0].rank)
    size = keys[0].dims[axis]
    limit = count if isinstance(count, int) and count != size else None
    ranks = _ranks(node, keys, axis, limit)
    return Positions(axis, count, [ranks], s.as_index).combined(node, None, "add")


def _ranks(node: OnnxNode, keys: Sequence[Tensor], axis: int, limit: int | None) -> Tensor:
    """How many elements along `axis` come before each, up to `limit`."""
    rank, dims = keys[0].rank, (*keys[0].dims, keys[0].dims[axis])
    here, there = list(range(rank)), [rank if i == axis else i for i in range(rank)]
    counted = mlir_element(INDEX_DTYPE)

    def body(b: Body, *elements: SSAValue) -> SSAValue:
        former = b.op(arith.CmpiOp, s.loop_index(b, rank), s.loop_index(b, axis), "slt")
        first = comes_before(b, elements[:-1:2], elements[1:-1:2], former)
        total = b.op(arith.AddiOp, elements[-1], b.op(arith.ExtUIOp, first, counted))
        return total if limit is None else b.op(arith.MinSIOp, total, b.constant(limit, counted))

    read = [view(key, dims, loops) for key in keys for loops in (there, here)]
    return reduce(node, read, [rank], 0, body, dtype=INDEX_DTYPE)
