"""Moving elements of another type: what commutes with anything that is computed element by element."""

from __future__ import annotations

from collections.abc import Iterable

from xdsl.dialects import tensor
from xdsl.ir import Operation, SSAValue

from fuseline.analysis.moves import RESHAPES
from fuseline.analysis.structured import Kind, is_generic, kind, producer_of
from fuseline.ir.build import Emitter, element_of, shape_of
from fuseline.ir.fast import attributes
from fuseline.ir.fast.direct import body_of, insert_before, operand_of, result_of, set_operand, set_type

_GENERIC = frozenset({Kind.COPY, Kind.TRANSPOSE, Kind.BROADCAST})


def moves_behind(value: SSAValue) -> tuple[SSAValue, list[Operation]]:
    """The tensor that `value` has the elements of, in another order or a part of them, and the ops that move them, the
    first to do so first."""
    moves = list[Operation]()
    while (op := producer_of(value)) is not None and _is_move(op):
        moves.append(op)
        value = operand_of(op, 0)
    return value, moves[::-1]


def _is_move(op: Operation) -> bool:
    """Whether `op` has one source whose elements it moves as they are, and nothing around them."""
    if is_generic(op):
        return kind(op) in _GENERIC and len(op.operands) == 2
    return isinstance(op, (*RESHAPES, tensor.ExtractSliceOp))


def moved(value: SSAValue, moves: Iterable[Operation], before: Operation) -> SSAValue:
    """The elements of `value` as `moves` move those of another tensor of its shape; copies of them, before an op."""
    for move in moves:
        copy = move.clone()
        insert_before(copy, before)
        set_operand(copy, 0, value)
        _set_element(copy, value)
        value = result_of(copy)
    return value


def _set_element(copy: Operation, value: SSAValue) -> None:
    """What a copy makes is of the elements of `value`."""
    element = element_of(value)
    if is_generic(copy):
        set_operand(copy, 1, Emitter.before(copy).empty_like(operand_of(copy, 1), element))
        for argument in body_of(copy).args:
            set_type(argument, element)
    set_type(result_of(copy), attributes.tensor_type(element, shape_of(result_of(copy))))
