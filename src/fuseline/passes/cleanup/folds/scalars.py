"""Scalar arithmetic: of constants (by evaluation), and identities that hold for every value, NaN and signed zero
included."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from xdsl.dialects import arith, math
from xdsl.dialects.builtin import FloatAttr, IndexType, IntegerAttr, IntegerType
from xdsl.ir import Attribute, Operation, OpResult, SSAValue

from fuseline.evaluation.program import Program, Scope, is_evaluable, run_op
from fuseline.ir.element_types import scalar_attribute
from fuseline.ir.fast.create import create_constant
from fuseline.ir.fast.direct import operand_of, operands_of, result_of
from fuseline.ir.scalar_ops import INTEGER_DIVISIONS, Arith, Math
from fuseline.passes.cleanup.folds.expansions import EXPANSIONS
from fuseline.passes.cleanup.folds.worklist import Fold, Worklist


def constant_value(value: SSAValue) -> float | int | None:
    """The number that `value` is, None where it is no scalar constant."""
    if type(value) is OpResult and type(value.op) is arith.ConstantOp:
        attribute = value.op.value
        if isinstance(attribute, IntegerAttr | FloatAttr):
            return attribute.value.data
    return None


def constant_op(value: float | int | bool, type_: Attribute) -> arith.ConstantOp:
    """A scalar constant of `type_`."""
    return create_constant(scalar_attribute(value, type_), type_)


def fold_scalar_constants(op: Operation, work: Worklist) -> bool:
    """An op on constants only."""
    if any(constant_value(value) is None for value in operands_of(op)):
        return False
    if len(op.results) != 1 or not operands_of(op) or not _is_scalar(op) or not is_evaluable(op) or _is_undefined(op):
        return False
    scope = Scope(Program())
    with np.errstate(all="ignore"):
        for value in operands_of(op):
            if value not in scope.values and type(value) is OpResult:
                run_op(value.op, scope)
        run_op(op, scope)
    result = np.asarray(scope[result_of(op)])
    work.replace(op, [constant_op(result.item(), result_of(op).type)])
    return True


def _is_scalar(op: Operation) -> bool:
    return all(
        isinstance(value.type, IntegerType | IndexType) or value.type.name.startswith(("f", "bf"))
        for value in (*operands_of(op), *op.results)
    )


def _is_undefined(op: Operation) -> bool:
    return isinstance(op, INTEGER_DIVISIONS) and constant_value(operand_of(op, 1)) == 0


def _same_bits(value: SSAValue, number: float) -> bool:
    """Whether `value` is the constant `number`, the sign of zero included."""
    found = constant_value(value)
    return found is not None and found == number and np.signbit(np.float64(found)) == np.signbit(np.float64(number))


def _neutral_right(number: float) -> Callable[[Operation], SSAValue | None]:
    return lambda op: operand_of(op, 0) if _same_bits(operand_of(op, 1), number) else None


def _neutral(number: float) -> Callable[[Operation], SSAValue | None]:
    def survivor(op: Operation) -> SSAValue | None:
        for mine, other in ((0, 1), (1, 0)):
            if _same_bits(operand_of(op, other), number):
                return operand_of(op, mine)
        return None

    return survivor


def _idempotent(op: Operation) -> SSAValue | None:
    return operand_of(op, 0) if operand_of(op, 0) is operand_of(op, 1) else None


def _select(op: Operation) -> SSAValue | None:
    condition = constant_value(operand_of(op, 0))
    if condition is not None:
        return operand_of(op, 1) if condition else operand_of(op, 2)
    return operand_of(op, 1) if operand_of(op, 1) is operand_of(op, 2) else None


def _undone(op: Operation) -> SSAValue | None:
    """A negation of a negation; an index cast there and back."""
    operand = operand_of(op, 0)
    inner = operand.op if type(operand) is OpResult else None
    if type(inner) is not type(op) or inner is None:
        return None
    source = operand_of(inner, 0)
    wide = type(op) is arith.NegfOp or _index_round_trip(source, op)
    return source if wide and source.type == result_of(op).type else None


def _index_round_trip(source: SSAValue, op: Operation) -> bool:
    """Whether nothing is lost on the way: index is 64 bits wide."""
    middle = operand_of(op, 0).type
    return isinstance(source.type, IntegerType) or (isinstance(middle, IntegerType) and middle.width.data == 64)


_IDENTITIES: dict[type[Operation], Callable[[Operation], SSAValue | None]] = {
    arith.AddiOp: _neutral(0),
    arith.SubiOp: _neutral_right(0),
    arith.MuliOp: _neutral(1),
    arith.DivSIOp: _neutral_right(1),
    arith.DivUIOp: _neutral_right(1),
    arith.FloorDivSIOp: _neutral_right(1),
    arith.CeilDivSIOp: _neutral_right(1),
    arith.OrIOp: lambda op: _neutral(0)(op) or _idempotent(op),
    arith.XOrIOp: _neutral(0),
    arith.AndIOp: _idempotent,
    arith.ShLIOp: _neutral_right(0),
    arith.ShRSIOp: _neutral_right(0),
    arith.ShRUIOp: _neutral_right(0),
    arith.AddfOp: _neutral(-0.0),
    arith.SubfOp: _neutral_right(0.0),
    arith.MulfOp: _neutral(1.0),
    arith.DivfOp: _neutral_right(1.0),
    math.PowFOp: _neutral_right(1.0),
    arith.MaximumfOp: _idempotent,
    arith.MinimumfOp: _idempotent,
    arith.MaxnumfOp: _idempotent,
    arith.MinnumfOp: _idempotent,
    arith.MaxSIOp: _idempotent,
    arith.MinSIOp: _idempotent,
    arith.MaxUIOp: _idempotent,
    arith.MinUIOp: _idempotent,
    arith.SelectOp: _select,
    arith.NegfOp: _undone,
    arith.IndexCastOp: _undone,
}


def fold_identity(op: Operation, work: Worklist) -> bool:
    """An op whose result is one of its operands whatever that is: `x * 1`, `max(x, x)`, `select(true, x, y)`."""
    survivor = _IDENTITIES[type(op)](op)
    if survivor is None or survivor.type != result_of(op).type:
        return False
    work.replace(op, [], [survivor])
    return True


_EQUAL_HOLDS = frozenset({0, 3, 5, 7, 9})
"""Predicates of `arith.cmpi` that hold of equal integers: eq, sle, sge, ule, uge."""


def fold_of_itself(op: Operation, work: Worklist) -> bool:
    """What integers make of a number and itself: `x == x`, `x < x`, `x - x`, `x ^ x`."""
    if operand_of(op, 0) is not operand_of(op, 1) or not _is_scalar(op):
        return False
    holds = isinstance(op, arith.CmpiOp) and op.predicate.value.data in _EQUAL_HOLDS
    work.replace(op, [constant_op(int(holds), result_of(op).type)])
    return True


def scalar_folds() -> dict[type[Operation], tuple[Fold, ...]]:
    """The folds of every scalar op."""
    kinds = [kind for dialect in (Arith, Math) for kind in dialect.operations if kind is not arith.ConstantOp]
    folds: dict[type[Operation], tuple[Fold, ...]] = {kind: (fold_scalar_constants,) for kind in kinds}
    folds |= {kind: (fold_scalar_constants, fold_identity) for kind in _IDENTITIES}
    for kind in (arith.CmpiOp, arith.SubiOp, arith.XOrIOp):
        folds[kind] = (*folds[kind], fold_of_itself)
    return folds | {kind: (fold_scalar_constants, expansion) for kind, expansion in EXPANSIONS.items()}
