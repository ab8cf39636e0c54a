"""Offsets and strides of slices that are constants are numbers of the op: what is known of a slice is known of it then.

tensor.insert_slice %x into %y[%c0, %i] [4, 8] [1, 1]      =>      tensor.insert_slice %x into %y[0, %i] [4, 8] [1, 1]
"""

from __future__ import annotations

from collections.abc import Sequence

from xdsl.dialects import tensor
from xdsl.dialects.builtin import DYNAMIC_INDEX
from xdsl.ir import SSAValue

from fuseline.ir.fast import attributes
from fuseline.passes.cleanup.folds.scalars import constant_value
from fuseline.passes.cleanup.folds.worklist import Worklist

Slice = tensor.ExtractSliceOp | tensor.InsertSliceOp


def fold_known_places(op: Slice, work: Worklist) -> bool:
    """A slice with such offsets or strides. Its sizes are those of a type, and stay."""
    offsets, at = _known(op.static_offsets.get_values(), op.offsets)
    strides, steps = _known(op.static_strides.get_values(), op.strides)
    if len(at) == len(op.offsets) and len(steps) == len(op.strides):
        return False
    whole = [op.source] if isinstance(op, tensor.ExtractSliceOp) else [op.source, op.dest]
    new = type(op).build(
        operands=[*whole, at, list(op.sizes), steps],
        result_types=[op.result.type],
        properties={
            "static_offsets": attributes.dense(offsets),
            "static_sizes": op.static_sizes,
            "static_strides": attributes.dense(strides),
        },
    )
    work.replace(op, [new])
    return True


def _known(numbers: Sequence[int], values: Sequence[SSAValue]) -> tuple[tuple[int, ...], list[SSAValue]]:
    """The numbers, with those of `values` that are constants in place of them, and the other values."""
    found, left, given = list[int](), list[SSAValue](), iter(values)
    for number in numbers:
        value = next(given) if number == DYNAMIC_INDEX else None
        known = constant_value(value) if value is not None else number
        if value is not None and known is None:
            left.append(value)
        found.append(int(known) if known is not None else DYNAMIC_INDEX)
    return tuple(found), left
