"""A slice of an expanded tensor as a slice of the tensor before."""

from __future__ import annotations

from collections.abc import Sequence
from math import prod

from xdsl.dialects import tensor
from xdsl.dialects.builtin import TensorType
from xdsl.rewriter import InsertPoint

from fuseline.analysis.moves import groups_of
from fuseline.analysis.structured import producer_of
from fuseline.ir.build import Emitter, element_of, shape_of
from fuseline.ir.fast.direct import erase, replace_uses
from fuseline.passes.layout.rewriting.free_reshapes import is_free
from fuseline.passes.layout.rewriting.mixed import joined
from fuseline.passes.layout.rewriting.reshapes import can_reshape, reshape
from fuseline.passes.layout.rewriting.scope import Scope


def slice_collapsed(scope: Scope, op: tensor.ExtractSliceOp) -> None:
    """Replace slice(expand(x)) by expand(slice(x)) where in every group of dimensions the slice takes one contiguous
    range.

    The slice must be static, of stride 1 and full rank.
    """
    made = producer_of(op.source)
    if (
        type(made) is not tensor.ExpandShapeOp
        or is_free(op.source)
        or len(shape_of(op.result)) != len(shape_of(op.source))
    ):
        return
    if any(stride != 1 for stride in joined(op.static_strides, op.strides)) or not can_reshape(
        scope, scope.dims(op.result)
    ):
        return
    offsets, sizes, shape = (
        joined(op.static_offsets, op.offsets),
        joined(op.static_sizes, op.sizes),
        shape_of(op.source),
    )
    ranges = [static_range(group, offsets, sizes, shape) for group in groups_of(made)]
    found = [item for item in ranges if item is not None]
    if len(found) != len(ranges):
        return
    at = Emitter(InsertPoint.before(op), location=op.location)
    type_ = TensorType(element_of(op.source), [size for _, size in found])
    new = at.add(
        tensor.ExtractSliceOp(
            made.src, [start for start, _ in found], [size for _, size in found], [1] * len(found), type_
        )
    )
    replace_uses(op.result, reshape(scope, at, new.result, scope.dims(op.result)))
    erase(op)


def static_range(
    group: Sequence[int], offsets: Sequence[object], sizes: Sequence[object], shape: Sequence[int]
) -> tuple[int, int] | None:
    """First element and length of the slice along the merged dimensions of `group`; None where it is no single range.

    >>> static_range([0, 1], [1, 0], [1, 4], [3, 4])
    (4, 4)
    >>> static_range([0, 1], [0, 1], [3, 2], [3, 4]) is None
    True
    """
    starts = [offset for offset in (offsets[axis] for axis in group) if isinstance(offset, int)]
    counts = [size for size in (sizes[axis] for axis in group) if isinstance(size, int)]
    extents = [shape[axis] for axis in group]
    if len(starts) != len(group) or len(counts) != len(group) or min(extents) < 0:
        return None
    cut = next((i for i, count in enumerate(counts) if count != 1), len(group) - 1)
    if any(counts[i] != extents[i] for i in range(cut + 1, len(group))):
        return None
    first = sum(start * prod(extents[i + 1 :]) for i, start in enumerate(starts))
    return first, prod(counts)
