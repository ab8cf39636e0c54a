"""What a symbolic size is made of: symbols, quotients and extremes, in the terms of a polynomial."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import lru_cache
from typing import TypeAlias

LONGEST_KEY = 512
"""A key longer than this is a digest of itself: sizes made of sizes would have keys that double with each step."""


LONGEST_TEXT = 160
"""Characters of a size that is written out inside of another one."""


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class _Keyed:
    """What is told apart, ordered and hashed by its key, made once: a size that is made of sizes is not traversed again
    and again."""

    key: str = field(init=False, default="")

    def _set_key(self, *fields: str) -> None:
        text = f"{type(self).__name__}({', '.join(fields)})"
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


def terms_of(dim: Dim) -> dict[tuple[Atom, ...], int]:
    """The coefficient of each monomial, none for 0."""
    if isinstance(dim, int):
        return {(): dim} if dim else {}
    return dict(dim.terms)


def size_of_terms(terms: Mapping[tuple[Atom, ...], int]) -> Dim:
    """The size of coefficients by monomial; those of 0 are left out."""
    kept = {m: c for m, c in terms.items() if c}
    if not kept:
        return 0
    if set(kept) == {()}:
        return kept[()]
    return Expr(tuple(sorted(kept.items(), key=lambda item: (len(item[0]), repr(item[0])))))


def symbols(dim: Dim) -> set[Symbol]:
    """Every symbol that occurs in `dim`."""
    found: set[Symbol] = set()
    if type(dim) is int:
        return found
    for monomial, _ in terms_of(dim).items():
        for atom in monomial:
            found |= _atom_symbols(atom)
    return found


@lru_cache(maxsize=1 << 14)
def _atom_symbols(atom: Atom) -> frozenset[Symbol]:
    if isinstance(atom, Symbol):
        return frozenset((atom,))
    lhs, rhs = operands(atom)
    return frozenset(symbols(lhs) | symbols(rhs))


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
    lhs, rhs = (text if len(text := to_text(operand)) <= LONGEST_TEXT else ".." for operand in operands(atom))
    return f"(({lhs}) // ({rhs}))" if isinstance(atom, Quotient) else f"{atom.kind}({lhs}, {rhs})"


def operands(atom: Quotient | Extreme) -> tuple[Dim, Dim]:
    """The two sizes that an atom is made of."""
    return (atom.numerator, atom.denominator) if isinstance(atom, Quotient) else (atom.lhs, atom.rhs)
