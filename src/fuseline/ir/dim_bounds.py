"""Bounds of sizes, from those of their symbols."""

from __future__ import annotations

from functools import lru_cache

from fuseline.ir.dim_terms import Atom, Dim, Quotient, Symbol, terms_of


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


def _term_bounds(monomial: tuple[Atom, ...], coefficient: int) -> tuple[int | None, int | None]:
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
    total = 0
    for monomial, coefficient in terms_of(dim).items():
        value = _term_bounds(monomial, coefficient)[end]
        if value is None:
            return None
        total += value
    return total


def lower_bound(dim: Dim) -> int | None:
    """The greatest known lower bound, None where there is none."""
    return _bound(dim, 0)


def upper_bound(dim: Dim) -> int | None:
    """The least known upper bound, None where there is none."""
    return _bound(dim, 1)
