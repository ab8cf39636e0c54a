"""Data that nobody has written: what is moved out of a `tensor.empty` is one, of the sizes of what was moved.

tensor.extract_slice (tensor.empty : 10x4)[2, 0] [3, 4]      =>   tensor.empty : 3x4
linalg.generic ins(tensor.empty) outs(%e) { yield %in }      =>   %e
"""

from __future__ import annotations

from collections.abc import Sequence

from xdsl.dialects import linalg, tensor
from xdsl.dialects.builtin import DYNAMIC_INDEX, TensorType
from xdsl.ir import BlockArgument, Operation, SSAValue

from fuseline.analysis.structured import yielded
from fuseline.ir.build import shape_of
from fuseline.ir.fast.direct import body_of, operand_of
from fuseline.passes.cleanup.folds.dims import computed_size
from fuseline.passes.cleanup.folds.fills import is_made_by
from fuseline.passes.cleanup.folds.worklist import Fold, Worklist


def fold_slice_of_undefined(op: tensor.ExtractSliceOp, work: Worklist) -> bool:
    """A slice of an empty tensor, but for one that leaves it: the check of bounds has to see that."""
    if not is_made_by(op.source, tensor.EmptyOp) or _leaves(op):
        return False
    work.replace(op, [tensor.EmptyOp(list(op.sizes), op.result.type)])
    return True


def _leaves(op: tensor.ExtractSliceOp) -> bool:
    """Whether the slice lies outside of its source along an axis that is known."""
    bounds = (op.static_offsets.get_values(), op.static_sizes.get_values(), op.static_strides.get_values())
    for whole, offset, size, stride in zip(shape_of(op.source), *bounds, strict=True):
        if DYNAMIC_INDEX in (whole, offset, size, stride):
            continue
        ends = offset, offset + (size - 1) * stride
        if size and not (0 <= min(ends) and max(ends) < whole):
            return True
    return False


def fold_expanded_undefined(op: tensor.ExpandShapeOp, work: Worklist) -> bool:
    """Dimensions of an empty tensor cut in several."""
    if not is_made_by(op.src, tensor.EmptyOp):
        return False
    work.replace(op, [tensor.EmptyOp(list(op.dynamic_output_shape), op.result.type)])
    return True


def fold_collapsed_undefined(op: tensor.CollapseShapeOp, work: Worklist) -> bool:
    """Dimensions of an empty tensor taken as one."""
    if not is_made_by(op.src, tensor.EmptyOp):
        return False
    sizes = [computed_size(op, axis) for axis, size in enumerate(shape_of(op.result)) if size == DYNAMIC_INDEX]
    empty = tensor.EmptyOp([size[-1].results[0] for size in sizes], op.result.type)
    work.replace(op, [*(made for size in sizes for made in size), empty])
    return True


def fold_moved_undefined(op: linalg.ops.TransposeOp | linalg.ops.BroadcastOp, work: Worklist) -> bool:
    """An empty tensor transposed or broadcast: what it was to be written to."""
    if not op.results or not is_made_by(operand_of(op, 0), tensor.EmptyOp):
        return False
    return _into(op, [operand_of(op, 1)], work)


def fold_copied_undefined(op: linalg.ops.GenericOp, work: Worklist) -> bool:
    """A generic that only copies elements of empty tensors, in whatever order and however often."""
    values, inits = yielded(op), list(op.outputs)
    if len(values) != len(op.results) or not all(_is_undefined(op, value) for value in values):
        return False
    return _into(op, inits, work)


def _is_undefined(op: linalg.ops.GenericOp, value: SSAValue) -> bool:
    """Whether a yielded value is an element of an empty tensor that is read."""
    if type(value) is not BlockArgument or value.owner is not body_of(op):
        return False
    return value.index < len(op.inputs) and is_made_by(operand_of(op, value.index), tensor.EmptyOp)


def _into(op: Operation, inits: Sequence[SSAValue], work: Worklist) -> bool:
    """Put the inits, if they are empty tensors too, in place of the results."""
    if not all(isinstance(init.type, TensorType) and is_made_by(init, tensor.EmptyOp) for init in inits):
        return False
    work.replace(op, [], inits)
    return True


EXTRACT: tuple[Fold, ...] = (fold_slice_of_undefined,)
EXPAND: tuple[Fold, ...] = (fold_expanded_undefined,)
COLLAPSE: tuple[Fold, ...] = (fold_collapsed_undefined,)
MOVE: tuple[Fold, ...] = (fold_moved_undefined,)
GENERIC: tuple[Fold, ...] = (fold_copied_undefined,)
