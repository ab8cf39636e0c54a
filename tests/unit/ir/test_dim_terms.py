"""What sizes are made of: told apart by what they say, read back from their terms, written down without doubling."""

from __future__ import annotations

import pytest

from fuseline.ir.dim import add, floor_div, maximum, mul, sub
from fuseline.ir.dim_terms import (
    LONGEST_KEY,
    LONGEST_TEXT,
    Atom,
    Dim,
    Expr,
    Extreme,
    Quotient,
    Symbol,
    operands,
    size_of_terms,
    symbol,
    symbols,
    terms_of,
    to_text,
)

N, M = symbol("n"), symbol("m")
ATOM_N, ATOM_M = Symbol("n"), Symbol("m")


def _nested(steps: int) -> Dim:
    """A size of sizes: what is written out would double with each step."""
    size: Dim = N
    for _ in range(steps):
        half = Expr((((Quotient(size, M),), 1),))
        size = Expr((((Extreme("max", size, half),), 1),))
    return size


def test_atoms_are_what_they_are_made_of():
    assert Symbol("n", 1, 8) == Symbol("n", 1, 8) and hash(Symbol("n", 1, 8)) == hash(Symbol("n", 1, 8))
    different = [ATOM_N, ATOM_M, Symbol("n", 0), Symbol("n", 1, 8), Quotient(N, M), Quotient(M, N)]
    different += [Extreme("max", N, M), Extreme("min", N, M), Extreme("max", M, N)]
    assert len(set(different)) == len(different) and ATOM_N != "Symbol"
    assert sorted(different) == sorted(reversed(different))


@pytest.mark.parametrize(
    ("terms", "size"),
    [
        ({}, 0),
        ({(): 5}, 5),
        ({(): 0}, 0),
        ({(ATOM_N,): 1}, N),
        ({(ATOM_N,): 0, (): 4}, 4),
        ({(ATOM_N,): 2, (): -1}, sub(mul(N, 2), 1)),
        ({(ATOM_M, ATOM_N): 3}, mul(mul(N, M), 3)),
        ({(): 1, (ATOM_M,): 1, (ATOM_N,): 1}, add(add(N, M), 1)),
        ({(ATOM_N,): 1, (ATOM_M,): 1, (): 1}, add(add(N, M), 1)),
    ],
)
def test_terms_and_sizes_are_one_another(terms: dict[tuple[Atom, ...], int], size: Dim):
    assert size_of_terms(terms) == size
    assert terms_of(size) == {monomial: count for monomial, count in terms.items() if count}


def test_every_symbol_that_occurs():
    few = symbol("few", 0, 3)
    assert symbols(4) == set() and symbols(N) == {ATOM_N}
    assert symbols(floor_div(maximum(N, few), add(M, 1))) == {ATOM_N, ATOM_M, Symbol("few", 0, 3)}
    assert symbols(sub(add(N, M), M)) == {ATOM_N}


@pytest.mark.parametrize(
    ("size", "text"),
    [
        (-4, "-4"),
        (N, "n"),
        (mul(N, 2), "2*n"),
        (add(mul(mul(N, M), 3), 1), "1 + 3*m*n"),
        (floor_div(add(N, 1), 2), "((1 + n) // (2))"),
        (Expr((((Extreme("max", N, 4),), 1),)), "max(n, 4)"),
        (Expr((((Extreme("min", 4, N),), 5),)), "5*min(4, n)"),
    ],
)
def test_text_is_short_and_readable(size: Dim, text: str):
    assert to_text(size) == str(size) == text


def test_the_parts_of_an_atom():
    assert operands(Quotient(N, 3)) == (N, 3) and operands(Extreme("min", 7, M)) == (7, M)


def test_sizes_of_sizes_stay_small():
    """A key longer than the limit is a digest, and still tells sizes apart; what stands inside of others is cut."""
    deep, deeper = _nested(60), _nested(61)
    assert deep == _nested(60) and hash(deep) == hash(_nested(60)) and deep != deeper
    assert max(len(repr(_nested(steps))) for steps in range(60)) <= LONGEST_KEY + len("Expr()")
    assert symbols(deep) == {ATOM_N, ATOM_M}
    assert ".." in to_text(deep) and len(to_text(deep)) < 3 * LONGEST_TEXT
    assert ".." not in to_text(_nested(1))
