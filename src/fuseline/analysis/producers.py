"""The ops that make an operand, back to what is stored."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator

from xdsl.dialects import linalg, tensor
from xdsl.dialects.builtin import TensorType
from xdsl.ir import Operation, OpResult, SSAValue

from fuseline.analysis.moves import RESHAPES
from fuseline.analysis.structured import captured_tensors
from fuseline.ir.reachable import reachable

_FREE = (*RESHAPES, linalg.ops.FillOp, tensor.EmptyOp)
"""Ops that are looked through wherever they are: nothing is stored for them."""


def is_stored(value: SSAValue, members: Collection[Operation]) -> bool:
    """Whether a value is stored where `members` are read through, and what costs nothing to repeat."""
    if not isinstance(value, OpResult):
        return True
    return value.op not in members and type(value.op) not in _FREE


def producers_of(value: SSAValue, members: Collection[Operation]) -> Iterator[Operation]:
    """The members that make `value`, each once."""

    def makers(values: Iterable[SSAValue]) -> list[Operation]:
        return [made.op for made in values if isinstance(made, OpResult) and not is_stored(made, members)]

    def before(op: Operation) -> list[Operation]:
        read = [operand for operand in op.operands if isinstance(operand.type, TensorType)]
        return makers([*read, *(captured_tensors(op) if op.regions else ())])

    return reachable(makers([value]), before)
