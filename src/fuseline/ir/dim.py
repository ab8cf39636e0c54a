"""Sizes: a `Dim` is an int or a bounded symbolic integer expression with identity.

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

import hashlib
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from functools import lru_cache
from typing import TypeAlias

from fuseline.ir.polynomial import exact_quotient

LONGEST_KEY = 512
"""A key longer than this is a digest of itself: sizes made of sizes would have keys that double with each step."""

LONGEST_TEXT = 160
"""Characters of a size that is written out inside of another one."""


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class _Keyed:
    """What is told apart, ordered and hashed by its key, made once: a size that is made of sizes is not walked again
    and again."""

    key: str = field(init=False, default="")

    def _set_key(self, *parts: str) -> None:
        text = f"{type(self).__name__}({', '.join(parts)})"
        if len(text) > LONGEST_KEY:
            text = f"{type(self).__name__}({hashlib.blake2b(text.encode(), digest_size=16).hexdigest()})"
        object.__setattr__(self, "key", text)

    def __repr__(self) -> str:
        return self.key

    def __hash__(self) -> int:
        return hash(self.key)

    def __eq__(self, other: object) -> bool:
        return self is other or (isinstance(other, _Keyed) and self.key == other.key)

    def __lt__(self, other: object) -> bool:
        return self.key < repr(other)


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class Symbol(_Keyed):
    """A named unknown size; `lo` and `hi` bound it inclusively (`hi` None: unbounded)."""

    name: str
    lo: int = 1
    hi: int | None = None

    def __post_init__(self) -> None:
        self._set_key(f"name={self.name!r}", f"lo={self.lo}", f"hi={self.hi}")


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class Quotient(_Keyed):
    """`floor(numerator / denominator)` that does not simplify further."""

    numerator: Dim
    denominator: Dim

    def __post_init__(self) -> None:
        self._set_key(f"numerator={self.numerator!r}", f"denominator={self.denominator!r}")


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class Extreme(_Keyed):
    """`max` or `min` of two sizes that cannot be ordered by their bounds."""

    kind: str
    lhs: Dim
    rhs: Dim

    def __post_init__(self) -> None:
        self._set_key(f"kind={self.kind!r}", f"lhs={self.lhs!r}", f"rhs={self.rhs!r}")


Atom: TypeAlias = Symbol | Quotient | Extreme


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class Expr(_Keyed):
    """A polynomial: sorted `(monomial, coefficient)` terms; a monomial is a sorted tuple of atoms, `()` the
    constant."""

    terms: tuple[tuple[tuple[Atom, ...], int], ...]

    def __post_init__(self) -> None:
        self._set_key(f"terms={self.terms!r}")

    def __str__(self) -> str:
        return to_text(self)


Dim: TypeAlias = int | Expr


def symbol(name: str, lo: int = 1, hi: int | None = None) -> Expr:
    """The size called `name`, in `lo..hi`."""
    return Expr((((Symbol(name, lo, hi),), 1),))


def _terms(dim: Dim) -> dict[tuple[Atom, ...], int]:
    if isinstance(dim, int):
        return {(): dim} if dim else {}
    return dict(dim.terms)


def _make(terms: Mapping[tuple[Atom, ...], int]) -> Dim:
    kept = {m: c for m, c in terms.items() if c}
    if not kept:
        return 0
    if set(kept) == {()}:
        return kept[()]
    return Expr(tuple(sorted(kept.items(), key=lambda item: (len(item[0]), repr(item[0])))))


def add(lhs: Dim, rhs: Dim) -> Dim:
    """`lhs + rhs`."""
    if isinstance(lhs, int) and isinstance(rhs, int):
        return lhs + rhs
    out = _terms(lhs)
    for monomial, coefficient in _terms(rhs).items():
        out[monomial] = out.get(monomial, 0) + coefficient
    rest = _without_both_extremes(out)
    return _make(out) if rest is None else rest


def _without_both_extremes(terms: Mapping[tuple[Atom, ...], int]) -> Dim | None:
    """The sum with `a + b` for `max(a, b) + min(a, b)`, as the parts of what was cut in two add up; None where nothing
    of the kind is in it."""
    extremes = [
        monomial
        for monomial, count in terms.items()
        if count and len(monomial) == 1 and isinstance(monomial[0], Extreme)
    ]
    for high in extremes:
        for low in extremes:
            more = _same_operands(high[0], low[0])
            if more is None or terms[high] * terms[low] < 0:
                continue
            count = min(terms[high], terms[low], key=abs)
            rest = _make({**terms, high: terms[high] - count, low: terms[low] - count})
            return add(rest, mul(more, count))
    return None


def _same_operands(high: Atom, low: Atom) -> Dim | None:
    """The sum of a maximum and a minimum of the same two sizes, or of sizes that differ by the same amount; None for
    any other two atoms."""
    if not (isinstance(high, Extreme) and isinstance(low, Extreme)) or (high.kind, low.kind) != ("max", "min"):
        return None
    for lhs, rhs in ((low.lhs, low.rhs), (low.rhs, low.lhs)):
        more = sub(high.lhs, lhs)
        if more == sub(high.rhs, rhs):
            return add(add(lhs, rhs), more)
    return None


def sub(lhs: Dim, rhs: Dim) -> Dim:
    """`lhs - rhs`."""
    return add(lhs, mul(rhs, -1))


def mul(lhs: Dim, rhs: Dim) -> Dim:
    """`lhs * rhs`."""
    if isinstance(lhs, int) and isinstance(rhs, int):
        return lhs * rhs
    out: dict[tuple[Atom, ...], int] = {}
    for left, a in _terms(lhs).items():
        for right, b in _terms(rhs).items():
            monomial = tuple(sorted(left + right, key=repr))
            out[monomial] = out.get(monomial, 0) + a * b
    return _make(out)


def _exact_quotient(numerator: Dim, denominator: Dim) -> Dim | None:
    """`numerator / denominator` where the division leaves no rest for any value of the symbols, else None."""
    found = exact_quotient(_terms(numerator), _terms(denominator))
    return None if found is None else _make(found)


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
    whole = {monomial: coefficient // denominator for monomial, coefficient in _terms(numerator).items()}
    rest = {monomial: coefficient % denominator for monomial, coefficient in _terms(numerator).items()}
    return _make(whole), _make(rest)


def _quotient(numerator: Dim, denominator: int) -> Dim:
    """`floor(numerator / denominator)` where nothing more can be taken out: `floor((floor(a / b) + k) / c) = floor((a +
    k b) / (b c))`."""
    if isinstance(numerator, int):
        return numerator // denominator
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
    for monomial, count in _terms(dim).items():
        atom = monomial[0] if len(monomial) == 1 else None
        if isinstance(atom, Extreme) and (atom.kind == "max") == (count > 0):
            rest = sub(dim, _make({monomial: count}))
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
    for monomial, coefficient in _terms(dim).items():
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


def symbols(dim: Dim) -> set[Symbol]:
    """Every symbol that occurs in `dim`."""
    found: set[Symbol] = set()
    if type(dim) is int:
        return found
    for monomial, _ in _terms(dim).items():
        for atom in monomial:
            found |= _atom_symbols(atom)
    return found


@lru_cache(maxsize=1 << 14)
def _atom_symbols(atom: Atom) -> frozenset[Symbol]:
    if isinstance(atom, Symbol):
        return frozenset((atom,))
    lhs, rhs = operands(atom)
    return frozenset(symbols(lhs) | symbols(rhs))


def substitute(dim: Dim, values: Mapping[str, Dim]) -> Dim:
    """`dim` with every symbol whose name is in `values` replaced. A quotient by what turns out to be 0, as by the rows
    that are left of too short a signal, is 0: nothing is there to be shared out."""
    return _substitute(dim, values, {})


def _substitute(dim: Dim, values: Mapping[str, Dim], known: dict[Atom, Dim]) -> Dim:
    total: Dim = 0
    for monomial, coefficient in _terms(dim).items():
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


def to_text(dim: Dim) -> str:
    """A short readable form, as in tables: `2*n + 1`. What stands inside of others is `..` where it is long: sizes made
    of sizes would double."""
    if isinstance(dim, int):
        return str(dim)
    return " + ".join(
        "*".join(([str(c)] if c != 1 or not m else []) + [_atom_text(a) for a in m]) for m, c in dim.terms
    )


@lru_cache(maxsize=1 << 14)
def _atom_text(atom: Atom) -> str:
    if isinstance(atom, Symbol):
        return atom.name
    lhs, rhs = (text if len(text := to_text(part)) <= LONGEST_TEXT else ".." for part in operands(atom))
    return f"(({lhs}) // ({rhs}))" if isinstance(atom, Quotient) else f"{atom.kind}({lhs}, {rhs})"


def operands(atom: Quotient | Extreme) -> tuple[Dim, Dim]:
    """The two sizes that an atom is made of."""
    return (atom.numerator, atom.denominator) if isinstance(atom, Quotient) else (atom.lhs, atom.rhs)
