"""Bounds of sizes, from those of their symbols; a quotient that others cancel is bounded by the fraction it rounds."""

from __future__ import annotations

from fractions import Fraction
from functools import lru_cache
from math import ceil, floor
from typing import TypeAlias

from fuseline.ir.dim_terms import Atom, Dim, Expr, Quotient, Symbol, terms_of

_Fractions: TypeAlias = dict[tuple[Atom, ...], Fraction]


@lru_cache(maxsize=1 << 14)
def _atom_bounds(atom: Atom) -> tuple[int | None, int | None]:
    if isinstance(atom, Symbol):
        return atom.lo, atom.hi
    if isinstance(atom, Quotient):
        return _quotient_bounds(atom)
    a, b = (lower_bound(atom.lhs), upper_bound(atom.lhs)), (lower_bound(atom.rhs), upper_bound(atom.rhs))
    pick = max if atom.kind == "max" else min
    lows = [x for x in (a[0], b[0]) if x is not None]
    highs = [x for x in (a[1], b[1]) if x is not None]
    low = pick(lows) if len(lows) == 2 else (lows[0] if lows and atom.kind == "max" else None)
    high = pick(highs) if len(highs) == 2 else (highs[0] if highs and atom.kind == "min" else None)
    return low, high


def _quotient_bounds(atom: Quotient) -> tuple[int | None, int | None]:
    low, high = lower_bound(atom.numerator), upper_bound(atom.numerator)
    small, big = lower_bound(atom.denominator), upper_bound(atom.denominator)
    if small is None or small <= 0:
        return None, None
    lowest = None if low is None else (low // small if low < 0 else (low // big if big is not None else 0))
    highest = None if high is None else (high // small if high >= 0 else (high // big if big is not None else -1))
    return lowest, highest


def _term_bounds(
    monomial: tuple[Atom, ...], coefficient: int | Fraction
) -> tuple[int | Fraction | None, int | Fraction | None]:
    if len(monomial) == 1:
        lo, hi = _atom_bounds(monomial[0])
        ends = None if lo is None else lo * coefficient, None if hi is None else hi * coefficient
        return ends if coefficient > 0 else (ends[1], ends[0])
    low: int | None = 1
    high: int | None = 1
    for atom in monomial:
        lo, hi = _atom_bounds(atom)
        if lo is None or lo < 0:
            return None, None
        low = low * lo
        high = None if high is None or hi is None else high * hi
    ends = (low * coefficient, None if high is None else high * coefficient)
    return ends if coefficient > 0 else (ends[1], ends[0])


def _bound(dim: Dim, end: int) -> int | None:
    if isinstance(dim, int):
        return dim
    each = _sum_of_bounds(terms_of(dim), end)
    fraction = _bound_by_fractions(dim, end) if _may_cancel(dim) else None
    found = [round(bound) for bound in (each, fraction) if bound is not None]
    return (min(found) if end else max(found)) if found else None


def _sum_of_bounds(terms: dict[tuple[Atom, ...], int] | _Fractions, end: int) -> int | Fraction | None:
    total: int | Fraction = 0
    for monomial, coefficient in terms.items():
        value = _term_bounds(monomial, coefficient)[end]
        if value is None:
            return None
        total += value
    return total


def _may_cancel(dim: Expr) -> bool:
    """Whether terms of both signs, one of them a quotient, leave less than each may be."""
    signs = {count > 0 for monomial, count in dim.terms if monomial}
    return len(signs) == 2 and any(_divided(monomial) is not None for monomial, _ in dim.terms)


def _divided(monomial: tuple[Atom, ...]) -> Quotient | None:
    """The quotient by a positive number that a monomial is, else None."""
    atom = monomial[0] if len(monomial) == 1 else None
    return atom if isinstance(atom, Quotient) and isinstance(atom.denominator, int) and atom.denominator > 0 else None


def _bound_by_fractions(dim: Expr, end: int) -> int | None:
    """The bound with `n / d - (d - 1) / d <= n // d <= n / d` for every quotient by a number: what is left of a size
    after its halves are taken away is 0 or 1, whatever the size."""
    bound = _sum_of_bounds(_fractions(dim, end), end)
    return None if bound is None else floor(bound) if end else ceil(bound)


@lru_cache(maxsize=1 << 12)
def _fractions(dim: Dim, end: int) -> _Fractions:
    """What bounds `dim` at `end` without quotients by numbers. Kept, since sizes of sizes of sizes have each one before
    them several times."""
    found: _Fractions = {}
    for monomial, count in terms_of(dim).items():
        quotient, side = _divided(monomial), end if count > 0 else 1 - end
        if quotient is None:
            _add(found, monomial, Fraction(count))
            continue
        assert isinstance(quotient.denominator, int)
        for inner, share in _fractions(quotient.numerator, side).items():
            _add(found, inner, share * count / quotient.denominator)
        if side == 0:
            _add(found, (), Fraction(-count * (quotient.denominator - 1), quotient.denominator))
    return {monomial: share for monomial, share in found.items() if share}


def _add(terms: _Fractions, monomial: tuple[Atom, ...], share: Fraction) -> None:
    terms[monomial] = terms.get(monomial, Fraction(0)) + share


def lower_bound(dim: Dim) -> int | None:
    """The greatest known lower bound, None where there is none."""
    return _bound(dim, 0)


def upper_bound(dim: Dim) -> int | None:
    """The least known upper bound, None where there is none."""
    return _bound(dim, 1)
