"""Scalar ops that others can say exactly are said by them, so that no later pass and no target need know them."""

from __future__ import annotations

from xdsl.dialects import arith, math
from xdsl.dialects.builtin import FloatAttr, IndexType, IntegerType, i64
from xdsl.ir import Operation, SSAValue

from fuseline.ir.scalar_ops import ClampFOp, IndexCastUIOp, IsFiniteOp, IsInfOp, IsNanOp
from fuseline.passes.cleanup.folds.worklist import Fold, Worklist


def expand_clamp(op: ClampFOp, work: Worklist) -> bool:
    """`math.clampf %x to [%low, %high]`   =>   the minimum of the maximum."""
    raised = arith.MaximumfOp(op.value, op.min)
    work.replace(op, [raised, arith.MinimumfOp(raised.result, op.max)])
    return True


def expand_is_nan(op: IsNanOp, work: Worklist) -> bool:
    """`math.isnan %x`   =>   %x does not compare with itself."""
    work.replace(op, [arith.CmpfOp(op.value, op.value, "uno")])
    return True


def _compared_with_infinity(value: SSAValue, predicate: str) -> list[Operation]:
    size = math.AbsFOp(value)
    infinity = arith.ConstantOp(FloatAttr(float("inf"), value.type))  # pyright: ignore[reportArgumentType, reportCallIssue, reportUnknownArgumentType]
    return [size, infinity, arith.CmpfOp(size.result, infinity.result, predicate)]


def expand_is_infinite(op: IsInfOp, work: Worklist) -> bool:
    """`math.isinf %x`   =>   |x| equals infinity."""
    work.replace(op, _compared_with_infinity(op.value, "oeq"))
    return True


def expand_is_finite(op: IsFiniteOp, work: Worklist) -> bool:
    """`math.isfinite %x`   =>   |x| is below infinity (NaN is not)."""
    work.replace(op, _compared_with_infinity(op.value, "olt"))
    return True


def expand_unsigned_index_cast(op: IndexCastUIOp, work: Worklist) -> bool:
    """`arith.index_castui %x : i8 to index`   =>   extend with zeros to 64 bits, then cast."""
    source = op.input
    if isinstance(source.type, IntegerType) and source.type.width.data < 64:
        wide = arith.ExtUIOp(source, i64)
        work.replace(op, [wide, arith.IndexCastOp(wide.result, IndexType())])
    else:
        work.replace(op, [arith.IndexCastOp(source, op.result.type)])
    return True


EXPANSIONS: dict[type[Operation], Fold] = {
    ClampFOp: expand_clamp,
    IsNanOp: expand_is_nan,
    IsInfOp: expand_is_infinite,
    IsFiniteOp: expand_is_finite,
    IndexCastUIOp: expand_unsigned_index_cast,
}
