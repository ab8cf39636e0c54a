"""Values that are in memory by the time an op reads them, whatever fusion does: a view of one costs nothing there.

x ──> convolution ──> add        the convolution is between: x cannot be in the dispatch of the add
  └───────────────────^
"""

from __future__ import annotations

from xdsl.ir import Operation, OpResult, SSAValue

from fuseline.analysis.structured import HEAVY, Kind, kind
from fuseline.ir.fast.direct import operands_of

MOST_OPS_BACK = 64
"""Ops looked at on the way back: more than a residual block holds, few enough that a pass stays linear."""

LEAVES = (Kind.CONSTANT, Kind.EMPTY, Kind.FILL, Kind.SCALAR)


def is_stored_before(value: SSAValue, op: Operation) -> bool:
    """Whether another operand of `op` is made from `value` by a root, a few ops back."""
    todo: list[tuple[SSAValue, bool]] = [(operand, False) for operand in operands_of(op) if operand is not value]
    seen: set[tuple[Operation, bool]] = set()
    while todo and len(seen) < MOST_OPS_BACK:
        current, behind_root = todo.pop(0)
        if current is value and behind_root:
            return True
        if type(current) is not OpResult or (current.op, behind_root) in seen or kind(current.op) in LEAVES:
            continue
        seen.add((current.op, behind_root))
        behind_root |= kind(current.op) in HEAVY
        todo += [(operand, behind_root) for operand in operands_of(current.op)]
    return False
