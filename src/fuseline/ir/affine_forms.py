"""Affine maps in which nothing that may be negative is divided: what processors divide fastest, and what ranges are
easily told of.

Loops count from 0, so that only coefficients and constants make a numerator negative. Whole multiples of the divisor
leave the quotient, and leave a remainder unchanged:

    (d0 - 4) floordiv 3    =>    (d0 + 2) floordiv 3 - 2
    (-d0 + 1) mod 5        =>    (d0 * 4 + 1) mod 5
"""

from __future__ import annotations

from dataclasses import dataclass, field

from xdsl.ir.affine import (
    AffineBinaryOpExpr,
    AffineBinaryOpKind,
    AffineConstantExpr,
    AffineDimExpr,
    AffineExpr,
    AffineMap,
)

from fuseline.ir.fast.identity import by_identity


@dataclass(frozen=True)
class AffineForm:
    """`constant + sum(coefficient * term)`: terms are loops, and quotients and remainders of forms whose numbers are
    not negative."""

    terms: dict[AffineExpr, int] = field(default_factory=dict[AffineExpr, int])
    constant: int = 0

    def plus(self, other: AffineForm) -> AffineForm:
        """The sum; terms that cancel are gone."""
        terms = dict(self.terms)
        for term, coefficient in other.terms.items():
            terms[term] = terms.get(term, 0) + coefficient
        return AffineForm({term: c for term, c in terms.items() if c}, self.constant + other.constant)

    def times(self, factor: int) -> AffineForm:
        """The product with a number."""
        return AffineForm({term: c * factor for term, c in self.terms.items() if factor}, self.constant * factor)

    def split(self, divisor: int) -> tuple[AffineForm, AffineForm]:
        """`whole * divisor + rest` is the form, the numbers of `rest` in `0..divisor - 1`."""
        whole = {term: c // divisor for term, c in self.terms.items() if c // divisor}
        rest = {term: c % divisor for term, c in self.terms.items() if c % divisor}
        return AffineForm(whole, self.constant // divisor), AffineForm(rest, self.constant % divisor)

    @property
    def expression(self) -> AffineExpr:
        """The form as an expression."""
        total: AffineExpr | None = None
        for term, coefficient in self.terms.items():
            scaled = term if coefficient == 1 else _binary(AffineBinaryOpKind.Mul, term, coefficient)
            total = scaled if total is None else AffineBinaryOpExpr(AffineBinaryOpKind.Add, total, scaled)
        if total is None:
            return AffineConstantExpr(self.constant)
        return _binary(AffineBinaryOpKind.Add, total, self.constant) if self.constant else total


def _binary(kind: AffineBinaryOpKind, left: AffineExpr, right: int) -> AffineExpr:
    return AffineBinaryOpExpr(kind, left, AffineConstantExpr(right))


def affine_form(expression: AffineExpr) -> AffineForm | None:
    """The form of an expression; None for symbols, products of loops and divisors that are no positive number."""
    if isinstance(expression, AffineConstantExpr):
        return AffineForm(constant=expression.value)
    if isinstance(expression, AffineDimExpr):
        return AffineForm({expression: 1})
    if not isinstance(expression, AffineBinaryOpExpr):
        return None
    left, right = affine_form(expression.lhs), affine_form(expression.rhs)
    return None if left is None or right is None else _combined(expression.kind, left, right)


def _combined(kind: AffineBinaryOpKind, left: AffineForm, right: AffineForm) -> AffineForm | None:
    if kind is AffineBinaryOpKind.Add:
        return left.plus(right)
    if kind is AffineBinaryOpKind.Mul:
        left, right = (right, left) if right.terms else (left, right)
    if right.terms:
        return None
    return left.times(right.constant) if kind is AffineBinaryOpKind.Mul else _divided(kind, left, right.constant)


def _divided(kind: AffineBinaryOpKind, form: AffineForm, divisor: int) -> AffineForm | None:
    if divisor <= 0:
        return None
    if kind is AffineBinaryOpKind.CeilDiv:
        return _divided(AffineBinaryOpKind.FloorDiv, form.plus(AffineForm(constant=divisor - 1)), divisor)
    whole, rest = form.split(divisor)
    if kind is AffineBinaryOpKind.Mod:
        return AffineForm({_binary(kind, rest.expression, divisor): 1}) if rest.terms else rest
    return whole.plus(AffineForm({_binary(kind, rest.expression, divisor): 1})) if rest.terms else whole


@by_identity
def with_safe_divisions(map_: AffineMap) -> AffineMap:
    """The map with forms for what divides; results without a form, and those that divide nothing, stay as they are."""
    if not any(map(_divides, map_.results)):
        return map_
    return AffineMap(map_.num_dims, map_.num_symbols, tuple(map(_safe, map_.results)))


def _safe(expression: AffineExpr) -> AffineExpr:
    form = affine_form(expression) if _divides(expression) else None
    return expression if form is None else form.expression


def _divides(expression: AffineExpr) -> bool:
    if not isinstance(expression, AffineBinaryOpExpr):
        return False
    linear = expression.kind in (AffineBinaryOpKind.Add, AffineBinaryOpKind.Mul)
    return not linear or _divides(expression.lhs) or _divides(expression.rhs)
