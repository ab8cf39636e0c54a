"""Slices that a concat puts together in the order of a transposition.

    x ──> slice 0::2 ──┐                     x ──> expand 6 to 3 x 2 ──> transpose to 2 x 3 ──> collapse to 6
    x ──> slice 1::2 ──┴─> concat     =>

So are single elements in the order 0, 3, 1, 4, 2, 5, of one tensor or of several that hold 0 to 2 and 3 to 5: these are
joined first. Channel shuffles are exported that way (X. Zhang et al., ShuffleNet, 2018); as a transposition they are
found again by all that moves transpositions, and no slice of them is a copy. Along the innermost dimension slices stay:
a product that stores neighbours apart was measured slower than a reader that takes every so many elements.
"""

from __future__ import annotations

from collections.abc import Sequence

from xdsl.dialects import linalg, tensor
from xdsl.dialects.builtin import DYNAMIC_INDEX
from xdsl.ir import Operation, OpResult, SSAValue

from fuseline.ir.build import element_of, shape_of
from fuseline.ir.fast import attributes
from fuseline.ir.fast.create import create_concat, create_empty, create_op
from fuseline.passes.cleanup.folds.dims import asked, size_value
from fuseline.passes.cleanup.folds.worklist import Worklist


def fold_transposing_slices(op: tensor.ConcatOp, work: Worklist) -> bool:
    """A concat whose parts, slices along its axis, are together all of what they slice, rows for columns."""
    axis = op.dim.value.data
    if all(size == 1 for size in shape_of(op.result)[axis + 1 :]):
        return False
    parts = [_slice(part, axis) for part in op.inputs]
    slices = [part for part in parts if part is not None]
    if len(slices) < max(len(parts), 2):
        return False
    sources = list(dict.fromkeys(part.source for part in slices))
    rows = _rows(_positions(slices, sources, axis), sum(shape_of(source)[axis] for source in sources))
    if rows is None:
        return False
    work.replace(op, _transposed(op, sources, rows, list(slices[0].sizes)))
    return True


def _slice(value: SSAValue, axis: int) -> tensor.ExtractSliceOp | None:
    """The slice that made `value`, where it takes known places along `axis` of as many and all of every other
    dimension."""
    op = value.op if type(value) is OpResult else None
    if type(op) is not tensor.ExtractSliceOp or len(shape_of(value)) != len(shape_of(op.source)):
        return None
    numbers = [values.get_values()[axis] for values in (op.static_offsets, op.static_sizes, op.static_strides)]
    if DYNAMIC_INDEX in (*numbers, shape_of(op.source)[axis]):
        return None
    others = [i for i in range(len(shape_of(value))) if i != axis]
    return op if all(_takes_all(op, i) for i in others) else None


def _takes_all(op: tensor.ExtractSliceOp, axis: int) -> bool:
    size, whole = op.static_sizes.get_values()[axis], shape_of(op.source)[axis]
    if (op.static_offsets.get_values()[axis], op.static_strides.get_values()[axis]) != (0, 1):
        return False
    if DYNAMIC_INDEX not in (size, whole):
        return size == whole
    if size != whole:
        return False
    number = [i for i, known in enumerate(op.static_sizes.get_values()) if known == DYNAMIC_INDEX].index(axis)
    return asked(op.sizes[number]) == size_value(op.source, axis)


def _positions(slices: Sequence[tensor.ExtractSliceOp], sources: Sequence[SSAValue], axis: int) -> list[int]:
    """The places that the slices take along `axis` of their sources behind each other."""
    start, starts = 0, dict[SSAValue, int]()
    for source in sources:
        starts[source] = start
        start += shape_of(source)[axis]
    found: list[int] = []
    for op in slices:
        offset, size, stride = (
            values.get_values()[axis] for values in (op.static_offsets, op.static_sizes, op.static_strides)
        )
        found += [starts[op.source] + offset + i * stride for i in range(size)]
    return found


def _rows(positions: Sequence[int], size: int) -> int | None:
    """How many rows there are where `positions` are all of `size`, written in rows and read by columns.

    >>> _rows([0, 3, 1, 4, 2, 5], 6)
    2
    """
    columns = positions[1] - positions[0] if len(positions) == size > 1 else 0
    if columns <= 1 or size % columns or columns == size:
        return None
    by_columns = [position for column in range(columns) for position in range(column, size, columns)]
    return size // columns if list(positions) == by_columns else None


def _transposed(
    op: tensor.ConcatOp, sources: Sequence[SSAValue], rows: int, unknown: Sequence[SSAValue]
) -> list[Operation]:
    """The ops that put `sources` behind each other and transpose the axis; `unknown`: the sizes that are no numbers."""
    axis, shape, element = op.dim.value.data, shape_of(op.result), element_of(op.result)
    joined = [create_concat(sources, axis, op.result.type)] if len(sources) > 1 else []
    columns = shape[axis] // rows
    wide, turned = ((*shape[:axis], *pair, *shape[axis + 1 :]) for pair in ((rows, columns), (columns, rows)))
    axes = list(range(len(wide)))
    groups = attributes.reassociation(
        [*([i] for i in axes[:axis]), axes[axis : axis + 2], *([i] for i in axes[axis + 2 :])]
    )
    order = (*axes[:axis], axis + 1, axis, *axes[axis + 2 :])
    expanded = create_op(
        tensor.ExpandShapeOp,
        [joined[0].result if joined else sources[0], *unknown],
        [attributes.tensor_type(element, wide)],
        {"reassociation": groups, "static_output_shape": attributes.dense(wide)},
    )
    type_ = attributes.tensor_type(element, turned)
    init = create_empty(type_, unknown)
    moved = linalg.ops.TransposeOp(expanded.result, init.tensor, attributes.dense(order), type_)
    narrow = create_op(tensor.CollapseShapeOp, [moved.results[0]], [op.result.type], {"reassociation": groups})
    return [*joined, expanded, init, moved, narrow]
