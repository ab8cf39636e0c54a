"""Sizes: a `Dim` is an int or a bounded symbolic integer expression with identity. What one is made of is in
`dim_terms.py`, its bounds in `dim_bounds.py`; both are asked for here.

A symbolic expression is a polynomial in canonical form, so equal sizes compare equal however they were computed:

>>> n = symbol("n", 1, 512)
>>> mul(add(n, 1), 2) == add(mul(2, n), 2)
True
>>> upper_bound(mul(n, 384))
196608
>>> evaluate(floor_div(add(n, 7), 8), {"n": 9})
2
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from functools import lru_cache

from fuseline.ir.dim_bounds import lower_bound as lower_bound
from fuseline.ir.dim_bounds import upper_bound as upper_bound
from fuseline.ir.dim_terms import LONGEST_TEXT as LONGEST_TEXT
from fuseline.ir.dim_terms import Atom as Atom
from fuseline.ir.dim_terms import Dim as Dim
from fuseline.ir.dim_terms import Expr as Expr
from fuseline.ir.dim_terms import Extreme as Extreme
from fuseline.ir.dim_terms import Quotient as Quotient
from fuseline.ir.dim_terms import Symbol as Symbol
from fuseline.ir.dim_terms import operands as operands
from fuseline.ir.dim_terms import size_of_terms, terms_of
from fuseline.ir.dim_terms import symbol as symbol
from fuseline.ir.dim_terms import symbols as symbols
from fuseline.ir.dim_terms import to_text as to_text
from fuseline.ir.polynomial import exact_quotient


def add(lhs: Dim, rhs: Dim) -> Dim:
    """`lhs + rhs`."""
    if isinstance(lhs, int) and isinstance(rhs, int):
        return lhs + rhs
    out = terms_of(lhs)
    for monomial, coefficient in terms_of(rhs).items():
        out[monomial] = out.get(monomial, 0) + coefficient
    rest = _without_both_extremes(out)
    return size_of_terms(out) if rest is None else rest


def _without_both_extremes(terms: Mapping[tuple[Atom, ...], int]) -> Dim | None:
    """The sum with `a + b` for `max(a, b) + min(a, b)`, as the parts of what was cut in two add up; None where nothing
    of the kind is in it."""
    alone = [monomial for monomial, count in terms.items() if count and len(monomial) == 1]
    highs = [one for one in alone if isinstance(one[0], Extreme) and one[0].kind == "max"]
    lows = [one for one in alone if isinstance(one[0], Extreme) and one[0].kind == "min"] if highs else []
    for high in highs:
        for low in lows:
            more = _same_operands(high[0], low[0])
            if more is None or terms[high] * terms[low] < 0:
                continue
            count = min(terms[high], terms[low], key=abs)
            rest = size_of_terms({**terms, high: terms[high] - count, low: terms[low] - count})
            return add(rest, mul(more, count))
    return None


def _same_operands(high: Atom, low: Atom) -> Dim | None:
    """The sum of a maximum and a minimum of the same two sizes, or of sizes that differ by the same amount; None for
    any other two."""
    assert isinstance(high, Extreme) and isinstance(low, Extreme)
    for lhs, rhs in ((low.lhs, low.rhs), (low.rhs, low.lhs)):
        if _gap(high.lhs, high.rhs) == _gap(lhs, rhs):
            return add(add(lhs, rhs), sub(high.lhs, lhs))
    return None


@lru_cache(maxsize=4096)
def _gap(lhs: Dim, rhs: Dim) -> Dim:
    """`lhs - rhs`, of what is compared with all others of a sum."""
    return sub(lhs, rhs)


def sub(lhs: Dim, rhs: Dim) -> Dim:
    """`lhs - rhs`."""
    return add(lhs, mul(rhs, -1))


def mul(lhs: Dim, rhs: Dim) -> Dim:
    """`lhs * rhs`."""
    if isinstance(lhs, int) and isinstance(rhs, int):
        return lhs * rhs
    out: dict[tuple[Atom, ...], int] = {}
    for left, a in terms_of(lhs).items():
        for right, b in terms_of(rhs).items():
            monomial = tuple(sorted(left + right, key=repr))
            out[monomial] = out.get(monomial, 0) + a * b
    return size_of_terms(out)


def _exact_quotient(numerator: Dim, denominator: Dim) -> Dim | None:
    """`numerator / denominator` where the division leaves no rest for any value of the symbols, else None."""
    found = exact_quotient(terms_of(numerator), terms_of(denominator))
    return None if found is None else size_of_terms(found)


def floor_div(numerator: Dim, denominator: Dim) -> Dim:
    """`floor(numerator / denominator)`; raises ZeroDivisionError for a constant zero.

    Whole multiples of a number leave the quotient, and quotients of quotients are one, so that chains of halvings
    compare equal:

    >>> n = symbol("n")
    >>> add(floor_div(sub(n, 1), 2), 1) == floor_div(add(n, 1), 2)
    True
    >>> ceil_div(ceil_div(n, 2), 2) == ceil_div(n, 4)
    True
    >>> m = symbol("m")
    >>> floor_div(mul(mul(6, n), add(n, m)), mul(2, add(m, n))) == mul(3, n)
    True
    """
    if isinstance(numerator, int) and isinstance(denominator, int):
        return numerator // denominator
    if denominator == 0:
        raise ZeroDivisionError("size divided by zero")
    exact = _exact_quotient(numerator, denominator)
    if exact is not None:
        return exact
    if isinstance(denominator, int) and denominator > 0:
        whole, rest = _split(numerator, denominator)
        return add(whole, _quotient(rest, denominator))
    return Expr((((Quotient(numerator, denominator),), 1),))


def _split(numerator: Dim, denominator: int) -> tuple[Dim, Dim]:
    """`whole * denominator + rest == numerator`, the coefficients of `rest` in `0..denominator - 1`."""
    whole = {monomial: coefficient // denominator for monomial, coefficient in terms_of(numerator).items()}
    rest = {monomial: coefficient % denominator for monomial, coefficient in terms_of(numerator).items()}
    return size_of_terms(whole), size_of_terms(rest)


def _quotient(numerator: Dim, denominator: int) -> Dim:
    """`floor(numerator / denominator)` where no whole multiple can be taken out: a number where the bounds leave only
    one, and `floor((floor(a / b) + k) / c) = floor((a + k b) / (b c))`."""
    if isinstance(numerator, int):
        return numerator // denominator
    low, high = lower_bound(numerator), upper_bound(numerator)
    if low is not None and high is not None and low // denominator == high // denominator:
        return low // denominator
    offset = dict(numerator.terms).get((), 0)
    inner = [(monomial, coefficient) for monomial, coefficient in numerator.terms if monomial]
    if len(inner) == 1 and inner[0][1] == 1 and len(inner[0][0]) == 1:
        atom = inner[0][0][0]
        if isinstance(atom, Quotient) and isinstance(atom.denominator, int) and atom.denominator > 0:
            return floor_div(add(atom.numerator, offset * atom.denominator), denominator * atom.denominator)
    return Expr((((Quotient(numerator, denominator),), 1),))


def ceil_div(numerator: Dim, denominator: int) -> Dim:
    """`ceil(numerator / denominator)`."""
    return floor_div(add(numerator, denominator - 1), denominator)


def _extreme(kind: str, lhs: Dim, rhs: Dim) -> Dim:
    if isinstance(lhs, int) and isinstance(rhs, int):
        return max(lhs, rhs) if kind == "max" else min(lhs, rhs)
    if lhs == rhs:
        return lhs
    difference = sub(lhs, rhs)
    if _is_never_negative(difference):
        return lhs if kind == "max" else rhs
    if _is_never_negative(mul(difference, -1)):
        return rhs if kind == "max" else lhs
    first, second = sorted((lhs, rhs), key=repr)
    return Expr((((Extreme(kind, first, second),), 1),))


def _is_never_negative(dim: Dim) -> bool:
    """Whether a size is known to be at least 0: by its bounds, or by those with one operand for a minimum that is
    subtracted or a maximum that is added, which either operand only makes smaller."""
    low = lower_bound(dim)
    if low is not None and low >= 0:
        return True
    for monomial, count in terms_of(dim).items():
        atom = monomial[0] if len(monomial) == 1 else None
        if isinstance(atom, Extreme) and (atom.kind == "max") == (count > 0):
            rest = sub(dim, size_of_terms({monomial: count}))
            bounds = [lower_bound(add(rest, mul(operand, count))) for operand in (atom.lhs, atom.rhs)]
            if any(bound is not None and bound >= 0 for bound in bounds):
                return True
    return False


def maximum(lhs: Dim, rhs: Dim) -> Dim:
    """`max(lhs, rhs)`."""
    return _extreme("max", lhs, rhs)


def minimum(lhs: Dim, rhs: Dim) -> Dim:
    """`min(lhs, rhs)`."""
    return _extreme("min", lhs, rhs)


def sum_of(dims: Iterable[Dim]) -> Dim:
    """The sum of all sizes; 0 for none."""
    out: Dim = 0
    for dim in dims:
        out = add(out, dim)
    return out


def product(dims: Iterable[Dim]) -> Dim:
    """The product of all sizes; 1 for none."""
    out: Dim = 1
    for dim in dims:
        out = out * dim if type(out) is int and type(dim) is int else mul(out, dim)
    return out


def substitute(dim: Dim, values: Mapping[str, Dim]) -> Dim:
    """`dim` with every symbol whose name is in `values` replaced. A quotient by what turns out to be 0, as by the rows
    that are left of too short a signal, is 0: nothing is there to be shared out."""
    return _substitute(dim, values, {})


def _substitute(dim: Dim, values: Mapping[str, Dim], known: dict[Atom, Dim]) -> Dim:
    total: Dim = 0
    for monomial, coefficient in terms_of(dim).items():
        term: Dim = coefficient
        for atom in monomial:
            new = known.get(atom)
            if new is None:
                new = known[atom] = _substitute_atom(atom, values, known)
            term = mul(term, new)
        total = add(total, term)
    return total


def _substitute_atom(atom: Atom, values: Mapping[str, Dim], known: dict[Atom, Dim]) -> Dim:
    if isinstance(atom, Symbol):
        return values.get(atom.name, Expr((((atom,), 1),)))
    if isinstance(atom, Quotient):
        denominator = _substitute(atom.denominator, values, known)
        return floor_div(_substitute(atom.numerator, values, known), denominator) if denominator != 0 else 0
    return _extreme(atom.kind, _substitute(atom.lhs, values, known), _substitute(atom.rhs, values, known))


def evaluate(dim: Dim, values: Mapping[str, int]) -> int:
    """The number that `dim` is under `values`; raises KeyError for a symbol without a value."""
    out = substitute(dim, values)
    if not isinstance(out, int):
        raise KeyError(sorted(s.name for s in symbols(out))[0])
    return out
