"""What a body asks of its loops' counters, and every iteration answers alike, is not asked.

    %i = linalg.index 0            of 16 iterations
    %m = arith.minsi %i, 15                                     =>    %i
    %c = arith.cmpi ult, %i, 16 : select %c, %x, %padding       =>    %x

So positions that are kept inside to be safe are plain loops, and what reads there is no gather (`plain_reads.py`).
"""

from __future__ import annotations

from collections.abc import Callable

from xdsl.dialects import arith, linalg
from xdsl.dialects.builtin import DYNAMIC_INDEX
from xdsl.ir import Operation, SSAValue

from fuseline.analysis.range_rules import ScalarRange
from fuseline.analysis.scalar_ranges import ScalarRanges
from fuseline.analysis.shapes import ShapeAnalysis
from fuseline.analysis.structured_op import StructuredOp
from fuseline.ir.build import shape_of
from fuseline.ir.fast.direct import body_of, operand_of, operands_of, ops_of
from fuseline.passes.cleanup.folds.scalars import constant_op
from fuseline.passes.cleanup.folds.worklist import Worklist

_ASKED = frozenset((arith.MinSIOp, arith.MaxSIOp, arith.CmpiOp))


def fold_certain_bound(op: linalg.ops.GenericOp, work: Worklist) -> bool:
    """The first such question of a body whose operands have known sizes."""
    body = ops_of(body_of(op))
    asked = [inner for inner in body if type(inner) in _ASKED]
    if not asked or not any(type(inner) is linalg.ops.IndexOp for inner in body) or not _is_known(op):
        return False
    ranges = ScalarRanges(ShapeAnalysis(), StructuredOp(op), {})
    for inner in asked:
        left, right = (ranges.of(operand_of(inner, number)) for number in (0, 1))
        if _answered(inner, left, right, work):
            return True
    return False


def _is_known(op: linalg.ops.GenericOp) -> bool:
    return all(DYNAMIC_INDEX not in shape_of(value) for value in operands_of(op))


def _answered(op: Operation, left: ScalarRange, right: ScalarRange, work: Worklist) -> bool:
    if isinstance(op, arith.CmpiOp):
        holds = _compared(op, left, right)
        if holds is not None:
            work.replace(op, [constant_op(int(holds), op.result.type)])
        return holds is not None
    survivor = _survivor(op, left, right)
    if survivor is not None:
        work.replace(op, [], [survivor])
    return survivor is not None


def _survivor(op: Operation, left: ScalarRange, right: ScalarRange) -> SSAValue | None:
    """The one of two that is the smaller or the greater one, whatever they are."""
    smaller = 0 if _at_most(left, right) else 1 if _at_most(right, left) else None
    if smaller is None:
        return None
    return operand_of(op, smaller if isinstance(op, arith.MinSIOp) else 1 - smaller)


def _at_most(a: ScalarRange, b: ScalarRange) -> bool:
    return isinstance(a.high, int) and isinstance(b.low, int) and a.high <= b.low


def _below(a: ScalarRange, b: ScalarRange) -> bool:
    return isinstance(a.high, int) and isinstance(b.low, int) and a.high < b.low


def _is_natural(a: ScalarRange) -> bool:
    return isinstance(a.low, int) and a.low >= 0


_Question = Callable[[ScalarRange, ScalarRange], bool]

_ORDERS: dict[str, tuple[_Question, _Question]] = {
    "lt": (_below, lambda a, b: _at_most(b, a)),
    "le": (_at_most, lambda a, b: _below(b, a)),
    "gt": (lambda a, b: _below(b, a), _at_most),
    "ge": (lambda a, b: _at_most(b, a), _below),
}
"""When each order holds, and when it does not."""


def _compared(op: arith.CmpiOp, a: ScalarRange, b: ScalarRange) -> bool | None:
    """What a comparison says, None where that depends. Unsigned orders are those of numbers that are not negative."""
    word = arith.CMPI_COMPARISON_OPERATIONS[op.predicate.value.data]
    if word in ("eq", "ne"):
        apart = _below(a, b) or _below(b, a)
        return word == "ne" if apart else None
    if word[0] == "u" and not (_is_natural(a) and _is_natural(b)):
        return None
    holds, fails = _ORDERS[word[1:]]
    return True if holds(a, b) else False if fails(a, b) else None
