"""Moving elements of another type: what commutes with anything that is computed element by element."""

from __future__ import annotations

from collections.abc import Iterable

from xdsl.dialects import tensor
from xdsl.ir import Operation, SSAValue

from fuseline.analysis.moves import RESHAPES
from fuseline.analysis.structured import Kind, is_generic, kind, producer_of
from fuseline.ir.build import Emitter
from fuseline.ir.fast.direct import operand_of
from fuseline.passes.layout.rewriting.repeats import moved_again

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
    at = Emitter.before(before)
    for move in moves:
        value = moved_again(at, move, value)
    return value
