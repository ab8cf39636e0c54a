"""How ops that only move data address what they read: transposes, broadcasts, pads, slices and concats, over the space of their result."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

from xdsl.dialects import linalg, tensor
from xdsl.dialects.builtin import DYNAMIC_INDEX, TensorType
from xdsl.ir import Operation, SSAValue
from xdsl.ir.affine import AffineDimExpr, AffineExpr

from fuseline.ir import attributes

Coordinate = AffineExpr | None
"""How a reader addresses one dimension of a value: an expression over its loops; None where it cannot be told (computed, or regrouped)."""


def plain_reads(op: Operation) -> Iterable[tuple[SSAValue, tuple[Coordinate, ...]]]:
    """Each tensor that `op` reads with one coordinate per dimension, over the dimensions of the result."""
    if isinstance(op, linalg.ops.TransposeOp):
        yield op.inputs[0], _inverse(attributes.values(op.permutation))
    elif isinstance(op, linalg.ops.BroadcastOp):
        added = set(attributes.values(op.dimensions))
        rank = len(_shape(op.init))
        yield op.input, tuple(AffineDimExpr(i) for i in range(rank) if i not in added)
    elif isinstance(op, tensor.PadOp):
        yield op.source, _where(_zeros(attributes.values(op.static_low), attributes.values(op.static_high)))
    elif isinstance(op, tensor.ExtractSliceOp):
        yield op.source, _slice(op)
    elif isinstance(op, tensor.ConcatOp):
        axis = op.dim.value.data
        for value in op.inputs:
            yield value, _where([i != axis for i in range(len(_shape(value)))])
    else:
        for value in op.operands:
            if isinstance(value.type, TensorType):
                yield value, (None,) * len(_shape(value))


def _shape(value: SSAValue) -> tuple[int, ...]:
    type_: Any = value.type
    return tuple(type_.get_shape())


def _inverse(permutation: Sequence[int]) -> tuple[Coordinate, ...]:
    found: list[Coordinate] = [None] * len(permutation)
    for loop, axis in enumerate(permutation):
        found[axis] = AffineDimExpr(loop)
    return tuple(found)


def _zeros(low: Iterable[int], high: Iterable[int]) -> list[bool]:
    return [before == 0 and after == 0 for before, after in zip(low, high, strict=True)]


def _where(whole: Sequence[bool]) -> tuple[Coordinate, ...]:
    return tuple(AffineDimExpr(i) if keep else None for i, keep in enumerate(whole))


def _slice(op: tensor.ExtractSliceOp) -> tuple[Coordinate, ...]:
    source, result = _shape(op.source), _shape(op.result)
    if len(source) != len(result):
        return (None,) * len(source)
    parts = zip(source, attributes.values(op.static_offsets), attributes.values(op.static_sizes), attributes.values(op.static_strides), strict=True)
    return _where([offset == 0 and stride == 1 and size == extent != DYNAMIC_INDEX for extent, offset, size, stride in parts])
