"""`affine.apply`, `affine.min` and `affine.max` as index arithmetic."""

from __future__ import annotations

from collections.abc import Sequence

from xdsl.dialects import affine, arith
from xdsl.dialects.builtin import ModuleOp
from xdsl.ir import SSAValue
from xdsl.ir.affine import (
    AffineBinaryOpExpr,
    AffineBinaryOpKind,
    AffineConstantExpr,
    AffineDimExpr,
    AffineExpr,
    AffineSymExpr,
)

from fuseline.errors import FuselineError
from fuseline.ir.build import Emitter
from fuseline.ir.provenance import replace
from fuseline.ir.text import text_location


def expand_affine(module: ModuleOp) -> None:
    """Write each map out, in `arith` ops on index values. Raises FuselineError: E0302 for a division by a number that
    is not positive."""
    for op in list(module.walk()):
        if isinstance(op, affine.ApplyOp):
            _expand(op, op.map.data.results, op.mapOperands, op.map.data.num_dims, arith.AddiOp)
        elif isinstance(op, affine.MinOp):
            _expand(op, op.map.data.results, op.arguments, op.map.data.num_dims, arith.MinSIOp)


def _expand(
    op: affine.ApplyOp | affine.MinOp,
    results: Sequence[AffineExpr],
    operands: Sequence[SSAValue],
    dims: int,
    combine: type[arith.AddiOp] | type[arith.MinSIOp],
) -> None:
    for term in (term for expression in results for term in expression.dfs()):
        if (
            isinstance(term, AffineBinaryOpExpr)
            and term.kind in _DIVIDING
            and isinstance(term.rhs, AffineConstantExpr)
            and term.rhs.value <= 0
        ):
            raise FuselineError("E0302", f"{op.name}: divides by {term.rhs.value}", node=text_location(op.location))
    emit = Emitter.before(op)
    values = [_value(emit, expression, operands, dims) for expression in results]
    total = values[0]
    for value in values[1:]:
        total = emit.add(combine(total, value)).result
    replace(op, [], [total])


def _value(emit: Emitter, expression: AffineExpr, operands: Sequence[SSAValue], dims: int) -> SSAValue:
    if isinstance(expression, AffineConstantExpr):
        return emit.index(expression.value)
    if isinstance(expression, AffineDimExpr):
        return operands[expression.position]
    if isinstance(expression, AffineSymExpr):
        return operands[dims + expression.position]
    assert isinstance(expression, AffineBinaryOpExpr)
    left, right = (_value(emit, side, operands, dims) for side in (expression.lhs, expression.rhs))
    if expression.kind is AffineBinaryOpKind.Mod:
        whole = emit.add(arith.MuliOp(emit.add(arith.FloorDivSIOp(left, right)).result, right)).result
        return emit.add(arith.SubiOp(left, whole)).result
    return emit.add(_OPS[expression.kind](left, right)).result


_OPS = {
    AffineBinaryOpKind.Add: arith.AddiOp,
    AffineBinaryOpKind.Mul: arith.MuliOp,
    AffineBinaryOpKind.FloorDiv: arith.FloorDivSIOp,
    AffineBinaryOpKind.CeilDiv: arith.CeilDivSIOp,
}

_DIVIDING = (AffineBinaryOpKind.FloorDiv, AffineBinaryOpKind.CeilDiv, AffineBinaryOpKind.Mod)
