"""Whether one size is never less than another, also where that takes more than the bounds of each term: quotients
against what they divide."""

from __future__ import annotations

from collections.abc import Iterator

from fuseline.ir import dim as d
from fuseline.ir.dim import Atom, Dim, Expr, Extreme, Quotient

_REPLACED = 4
"""Terms replaced in one proof at most: each may be replaced in a few ways."""

_MOST_TERMS = 20_000
"""Terms of all the sums that one proof looks at, at some 10 us each: four terms of a hundred extremes are replaced in
more than a billion ways."""


def never_less(left: Dim, right: Dim) -> bool:
    """Whether `left >= right` for all values of the symbols; False where that is not found out.

    >>> h = d.symbol("h")
    >>> never_less(d.add(h, 1), d.mul(2, d.floor_div(h, 2)))
    True
    >>> never_less(d.mul(3, d.floor_div(h, 2)), h)
    False
    """
    difference, proof = d.sub(left, right), _Proof()
    return any(proof.never_negative(difference, replaced) for replaced in range(_REPLACED + 1))


class _Proof:
    """What is tried for one answer: first whatever replaces few terms."""

    def __init__(self) -> None:
        self._terms = 0

    def never_negative(self, difference: Dim, left: int) -> bool:
        """Whether a sum is none once at most `left` of its terms are replaced."""
        low = d.lower_bound(difference)
        if low is not None and low >= 0:
            return True
        if left == 0 or isinstance(difference, int) or self._terms > _MOST_TERMS:
            return False
        return any(self._all(way, left - 1) for way in _smaller(difference))

    def _all(self, sums: list[Dim], left: int) -> bool:
        self._terms += sum(len(one.terms) for one in sums if isinstance(one, Expr))
        return self._terms <= _MOST_TERMS and all(self.never_negative(one, left) for one in sums)


def _smaller(total: Expr) -> Iterator[list[Dim]]:
    """Ways to replace one term of a sum by something without it: each is a list of sums, the least of which is no
    greater than `total`."""
    for monomial, count in total.terms:
        if len(monomial) == 1 and isinstance(monomial[0], Quotient | Extreme):
            rest = d.sub(total, Expr(((monomial, count),)))
            for bounds in _bounds(monomial[0], count):
                yield [d.add(rest, bound) for bound in bounds]


def _bounds(atom: Atom, count: int) -> Iterator[list[Dim]]:
    """Sizes of which `count * atom` is no less than the least."""
    if isinstance(atom, Extreme):
        sides = [d.mul(atom.lhs, count), d.mul(atom.rhs, count)]
        if (atom.kind == "max") == (count > 0):
            yield from ([side] for side in sides)  # either one will do
        else:
            yield sides
    elif (
        isinstance(atom, Quotient)
        and isinstance(atom.denominator, int)
        and atom.denominator > 0
        and count % atom.denominator == 0
    ):
        most_rest = atom.denominator - 1 if count > 0 else 0
        yield [d.mul(d.sub(atom.numerator, most_rest), count // atom.denominator)]
