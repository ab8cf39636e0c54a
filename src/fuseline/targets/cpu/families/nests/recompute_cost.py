"""What it takes to evaluate a value again at each read, in scalar operations."""

from __future__ import annotations

from xdsl.dialects import arith, math
from xdsl.ir import Operation, OpResult, SSAValue

from fuseline.analysis.structured import body_ops, is_generic, is_reduction, tensor_operands

RECOMPUTE_LIMIT_OPS = 8
"""Values that cost more than this many operations per element are stored rather than computed twice."""


ELEMENTARY_COST = 15
"""Operations of an elementary function."""

SLOW_COST = 5
"""Operations of a division or a square root."""


def cost(op: Operation, live: set[Operation], stop: set[SSAValue], most: int = 10 * RECOMPUTE_LIMIT_OPS) -> int:
    """Operations per element of a value, with what is pulled into it; counting ends where they are more than `most`."""
    total, pending, seen = 0, [op], set[Operation]()
    while pending and total <= most:
        current = pending.pop()
        if current in seen:
            continue
        seen.add(current)
        total += body_cost(current)
        for source in tensor_operands(current):
            if (
                isinstance(source, OpResult)
                and source.op in live
                and source not in stop
                and not is_reduction(source.op)
            ):
                pending.append(source.op)
    return total


def body_cost(op: Operation) -> int:
    """Operations per element of one op's own body."""
    if not is_generic(op):
        return 1
    return sum(_op_cost(inner) for inner in body_ops(op))


def is_elementary(op: Operation) -> bool:
    """Whether an op computes elementary functions: arithmetic on what does not change leaves a loop by itself, the
    choices in these do not."""
    return is_generic(op) and any(_op_cost(inner) == ELEMENTARY_COST for inner in body_ops(op))


def is_slow(op: Operation) -> bool:
    """Whether an op divides, takes roots or computes elementary functions: more than a store and a load take."""
    return is_generic(op) and any(_op_cost(inner) >= SLOW_COST for inner in body_ops(op))


def _op_cost(op: Operation) -> int:
    if isinstance(op, math.SqrtOp | math.RsqrtOp | arith.DivfOp | arith.DivSIOp | arith.DivUIOp):
        return SLOW_COST
    if isinstance(op, math.AbsFOp | math.FloorOp | math.CeilOp | math.FmaOp | math.RoundEvenOp | math.AbsIOp):
        return 1
    return ELEMENTARY_COST if op.name.startswith("math.") else 1
