"""TopK: every element's rank along the axis, the positions in the order of the ranks, and what stands there.

    rank[i] = number of j that come before i, up to k;    positions[r] = sum over i of (rank[i] == r ? i : 0);
            values[r] = x[positions[r]]

Elements are compared as integers of the same order, in which NaN is the largest and both zeros are one. Written out
this is quadratic; the CPU sorts the row and makes the positions in one walk (`analysis/walks.py`).
"""

from __future__ import annotations

from typing import Any

import numpy as np
from xdsl.dialects import arith
from xdsl.ir import SSAValue

from fuseline.errors import FuselineError
from fuseline.frontends.onnx import scalars as s
from fuseline.frontends.onnx.dtypes import INDEX_DTYPE, accumulator, is_float, is_unsigned, mlir_element
from fuseline.frontends.onnx.emission import elementwise, reduce
from fuseline.frontends.onnx.node import OnnxNode, normal_axis
from fuseline.frontends.onnx.ops.computed_positions import Positions
from fuseline.frontends.onnx.ops.indexing import gather_at
from fuseline.frontends.onnx.registry import onnx_op
from fuseline.frontends.onnx.tensors import NoNativeLowering, Tensor, view
from fuseline.ir.build import Body
from fuseline.ir.dim import Dim, lower_bound, maximum, sub, to_text, upper_bound

MOST_ELEMENTS = 1 << 13
"""Elements along the axis: longer rows are selected from on the host."""


@onnx_op("TopK")
def top_k(node: OnnxNode) -> list[Tensor]:
    """The `k` largest (or smallest) elements along an axis in order, of equals the first first, and their positions.
    Raises FuselineError: E0107 for more elements than the axis has."""
    x, axis = node[0], normal_axis(node.integer("axis", -1), node[0].rank)
    count, size = _count(node), x.dims[axis]
    most = upper_bound(size)
    if most is None or most > MOST_ELEMENTS:
        raise NoNativeLowering("top-k-size", f"{size} elements")
    if isinstance(size, int) and isinstance(count, int) and count > size:
        raise FuselineError("E0107", f"{count} of {size} elements are asked for", node=node.label)
    if isinstance(count, int):
        node.program.require_at_least(size, count, node.label)
    elif maximum(size, count) != size:
        node.program.require_at_least(sub(size, count), 0, node.label)
    limit = upper_bound(count)
    limit = most if limit is None else min(limit, most)
    positions = _positions(node, _ranks(node, _keys(node, x), axis, max(limit, 1)), count, axis)

    def position(b: Body, at: SSAValue) -> list[SSAValue]:
        return [s.as_index(b, at) if i == axis else s.loop_index(b, i) for i in range(x.rank)]

    return [gather_at(node, x, [(positions, list(range(x.rank)))], positions.dims, position), positions]


def _count(node: OnnxNode) -> Dim:
    given = [node.integer("k")] if node.has("k") else node[1].sizes()  # an attribute before operator set 10
    if not given or (lower_bound(given[0]) or 0) < 0 or lower_bound(given[0]) is None:
        raise NoNativeLowering("top-k-size", f"k is {', '.join(map(to_text, given))}")
    return given[0]


def _keys(node: OnnxNode, x: Tensor) -> Tensor:
    """Signed integers that come in the order of the elements, or with `largest` in the opposite one."""
    wide = accumulator(x.dtype)
    bits = max(8 * wide.itemsize, 32)
    key = np.dtype(f"int{bits}")
    flip = -1 if node.integer("largest", 1) else 0

    def body(b: Body, e: SSAValue) -> SSAValue:
        number = (
            _of_float(b, s.convert(b, e, x.dtype, wide), wide, key)
            if is_float(x.dtype)
            else _of_integer(b, e, x.dtype, key)
        )
        return b.op(arith.XOrIOp, number, b.constant(flip, mlir_element(key))) if flip else number

    return elementwise(node, [x], key, body)


def _of_integer(b: Body, e: SSAValue, dtype: np.dtype[Any], key: np.dtype[Any]) -> SSAValue:
    number = s.convert(b, e, dtype, key)
    if is_unsigned(dtype) and dtype.itemsize == key.itemsize:
        return b.op(arith.XOrIOp, number, b.constant(np.iinfo(key).min, mlir_element(key)))
    return number


def _of_float(b: Body, e: SSAValue, dtype: np.dtype[Any], key: np.dtype[Any]) -> SSAValue:
    """The bits, those behind the sign turned over where it is set."""
    element, info = mlir_element(key), np.iinfo(key)
    bits = b.op(arith.BitcastOp, e, element)
    sign = b.op(arith.ShRSIOp, bits, b.constant(8 * key.itemsize - 1, element))
    ordered = b.op(arith.XOrIOp, bits, b.op(arith.AndIOp, sign, b.constant(info.max, element)))
    zero = s.compare(b, dtype, "eq", e, b.constant(0.0, mlir_element(dtype)))
    proper = s.select(b, zero, b.constant(0, element), ordered)
    return s.select(b, s.compare(b, dtype, "ne", e, e), b.constant(info.max, element), proper)


def _ranks(node: OnnxNode, keys: Tensor, axis: int, limit: int) -> Tensor:
    """How many elements along `axis` come before each, up to `limit`: what is smaller, and of what is equal the
    former."""
    rank, dims = keys.rank, (*keys.dims, keys.dims[axis])
    before = view(keys, dims, [rank if i == axis else i for i in range(rank)])

    def body(b: Body, p: SSAValue, q: SSAValue, total: SSAValue) -> SSAValue:
        former = b.op(arith.CmpiOp, s.loop_index(b, rank), s.loop_index(b, axis), "slt")
        first = s.select(b, former, b.op(arith.CmpiOp, p, q, "sle"), b.op(arith.CmpiOp, p, q, "slt"))
        counted = b.op(arith.AddiOp, total, b.op(arith.ExtUIOp, first, mlir_element(INDEX_DTYPE)))
        return b.op(arith.MinSIOp, counted, b.constant(limit, mlir_element(INDEX_DTYPE)))

    here = view(keys, dims, list(range(rank)))
    return reduce(node, [before, here], [rank], 0, body, dtype=INDEX_DTYPE)


def _positions(node: OnnxNode, ranks: Tensor, count: Dim, axis: int) -> Tensor:
    """Which element along `axis` has each of the first `count` ranks."""
    return Positions(axis, count, [ranks], s.as_index).combined(node, None, "add")
