"""order-constants-as-results: a constant factor of a product lies in the order in which the result is written.

    y[f, h, p, w, q] = sum over c of x[c, h, w] * k[c, p, q, f]       =>        .. * k'[c, f, p, q]

Transposed convolutions end so: their filter is made with the channels last, and then the channels of the result come
first. A kernel whose lanes run along pixels takes columns of `k` as rows, one element of each at a time: neighbours of
the result are neighbours in memory, in place of one cache line each. Panels of columns are packed from any order.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from xdsl.dialects import linalg
from xdsl.ir import SSAValue

from fuseline.analysis.indexing_maps import loops_of
from fuseline.analysis.structured import Kind, StructuredOp, is_constant, is_generic, kind
from fuseline.ir.build import Emitter
from fuseline.ir.fast.direct import ops_of
from fuseline.passes.layout.rewriting.generics import permuted_results, set_input
from fuseline.passes.layout.rewriting.permutation import is_identity, transpose
from fuseline.passes.layout.rewriting.reshapes import root_of
from fuseline.passes.layout.rewriting.scope import Scope
from fuseline.passes.layout.rewriting.scoped_pass import ScopedPass


@dataclass(frozen=True)
class OrderConstantsAsResultsPass(ScopedPass):
    """Has no options."""

    name = "order-constants-as-results"

    def rewrite(self, scope: Scope) -> None:
        """Every product of every function; the transposes are of constants, and folded."""
        for op in ops_of(scope.block):
            if is_generic(op) and kind(op) is Kind.CONTRACTION:
                _order_factors(scope, op)


def _order_factors(scope: Scope, op: linalg.ops.GenericOp) -> None:
    view = StructuredOp(op)
    written = loops_of(view.output_maps[0].results)
    for i, value in enumerate(view.inputs):
        if _is_known(value):
            permutation = _as_written(loops_of(view.input_maps[i].results), written)
            if permutation is not None and not is_identity(permutation):
                moved = transpose(scope, Emitter.before(op), value, permutation)
                set_input(op, i, moved, permuted_results(view.input_maps[i], permutation))


def _is_known(value: SSAValue) -> bool:
    """Whether a value is a constant, in any shape."""
    return is_constant(root_of(value))


def _as_written(loops: Sequence[int | None], written: Sequence[int | None]) -> tuple[int, ...] | None:
    """The dimensions of a factor, those of the result in its order at the places that they have, the others where they
    are; None where one is no loop."""
    if None in loops or None in written:
        return None
    places = [axis for axis, loop in enumerate(loops) if loop in written]
    ordered = sorted(places, key=lambda axis: written.index(loops[axis]))
    moved = dict(zip(places, ordered, strict=True))
    return tuple(moved.get(axis, axis) for axis in range(len(loops)))


EXPORT = OrderConstantsAsResultsPass
