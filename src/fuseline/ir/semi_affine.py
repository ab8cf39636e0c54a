"""Affine maps whose symbols are factors and divisors of other terms, which MLIR has and xDSL does not read.

affine_map<()[s0, s1] -> (s0 * s1 + s0 floordiv s1)>
"""

from __future__ import annotations

from xdsl.ir.affine import AffineBinaryOpExpr, AffineBinaryOpKind, AffineConstantExpr, AffineDimExpr, AffineExpr
from xdsl.parser.affine_parser import AffineParser
from xdsl.utils.mlir_lexer import MLIRToken

_KINDS = {
    "*": AffineBinaryOpKind.Mul,
    "floordiv": AffineBinaryOpKind.FloorDiv,
    "ceildiv": AffineBinaryOpKind.CeilDiv,
    "mod": AffineBinaryOpKind.Mod,
}


class SemiAffineParser(AffineParser):
    """xDSL's parser of maps; a product of two terms, one of them of symbols alone, is one, too, and so is a quotient by
    symbols."""

    def _create_binop_expr(self, lhs: AffineExpr, rhs: AffineExpr, binop: MLIRToken) -> AffineExpr:
        kind = _KINDS.get(binop.text)
        if kind is AffineBinaryOpKind.Mul and _is_of_symbols(lhs):
            lhs, rhs = rhs, lhs
        if kind is None or not _is_of_symbols(rhs) or (isinstance(lhs, AffineConstantExpr) and kind is _KINDS["*"]):
            return super()._create_binop_expr(lhs, rhs, binop)
        return AffineBinaryOpExpr(kind, lhs, rhs)


def _is_of_symbols(expression: AffineExpr) -> bool:
    """Whether a term differs between runs, and not between the points of one."""
    terms = list(expression.dfs())
    return not any(isinstance(term, AffineDimExpr) for term in terms) and not all(
        isinstance(term, AffineConstantExpr | AffineBinaryOpExpr) for term in terms
    )
