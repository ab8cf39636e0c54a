"""fold-requantization: integers that are dequantised and quantised again to the same numbers stay as they are.

    quantized(dequantized(q))      =>      q          where all 256 numbers come back

Operators that only move or choose elements (a resize, a border, a maximum, a concat) are written so by tools that put a
pair around every operator, mostly with the scale of what they read. Whether a pair does nothing is found by computing
it for every number of the type, so what it is written as does not count.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from xdsl.dialects import linalg
from xdsl.dialects.builtin import IntegerType
from xdsl.ir import SSAValue

from fuseline.analysis.stored_integers import STORED_BITS
from fuseline.analysis.structured import Kind, captured, is_generic, kind, producer_of, yielded
from fuseline.evaluation.program import Program, run_op
from fuseline.evaluation.program import Scope as Values
from fuseline.ir.build import element_of
from fuseline.ir.fast.direct import body_of, ops_of, replace_uses, result_of
from fuseline.passes.layout.rewriting.repeated_parts import is_point_by_point
from fuseline.passes.layout.rewriting.scope import Scope
from fuseline.passes.layout.rewriting.scoped_pass import ScopedPass


@dataclass(frozen=True)
class FoldRequantizationPass(ScopedPass):
    """Has no options."""

    name = "fold-requantization"

    def rewrite(self, scope: Scope) -> None:
        """In order, so that a chain of pairs goes as one."""
        found = False
        for op in ops_of(scope.block):
            pair = _pair(op) if is_generic(op) else None
            if pair is not None and _is_identity(*pair):
                replace_uses(result_of(op), pair[0].inputs[0])
                found = True
        if found:
            scope.sweep()


def _pair(op: linalg.ops.GenericOp) -> tuple[linalg.ops.GenericOp, linalg.ops.GenericOp] | None:
    """What makes `op`'s input, and `op`, where both go from element to element and the end is of the type of the
    beginning: stored integers."""
    if not _is_closed(op):
        return None
    first = producer_of(op.inputs[0])
    if not is_generic(first) or not _is_closed(first):
        return None
    element = element_of(first.inputs[0])
    stored = isinstance(element, IntegerType) and element.width.data == STORED_BITS
    return (first, op) if stored and element == element_of(result_of(op)) else None


def _is_closed(op: linalg.ops.GenericOp) -> bool:
    """Whether `op` goes from element to element by what stands in its body alone."""
    return kind(op) is Kind.ELEMENTWISE and is_point_by_point(op, in_order=True) and not captured(op)


def _is_identity(first: linalg.ops.GenericOp, second: linalg.ops.GenericOp) -> bool:
    element = element_of(first.inputs[0])
    assert isinstance(element, IntegerType)
    numbers = np.arange(1 << element.width.data).astype(np.uint8).view(np.int8)
    return np.array_equal(_computed(second, _computed(first, numbers)), numbers)


def _computed(op: linalg.ops.GenericOp, numbers: np.ndarray) -> np.ndarray:
    """What the body of `op` makes of each of `numbers`."""
    scope = Values(Program())
    scope.values[body_of(op).args[0]] = numbers
    last: SSAValue = yielded(op)[0]
    with np.errstate(all="ignore"):
        for inner in ops_of(body_of(op))[:-1]:
            run_op(inner, scope)
    return np.broadcast_to(np.asarray(scope[last]), numbers.shape)


EXPORT = FoldRequantizationPass
