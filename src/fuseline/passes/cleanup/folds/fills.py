"""Folds of fills and transposes that need not be."""

from __future__ import annotations

from xdsl.dialects import linalg, tensor
from xdsl.dialects.builtin import TensorType
from xdsl.ir import Operation, OpResult, SSAValue

from fuseline.ir.build import Emitter
from fuseline.ir.fast import attributes
from fuseline.ir.fast.direct import (
    operand_of,
    result_of,
    set_operand,
)
from fuseline.passes.cleanup.folds.worklist import Fold, Worklist


def is_made_by(value: SSAValue, kind_: type[Operation]) -> bool:
    """Whether an op of exactly that class makes `value`."""
    return type(value) is OpResult and type(value.op) is kind_


def set_empty(op: Operation, i: int, work: Worklist) -> None:
    """Put an empty tensor of the same sizes in place of operand `i`."""
    value = operand_of(op, i)
    set_operand(op, i, Emitter.before(op).empty_like(value))
    work.touch(op)
    if type(value) is OpResult:
        work.touch(value.op)


def fold_fill_of_fill(op: linalg.ops.FillOp, work: Worklist) -> bool:
    """What a fill overwrites need not have been filled."""
    inner = op.outputs[0].owner
    if type(inner) is not linalg.ops.FillOp:
        return False
    work.replace(op, [linalg.ops.FillOp(list(op.inputs), list(inner.outputs), [result_of(op).type])])
    return True


def fold_unread_fill_init(op: linalg.ops.FillOp, work: Worklist) -> bool:
    """A fill overwrites whatever it is given: only the sizes of that matter."""
    if is_made_by(op.outputs[0], tensor.EmptyOp) or not isinstance(op.outputs[0].type, TensorType):
        return False
    set_empty(op, 1, work)
    return True


def fold_identity_transpose(op: linalg.ops.TransposeOp, work: Worklist) -> bool:
    """A transpose that keeps the order."""
    order = attributes.values(op.permutation)
    if list(order) != list(range(len(order))) or not op.results or op.inputs[0].type != result_of(op).type:
        return False
    work.replace(op, [], [op.inputs[0]])
    return True


FILL: tuple[Fold, ...] = (fold_fill_of_fill, fold_unread_fill_init)


TRANSPOSE: tuple[Fold, ...] = (fold_identity_transpose,)
