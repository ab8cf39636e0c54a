"""A pad that nobody reads in place is written by what makes its interior: the border stands beside it, as parts of one
tensor.

    conv -> relu -> pad -> return      =>      conv -> relu -> concat(border, concat(border, relu, border), border) ->
                                               return

The dispatch of the root writes its result where it lies in the padded tensor, and the border besides (`concat-slices`);
it is never a fill of the whole and a copy. Where the interior has other readers, elementwise ones, they run in that
dispatch too. Left alone: what a window reads in place (`fold-pad-into-consumer` goes first), and a pad of what no root
makes, which is one traversal over the padded tensor already.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from xdsl.dialects import func, tensor
from xdsl.ir import Operation, OpResult, SSAValue
from xdsl.rewriter import Rewriter

from fuseline.analysis.structured import HEAVY, Kind, is_generic, kind
from fuseline.ir import dim as d
from fuseline.ir.build import Emitter, element_of
from fuseline.ir.dim import Dim, lower_bound
from fuseline.ir.fast.create import create_concat, create_fill
from fuseline.ir.reachable import reachable
from fuseline.passes.layout.rewriting.pads import high_of, low_of, outer_value
from fuseline.passes.layout.rewriting.permutation import users_of
from fuseline.passes.layout.rewriting.reshapes import ReshapeOp
from fuseline.passes.layout.rewriting.scope import Scope
from fuseline.passes.layout.rewriting.scoped_pass import ScopedPass
from fuseline.passes.padding.fold_pad_into_consumer import pad_value

_EPILOGUES = (Kind.ELEMENTWISE, Kind.COPY, Kind.TRANSPOSE, Kind.BROADCAST)


@dataclass(frozen=True)
class FoldPadIntoProducerPass(ScopedPass):
    """Writes the border of padded results beside them."""

    name = "fold-pad-into-producer"

    def rewrite(self, scope: Scope) -> None:
        """Replace each pad by concats where its operand comes from a root."""
        pads = [inner for inner in scope.block.ops if isinstance(inner, tensor.PadOp)]
        for pad in pads:
            _fold(scope, pad)
        if pads:
            scope.sweep()


def _fold(scope: Scope, op: tensor.PadOp) -> None:
    amounts = _amounts(scope, op)
    if amounts is None or pad_value(op) is None or not _is_stored(op.result):
        return
    if not all(user is op or _runs_where_it_is_made(user) for user in users_of(op.source)) or not _is_made_by_root(
        op.source
    ):
        return
    if 1 + sum(size != 0 for pair in amounts for size in pair) > scope.ctx.target.arms_limit:
        return
    at = Emitter.before(op)
    scalar = outer_value(op, at)
    assert scalar is not None
    value: SSAValue = op.source
    for axis in reversed(range(len(amounts))):
        value = _bordered(scope, at, value, axis, amounts[axis], scalar)
    if value.name_hint is None:
        value.name_hint = op.result.name_hint
    op.result.replace_all_uses_with(value)
    Rewriter.erase_op(op)


def _amounts(scope: Scope, op: tensor.PadOp) -> list[tuple[Dim, Dim]] | None:
    """The padding before and after each dimension; None where some of it is not known when the function begins, or may
    be taken away."""
    sizes = [[_size(scope, amount) for amount in amounts] for amounts in (low_of(op), high_of(op))]
    known = scope.knows_all([*sizes[0], *sizes[1], *scope.dims(op.result)])
    least = [lower_bound(size) for side in sizes for size in side]
    return list(zip(*sizes, strict=True)) if known and all(low is not None and low >= 0 for low in least) else None


def _size(scope: Scope, amount: int | SSAValue) -> Dim:
    return amount if isinstance(amount, int) else scope.shapes.index(amount)


def _is_stored(value: SSAValue) -> bool:
    """Whether anyone needs `value` in memory: a result of the function, an operator on the host, at times behind a
    reshape."""
    return any(
        isinstance(user, func.ReturnOp | func.CallOp) or (isinstance(user, ReshapeOp) and _is_stored(user.result))
        for user in users_of(value)
    )


def _is_made_by_root(value: SSAValue) -> bool:
    """Whether a root makes `value`, at times through elementwise ops that run where it does."""

    def inputs(made: SSAValue) -> Sequence[SSAValue]:
        if isinstance(made, OpResult) and is_generic(made.op) and kind(made.op) in _EPILOGUES:
            return made.op.inputs
        return ()

    return any(isinstance(made, OpResult) and kind(made.op) in HEAVY for made in reachable([value], inputs))


def _runs_where_it_is_made(user: Operation) -> bool:
    """Whether a reader beside the pad may share the dispatch that makes what is padded: then that has two results, and
    reads nothing back."""
    return isinstance(user, func.ReturnOp) or (is_generic(user) and kind(user) in _EPILOGUES)


def _bordered(
    scope: Scope, at: Emitter, value: SSAValue, axis: int, amounts: tuple[Dim, Dim], scalar: SSAValue
) -> SSAValue:
    """`value` between borders along one dimension."""
    shape, element = list(scope.dims(value)), element_of(value)
    if amounts == (0, 0):
        return value
    parts = [value]
    for size, place in zip(amounts, (0, 2), strict=True):
        if size != 0:
            border = scope.empty(at, element, [*shape[:axis], size, *shape[axis + 1 :]])
            parts.insert(place, at.add(create_fill(scalar, border)).results[0])
    shape[axis] = d.sum_of([shape[axis], *amounts])
    return at.add(create_concat(parts, axis, scope.typed(value, shape))).result


EXPORT = FoldPadIntoProducerPass
