"""compute-before-repeats: what is computed from each element of a repeated tensor is computed before it is repeated.

    quantized(upsampled(x))      =>      upsampled(quantized(x))

The same numbers, computed once each, by the dispatch that makes `x`; and whoever reads the repeated tensor may read it
in place, as nothing lies between. Repeated is what a broadcast, or a gather with more places than its source has
elements, makes (a border, an upsampling), with reshapes and transposes around it, for this reader alone. What is made
of an argument or of a constant stays where it is: it has no dispatch yet that could compute it.
"""

from __future__ import annotations

from dataclasses import dataclass

from xdsl.dialects import linalg
from xdsl.ir import Operation, OpResult, SSAValue

from fuseline.analysis.structured import Kind, is_generic, kind, producer_of
from fuseline.ir.build import Emitter
from fuseline.ir.dim import product
from fuseline.ir.fast.direct import ops_of, replace_uses, result_of, users_of_value
from fuseline.ir.provenance import carry
from fuseline.passes.cleanup.quantized_operands import moved_again
from fuseline.passes.layout.rewriting.repeated_parts import applied, is_point_by_point
from fuseline.passes.layout.rewriting.repeats import moved_by
from fuseline.passes.layout.rewriting.scope import Scope
from fuseline.passes.layout.rewriting.scoped_pass import ScopedPass


@dataclass(frozen=True)
class ComputeBeforeRepeatsPass(ScopedPass):
    """Has no options."""

    name = "compute-before-repeats"

    def rewrite(self, scope: Scope) -> None:
        """In order, so that a chain of ops moves as one."""
        found = False
        for op in ops_of(scope.block):
            if is_generic(op) and kind(op) is Kind.ELEMENTWISE and is_point_by_point(op, in_order=True):
                moves = _repeats(scope, op)
                if moves:
                    _compute_before(op, moves)
                    found = True
        if found:
            scope.sweep()


def _repeats(scope: Scope, op: linalg.ops.GenericOp) -> list[Operation]:
    """The moves between `op` and the smallest tensor that what it reads is made of, the last one first; none where that
    is no smaller, or nobody computes it."""
    moves, best = list[Operation](), 0
    value: SSAValue = op.inputs[0]
    least, move = _elements(scope, value), producer_of(value)
    while move is not None and least is not None:
        moved = moved_by(move)
        if moved is None or len(users_of_value(value)) != 1:
            break
        moves.append(move)
        value, move = moved, producer_of(moved)
        size = _elements(scope, value)
        if size is not None and size < least and is_generic(move):
            best, least = len(moves), size
    return moves[:best]


def _elements(scope: Scope, value: SSAValue) -> int | None:
    """How many elements a tensor has, where that is known."""
    size = product(scope.dims(value))
    return size if isinstance(size, int) else None


def _compute_before(op: linalg.ops.GenericOp, moves: list[Operation]) -> None:
    source = moved_by(moves[-1])
    assert source is not None
    value: SSAValue = applied(op, source, moves[-1])
    for move in reversed(moves):
        value = moved_again(Emitter.before(op), move, value)
    assert isinstance(value, OpResult)
    carry([op], [value.op])
    replace_uses(result_of(op), value)


EXPORT = ComputeBeforeRepeatsPass
