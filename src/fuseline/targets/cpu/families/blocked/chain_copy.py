"""A softmax that was recognised in one function, in a copy of it: what is known of the ops holds of their copies."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import cast

from xdsl.dialects.func import FuncOp
from xdsl.ir import Operation, OpResult, SSAValue

from fuseline.analysis.online_softmax import Generic, OnlineSoftmax, Place, Weighing
from fuseline.analysis.softmax import Reduction


def copied_chain(chain: OnlineSoftmax, entry: FuncOp, copy: FuncOp) -> OnlineSoftmax:
    """The chain of ops of `entry` that `chain` is, in its clone `copy`."""
    copies = dict(zip(entry.walk(), copy.walk(), strict=True))
    return _Copies(copies, copy).chain(chain)


@dataclass(frozen=True)
class _Copies:
    of: dict[Operation, Operation]
    copy: FuncOp

    def op(self, op: Generic) -> Generic:
        return cast("Generic", self.of[op])

    def value(self, value: SSAValue) -> SSAValue:
        """A result of an op, or an argument of the function."""
        if isinstance(value, OpResult):
            return self.of[value.op].results[value.index]
        return self.copy.body.block.args[value.index]  # pyright: ignore[reportAttributeAccessIssue]

    def reduction(self, one: Reduction) -> Reduction:
        return replace(one, op=self.op(one.op), combine=self.of[one.combine], source=self.value(one.source))

    def weighing(self, one: Weighing) -> Weighing:
        guard = self.op(one.guard) if one.guard is not None else None
        return replace(one, op=self.op(one.op), rows=tuple(self.op(row) for row in one.rows), guard=guard)

    def chain(self, chain: OnlineSoftmax) -> OnlineSoftmax:
        return OnlineSoftmax(
            maximum=self.reduction(chain.maximum),
            exponentials=tuple(self.op(op) for op in chain.exponentials),
            total=self.reduction(chain.total),
            weights=tuple(self.weighing(one) for one in chain.weights),
            product=self.op(chain.product),
            operand=chain.operand,
            source=Place(self.value(chain.source.value), chain.source.axis),
        )
