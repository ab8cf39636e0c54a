"""Numbers for what is computed, equal where it is computed in the same way of the same values: what the run reads to
learn a size is read once, however often the model spells it out.

    layer 1   max(total, size of the cache) ──> a step reads it ──> T
    layer 2   max(total, size of the cache) ───────────────────────> T
"""

from __future__ import annotations

from collections.abc import Hashable

from xdsl.dialects.arith import ConstantOp
from xdsl.dialects.func import CallOp
from xdsl.ir import OpResult, SSAValue

from fuseline.analysis.structural_key import AttributeNumbers, KeyBuilder
from fuseline.analysis.structured import captured
from fuseline.ir.fast.direct import operands_of

MOST_DEEP = 50
"""Ops in a row that are looked behind; what lies further is itself alone."""


class ComputedNumbers:
    """The number of each value; those of values that are gone are never met again."""

    def __init__(self) -> None:
        self._attributes = AttributeNumbers()
        self._known: dict[Hashable, int] = {}
        self._of: dict[int, tuple[SSAValue, int]] = {}  # with the value, so that its identity is given to no other

    def number(self, value: SSAValue, depth: int = 0) -> int:
        """The number of `value`."""
        if id(value) not in self._of:
            made = self._made(value, depth) if depth < MOST_DEEP else None
            number = self._known.setdefault(("value", id(value)) if made is None else made, len(self._known))
            self._of[id(value)] = value, number
        return self._of[id(value)][1]

    def _made(self, value: SSAValue, depth: int) -> Hashable | None:
        """How a value is made; None where it is nobody else's."""
        if not isinstance(value, OpResult) or isinstance(value.op, CallOp):
            return None
        op = value.op
        if type(op) is ConstantOp:
            return "constant", self._attributes.number(op.value)
        read = [*operands_of(op), *(captured(op) if op.regions else ())]
        operands = tuple([self.number(operand, depth + 1) for operand in read])
        return value.index, KeyBuilder(self._attributes).key(op), operands
