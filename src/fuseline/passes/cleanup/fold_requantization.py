"""fold-requantization: integers that are dequantised and quantised again to the same numbers stay as they are.

    quantized(dequantized(q))               =>      q          where all 256 numbers come back
    quantized(moved(dequantized(q)))        =>      moved(q)

Operators that only move or choose elements (a resize, a border, a maximum, a concat) are written so by tools that put a
pair around every operator, mostly with the scale of what they read; in between, elements may be moved (reshaped,
transposed, sliced: attention is full of it). Whether a pair does nothing is found by computing
it for every number of the type, so what it is written as does not count.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from xdsl.dialects import linalg
from xdsl.dialects.builtin import IntegerType
from xdsl.ir import Operation, SSAValue

from fuseline.analysis.indexing_maps import is_identity
from fuseline.analysis.stored_integers import STORED_BITS
from fuseline.analysis.structured import Kind, StructuredOp, captured, is_generic, kind, producer_of, yielded
from fuseline.evaluation.program import Program, run_op
from fuseline.evaluation.program import Scope as Values
from fuseline.ir.build import Emitter, element_of
from fuseline.ir.fast.direct import body_of, ops_of, replace_uses, result_of
from fuseline.passes.cleanup.moved_elements import moved, moves_behind
from fuseline.passes.layout.rewriting.generics import index_ops
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
            if pair is not None and _is_undone(pair.first, pair.second):
                replace_uses(result_of(op), pair.integers(op))
                found = True
        if found:
            scope.sweep()


@dataclass(frozen=True, slots=True)
class _Pair:
    """Two elementwise ops, and what moves elements between them."""

    first: linalg.ops.GenericOp
    moves: list[Operation]
    second: linalg.ops.GenericOp

    def integers(self, before: Operation) -> SSAValue:
        """What the first reads, moved to where the second has it, before an op."""
        stored = _placed(self.first, self.first.inputs[0], before)
        return _placed(self.second, moved(stored, self.moves, before), before)


def _placed(op: linalg.ops.GenericOp, value: SSAValue, before: Operation) -> SSAValue:
    """The elements of `value` where `op` has what it computes of them."""
    (read,) = StructuredOp(op).input_maps
    if is_identity(read):
        return value
    at = Emitter.before(before)
    return at.elementwise([value], at.empty_like(op.outputs[0], element_of(value)), lambda b: b.args[0], [read])


def _pair(op: linalg.ops.GenericOp) -> _Pair | None:
    """`op`, and what makes the elements that it reads, where both go from element to element and the end is of the type
    of the beginning: stored integers."""
    if not _is_closed(op):
        return None
    value, moves = moves_behind(op.inputs[0])
    first = producer_of(value)
    if not is_generic(first) or not _is_closed(first):
        return None
    element = element_of(first.inputs[0])
    stored = isinstance(element, IntegerType) and element.width.data == STORED_BITS
    return _Pair(first, moves, op) if stored and element == element_of(result_of(op)) else None


def _is_closed(op: linalg.ops.GenericOp) -> bool:
    """Whether `op` makes each element of one by what stands in its body alone."""
    if kind(op) is not Kind.ELEMENTWISE or len(op.inputs) != 1 or len(op.results) != 1:
        return False
    in_order = is_identity(StructuredOp(op).output_maps[0])
    return in_order and not captured(op) and not index_ops(op) and not list(body_of(op).args[1].uses)


def _is_undone(first: linalg.ops.GenericOp, second: linalg.ops.GenericOp) -> bool:
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
