"""Sizes compare equal however they were computed, and keep their value and bounds."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
import pytest

from fuseline.ir import dim as d
from fuseline.ir.dim_json import from_json, to_json

N, M = d.symbol("n"), d.symbol("m")
OPERATIONS: dict[str, tuple[Callable[[d.Dim, d.Dim], d.Dim], Callable[[int, int], int]]] = {
    "+": (d.add, lambda a, b: a + b),
    "-": (d.sub, lambda a, b: a - b),
    "*": (d.mul, lambda a, b: a * b),
    "/": (d.floor_div, lambda a, b: a // b),
    "max": (d.maximum, max),
    "min": (d.minimum, min),
}


@dataclass(frozen=True)
class Both:
    """A size and its value under n = 7, m = 12."""

    size: d.Dim
    value: int


VALUES = {"n": 7, "m": 12}


def random_size(rng: np.random.Generator, depth: int) -> Both:
    """Operations at random over both symbols and small numbers; divisors are positive numbers."""
    if depth == 0:
        number = int(rng.integers(-9, 10))
        return (Both(N, VALUES["n"]), Both(M, VALUES["m"]), Both(number, number))[rng.integers(3)]
    name = list(OPERATIONS)[rng.integers(len(OPERATIONS))]
    left = random_size(rng, depth - 1)
    right = random_size(rng, depth - 1) if name not in "*/" else Both(*(int(rng.integers(1, 9)),) * 2)
    of_sizes, of_numbers = OPERATIONS[name]
    return Both(of_sizes(left.size, right.size), of_numbers(left.value, right.value))


@pytest.mark.parametrize("seed", range(8))
def test_any_expression_keeps_its_value_and_bounds(seed: int):
    rng = np.random.default_rng(seed)
    for _ in range(200):
        found = random_size(rng, 4)
        low, high = d.lower_bound(found.size), d.upper_bound(found.size)
        assert d.evaluate(found.size, VALUES) == found.value
        assert low is None or low <= found.value
        assert high is None or found.value <= high
        assert from_json(to_json(found.size)) == found.size


def test_chains_of_divisions_are_one():
    halved = N
    for _ in range(5):
        halved = d.ceil_div(halved, 2)
    assert halved == d.ceil_div(N, 32)
    assert d.floor_div(d.add(d.floor_div(N, 4), 3), 5) == d.floor_div(d.add(N, 12), 20)


def test_whole_multiples_leave_a_division():
    assert d.add(d.floor_div(d.sub(N, 1), 2), 1) == d.floor_div(d.add(N, 1), 2)
    assert d.floor_div(d.add(d.mul(6, N), M), 3) == d.add(d.mul(2, N), d.floor_div(M, 3))
    assert d.sub(d.ceil_div(d.mul(N, 4), 2), d.mul(N, 2)) == 0


def test_a_quotient_by_nothing_is_nothing():
    quotient = d.floor_div(N, d.sub(M, 3))
    assert d.evaluate(quotient, {"n": 5, "m": 3}) == 0
    assert d.evaluate(quotient, {"n": 5, "m": 5}) == 2


def test_bounds_of_what_may_be_negative():
    rest = d.floor_div(d.sub(d.symbol("n", 1, 9), 7), 2)
    assert (d.lower_bound(rest), d.upper_bound(rest)) == (-3, 1)
    assert (d.lower_bound(d.mul(rest, -2)), d.upper_bound(d.mul(rest, -2))) == (-2, 6)
    assert d.lower_bound(d.minimum(rest, 0)) == -3


def test_what_a_cut_leaves_adds_up_again():
    """Both parts of an axis of any length, cut at 1 or at another size, are the axis: sizes of sizes would double with
    each cut otherwise."""
    free, other = d.symbol("free", 0), d.symbol("other", 0)
    for at in (1, other):
        first = d.minimum(d.minimum(at, free), free)
        rest = d.minimum(d.maximum(0, d.sub(free, d.minimum(at, free))), free)
        assert d.add(first, rest) == free
    assert d.add(d.maximum(d.sub(free, 1), 0), d.minimum(free, 1)) == free
    assert d.add(d.maximum(d.sub(free, 1), 0), d.minimum(free, 2)) != free


@pytest.mark.parametrize("between", [0, 1, 120])
def test_what_a_cut_leaves_adds_up_among_other_extremes(between: int):
    free = d.symbol("free", 0)
    others: d.Dim = 0
    for number in range(between):
        others = d.add(others, d.minimum(d.symbol(f"n{number}", 0), 300))
    high = d.maximum(d.sub(free, 1), 0)
    assert d.add(d.add(high, others), d.minimum(free, 1)) == d.add(free, others)
    assert d.add(d.add(high, others), d.minimum(free, 2)) != d.add(free, others)
