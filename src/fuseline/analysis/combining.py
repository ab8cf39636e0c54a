"""Reductions whose order does not matter, and those that fold their elements in the order of their loops.

sum, product, largest ..      result = combine(result, element), by an op that takes its terms in any order
arg-max, decaying sums ..     the first of equal elements stays, a later one weighs more: the reduction loops
                              of such an op keep their order, whatever else moves
"""

from __future__ import annotations

from collections.abc import Sequence

from xdsl.dialects import arith, linalg
from xdsl.ir import Operation, OpResult, SSAValue

from fuseline.analysis.structured import StructuredOp, yielded
from fuseline.analysis.structured_op import input_count
from fuseline.ir.fast.direct import body_of, operands_of
from fuseline.ir.scalar_ops import COMMUTATIVE

ANY_ORDER: frozenset[type[Operation]] = COMMUTATIVE | {arith.MaxnumfOp, arith.MinnumfOp}
"""Ops that combine terms in any order (sums and products of floats but for rounding)."""

Combination = tuple[Operation, SSAValue]
"""The op that combines, and the element."""


def combinations(op: linalg.ops.GenericOp) -> list[Combination] | None:
    """How each result combines what is there with an element; None if some result depends on the order of the
    reduction or on another one's running value."""
    arguments, inputs = body_of(op).args, input_count(op)
    found = [_combination(value, arguments[inputs + position]) for position, value in enumerate(yielded(op))]
    return [one for one in found if one is not None] if None not in found else None


def _combination(value: SSAValue, accumulator: SSAValue) -> Combination | None:
    if type(value) is not OpResult or type(value.op) not in ANY_ORDER:
        return None
    first, second = operands_of(value.op)
    if accumulator not in (first, second) or len(list(accumulator.uses)) != 1:
        return None
    return value.op, second if first is accumulator else first


def is_ordered(view: StructuredOp) -> bool:
    """Whether the results depend on the order of two or more reduction loops."""
    return len(view.reduction) > 1 and combinations(view.op) is None


def in_fold_order(view: StructuredOp, loops: Sequence[int]) -> tuple[int, ...]:
    """The order of loops `loops` with the reduction loops as they come now, where that matters: the places that
    reductions have among the others stay theirs."""
    if not is_ordered(view):
        return tuple(loops)
    left = iter(view.reduction)
    return tuple([next(left) if view.iterators[loop] == "reduction" else loop for loop in loops])
