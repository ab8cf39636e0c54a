"""Bounds of sizes: reached where both ends are known, unknown where nothing says them, and never crossed."""

from __future__ import annotations

import pytest

from fuseline.ir.dim import add, evaluate, floor_div, maximum, minimum, mul, sub
from fuseline.ir.dim_bounds import lower_bound, upper_bound
from fuseline.ir.dim_terms import Dim, Expr, Extreme, Quotient, symbol
from tests.draws import RNG

N, M = symbol("n", 2, 9), symbol("m", 1, 4)
FREE, LOW = symbol("free", 0), symbol("low", -5, 3)


def _bounds(size: Dim) -> tuple[int | None, int | None]:
    return lower_bound(size), upper_bound(size)


@pytest.mark.parametrize(
    ("size", "bounds"),
    [
        (7, (7, 7)),
        (-3, (-3, -3)),
        (N, (2, 9)),
        (FREE, (0, None)),
        (symbol("by itself"), (1, None)),
        (add(mul(N, 3), 1), (7, 28)),
        (mul(N, -2), (-18, -4)),
        (sub(1, FREE), (None, 1)),
        (sub(N, M), (-2, 8)),
        (mul(N, M), (2, 36)),
        (mul(mul(N, M), -1), (-36, -2)),
        (mul(N, FREE), (0, None)),
        (mul(LOW, N), (None, None)),
        (LOW, (-5, 3)),
    ],
    ids=str,
)
def test_sums_and_products(size: Dim, bounds: tuple[int | None, int | None]):
    assert _bounds(size) == bounds


@pytest.mark.parametrize(
    ("size", "bounds"),
    [
        (floor_div(N, 4), (0, 2)),
        (floor_div(LOW, 2), (-3, 1)),
        (floor_div(N, M), (0, 9)),
        (floor_div(LOW, M), (-5, 3)),
        (floor_div(N, add(FREE, 1)), (0, 9)),
        (floor_div(sub(M, 6), add(FREE, 2)), (-3, -1)),
        (floor_div(sub(M, 6), symbol("few", 2, 3)), (-3, -1)),
        (floor_div(FREE, N), (0, None)),
        (floor_div(sub(0, FREE), N), (None, 0)),
        (floor_div(N, FREE), (None, None)),
        (floor_div(N, LOW), (None, None)),
    ],
    ids=str,
)
def test_quotients_by_sizes_above_nothing(size: Dim, bounds: tuple[int | None, int | None]):
    assert _bounds(size) == bounds


@pytest.mark.parametrize(
    ("kind", "lhs", "rhs", "bounds"),
    [
        ("max", N, LOW, (2, 9)),
        ("min", N, LOW, (-5, 3)),
        ("max", N, FREE, (2, None)),
        ("min", N, FREE, (0, 9)),
        ("max", N, sub(0, FREE), (2, 9)),
        ("min", N, sub(0, FREE), (None, 0)),
        ("max", sub(FREE, FREE), mul(FREE, -1), (0, 0)),
        ("min", sub(1, FREE), mul(FREE, -1), (None, 0)),
        ("max", floor_div(N, FREE), M, (1, None)),
        ("min", floor_div(N, FREE), M, (None, 4)),
    ],
)
def test_extremes_take_what_one_of_the_two_says(kind: str, lhs: Dim, rhs: Dim, bounds: tuple[int | None, int | None]):
    assert _bounds(Expr((((Extreme(kind, lhs, rhs),), 1),))) == bounds


def test_no_value_crosses_them_and_one_meets_each():
    """Over every value of both symbols; of a quotient and of extremes of one symbol the bounds are met, too."""
    sizes = [floor_div(add(N, 3), 4), maximum(sub(N, 5), 0), minimum(mul(N, 2), 11), floor_div(sub(N, 20), 3)]
    for size in sizes:
        values = [evaluate(size, {"n": n}) for n in range(2, 10)]
        assert _bounds(size) == (min(values), max(values))
    both = [sub(mul(N, M), N), floor_div(mul(N, 7), add(M, 1)), maximum(mul(N, M), add(N, 10))]
    for size in both:
        values = [evaluate(size, {"n": n, "m": m}) for n in range(2, 10) for m in range(1, 5)]
        low, high = _bounds(size)
        assert low is not None and high is not None and low <= min(values) and max(values) <= high


def test_a_quotient_of_quotients_has_those_of_its_parts():
    inner = Expr((((Quotient(N, 2),), 1),))
    assert _bounds(Expr((((Quotient(inner, 3),), 5),))) == (0, 5)


@pytest.mark.parametrize(
    ("size", "bounds"),
    [
        (sub(FREE, mul(floor_div(FREE, 2), 2)), (0, 1)),
        (sub(floor_div(FREE, 4), mul(floor_div(FREE, 8), 2)), (0, 1)),
        (sub(floor_div(FREE, 2), floor_div(FREE, 3)), (0, None)),
        (sub(mul(floor_div(add(FREE, 1), 2), 2), FREE), (0, 1)),
        (sub(floor_div(FREE, 3), FREE), (None, 0)),
        (sub(floor_div(sub(FREE, 7), 2), floor_div(FREE, 2)), (-4, -3)),
    ],
    ids=str,
)
def test_quotients_that_cancel_leave_what_they_round(size: Dim, bounds: tuple[int | None, int | None]):
    """Each term alone may be anything; the fractions that the quotients round cancel."""
    assert _bounds(size) == bounds


def test_bounds_of_quotients_are_never_crossed():
    """Sums of quotients of sums, at sizes of every residue."""

    def drawn(depth: int) -> Dim:
        kind = int(RNG.integers(4)) if depth else 0
        if kind == 0:
            return (FREE, N, int(RNG.integers(-4, 5)))[int(RNG.integers(3))]
        if kind == 1:
            return floor_div(drawn(depth - 1), int(RNG.integers(1, 6)))
        return (add, sub)[kind - 2](drawn(depth - 1), mul(drawn(depth - 1), int(RNG.integers(1, 4))))

    for _ in range(200):
        size = drawn(4)
        low, high = _bounds(size)
        found = [evaluate(size, {"free": free, "n": n}) for free in range(0, 33, 4) for n in range(2, 10, 3)]
        assert low is None or low <= min(found)
        assert high is None or max(found) <= high


def test_a_quotient_that_its_bounds_leave_one_value_is_that():
    assert floor_div(sub(FREE, mul(floor_div(FREE, 2), 2)), 2) == 0
    assert floor_div(add(N, 6), 8) == 1 and not isinstance(floor_div(add(N, 7), 8), int)
    assert floor_div(add(M, 7), 12) == 0
