"""A box in place of what a tensor has there, as caches are written.

out[i] = start <= i < start + size ? box[i - start] : data[i]
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from xdsl.dialects import arith, tensor
from xdsl.ir import SSAValue

from fuseline.frontends.onnx import scalars as s
from fuseline.frontends.onnx.dtypes import mlir_element
from fuseline.frontends.onnx.emission import mapped, result
from fuseline.frontends.onnx.ops.slicing import Cut, taken
from fuseline.frontends.onnx.tensors import Tensor
from fuseline.frontends.stablehlo.hlo import Hlo
from fuseline.frontends.stablehlo.ops.indexing import inside, known_start
from fuseline.ir.build import Body, element_of, tensor_type
from fuseline.ir.dim import Dim, add, sub, sum_of
from fuseline.ir.fast.create import create_concat


def with_box(hlo: Hlo, data: Tensor, box: Tensor, starts: Sequence[Tensor]) -> Tensor:
    """`data` with `box` from `starts` on."""
    if 0 in box.dims:
        return data
    lasts = [sub(d, size) for d, size in zip(data.dims, box.dims, strict=True)]
    known = [0 if last == 0 else known_start(t, last) for t, last in zip(starts, lasts, strict=True)]
    smaller = [axis for axis, last in enumerate(lasts) if last != 0]
    if not smaller:
        return hlo.with_dims(box, data.dims)
    if len(smaller) == 1 and isinstance(known[smaller[0]], int):
        return _joined(hlo, data, box, smaller[0], known[smaller[0]] or 0)
    return _chosen(hlo, data, box, starts, lasts)


def _joined(hlo: Hlo, data: Tensor, box: Tensor, axis: int, start: Dim) -> Tensor:
    """What is before, the box, and what is behind it."""
    end = add(start, box.dims[axis])
    pieces = [(0, start), (end, sub(data.dims[axis], end))]
    parts = [_piece(hlo, data, axis, first, count) if count != 0 else None for first, count in pieces]
    present = [t for t in (parts[0], box, parts[1]) if t is not None]
    dims = [sum_of(t.dims[i] for t in present) if i == axis else d for i, d in enumerate(data.dims)]
    if all(t.is_constant for t in present):
        return hlo.onnx("Concat", present, axis=axis)[0]
    values = [hlo.node.ssa(t) for t in present]
    op = create_concat(values, axis, tensor_type(mlir_element(data.dtype), dims))
    return hlo.with_dims(result(hlo.node.emit.add(op).result, dims, data.dtype), data.dims)


def _piece(hlo: Hlo, data: Tensor, axis: int, first: Dim, count: Dim) -> Tensor:
    return taken(hlo.node, data, [Cut(first, count, 1) if i == axis else Cut(0, d, 1) for i, d in enumerate(data.dims)])


def _chosen(hlo: Hlo, data: Tensor, box: Tensor, starts: Sequence[Tensor], lasts: Sequence[Dim]) -> Tensor:
    """Each element from the box where it covers it."""
    value = hlo.node.ssa(box)
    moving = [axis for axis, last in enumerate(lasts) if last != 0]
    nowhere: list[int | None] = []

    def body(b: Body, old: SSAValue, *elements: SSAValue) -> SSAValue:
        found = dict(zip(moving, elements, strict=True))
        hit, position = b.constant(1, mlir_element(np.dtype(bool))), list[SSAValue]()
        for axis in range(data.rank):
            at = s.loop_index(b, axis)
            if axis in found:
                within = b.op(arith.SubiOp, at, inside(hlo, b, found[axis], starts[axis], lasts[axis]))
                size = _index(hlo, b, box.dims[axis])
                hit = b.op(arith.AndIOp, hit, b.op(arith.CmpiOp, within, size, "ult"))
                last = b.op(arith.SubiOp, size, s.index_constant(b, 1))
                at = b.op(arith.MaxSIOp, b.op(arith.MinSIOp, within, last), s.index_constant(b, 0))
            position.append(at)
        return s.select(b, hit, b.op(tensor.ExtractOp, value, position, element_of(value)), old)

    operands = [(data, list(range(data.rank))), *((starts[axis], nowhere) for axis in moving)]
    return mapped(hlo.node, operands, data.dims, data.dtype, body)


def _index(hlo: Hlo, b: Body, size: Dim) -> SSAValue:
    return s.index_constant(b, size) if isinstance(size, int) else hlo.node.index(size)
