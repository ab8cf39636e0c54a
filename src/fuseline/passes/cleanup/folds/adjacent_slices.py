"""Slices of one tensor that a concat puts side by side again, as after a split of which each part is also read alone.

    x ──> slice [0, 16) ──┐                        x ──> slice [0, 32) ──┐
    x ──> slice [16, 32) ─┼─> concat      =>                        y ───┴─> concat
    y ────────────────────┘

Where the slices together are all of `x`, `x` itself stands in their place (`slices.py`).
"""

from __future__ import annotations

from itertools import pairwise

from xdsl.dialects import tensor
from xdsl.dialects.builtin import DYNAMIC_INDEX
from xdsl.ir import OpResult, SSAValue

from fuseline.ir.build import element_of, shape_of
from fuseline.ir.fast import attributes
from fuseline.passes.cleanup.folds.worklist import Worklist


def fold_adjacent_slices(op: tensor.ConcatOp, work: Worklist) -> bool:
    """Two neighbours that continue each other; the worklist comes back for the next."""
    axis, parts = op.dim.value.data, list(op.inputs)
    for i, (first, second) in enumerate(pairwise(parts)):
        both = _both(first, second, axis)
        if both is not None:
            parts[i : i + 2] = [both.result]
            work.replace(op, [both, tensor.ConcatOp(parts, op.dim, op.result.type)])
            return True
    return False


def _both(first: SSAValue, second: SSAValue, axis: int) -> tensor.ExtractSliceOp | None:
    """The slice that is `first` and then `second` along `axis`."""
    a, b = _slice(first), _slice(second)
    if a is None or b is None or a.source is not b.source or not _continues(a, b, axis):
        return None
    sizes = list(a.static_sizes.get_values())
    sizes[axis] += b.static_sizes.get_values()[axis]
    type_ = attributes.tensor_type(element_of(first), tuple(sizes))
    properties = {**a.properties, "static_sizes": attributes.dense(tuple(sizes))}
    return tensor.ExtractSliceOp.build(
        operands=[a.source, a.offsets, a.sizes, a.strides], result_types=[type_], properties=properties
    )


def _slice(value: SSAValue) -> tensor.ExtractSliceOp | None:
    """The slice that made `value`, where it keeps every dimension."""
    op = value.op if type(value) is OpResult else None
    return op if type(op) is tensor.ExtractSliceOp and len(shape_of(value)) == len(op.static_sizes) else None


def _continues(a: tensor.ExtractSliceOp, b: tensor.ExtractSliceOp, axis: int) -> bool:
    """Whether `b` starts along `axis` where `a`, of neighbouring elements, ends, and is as `a` in all else."""
    starts, ends = ([*op.static_offsets.get_values()] for op in (a, b))
    sizes, others = ([*op.static_sizes.get_values()] for op in (a, b))
    if (
        DYNAMIC_INDEX in (starts[axis], ends[axis], sizes[axis], others[axis])
        or a.static_strides.get_values()[axis] != 1
    ):
        return False
    if starts[axis] + sizes[axis] != ends[axis] or a.static_strides != b.static_strides:
        return False
    elsewhere = [i for i in range(len(sizes)) if i != axis]
    alike = all(starts[i] == ends[i] and sizes[i] == others[i] for i in elsewhere)
    return alike and all(x is y for x, y in zip(a.operands[1:], b.operands[1:], strict=True))
