"""Ranges of places: never too narrow, met where they say so, checked against every point."""

from __future__ import annotations

import itertools
from collections.abc import Sequence

import pytest
from hypothesis import given
from hypothesis import strategies as st
from xdsl.ir.affine import AffineBinaryOpExpr, AffineBinaryOpKind, AffineConstantExpr, AffineDimExpr, AffineExpr

from fuseline.analysis import map_ranges
from fuseline.analysis.map_ranges import position_range
from fuseline.evaluation.access import evaluate_expression
from fuseline.ir import dim as d

ROW, COLUMN = AffineDimExpr(0), AffineDimExpr(1)


def _values(position: AffineExpr, sizes: Sequence[int]) -> list[int]:
    return [int(evaluate_expression(position, list(point))) for point in itertools.product(*map(range, sizes))]


sums = st.tuples(st.integers(-4, 4), st.integers(-4, 4), st.integers(-5, 5)).map(
    lambda n: ROW * n[0] + COLUMN * n[1] + n[2]
)
divided = st.tuples(sums, st.integers(1, 7), st.booleans()).map(lambda n: n[0] // n[1] if n[2] else n[0] % n[1])
places = st.one_of(sums, divided, st.tuples(divided, sums).map(lambda n: n[0] + n[1]))
sizes = st.tuples(st.integers(1, 6), st.integers(1, 6))


@given(places, sizes)
def test_few_points_are_looked_at(position: AffineExpr, extents: tuple[int, int]) -> None:
    """What the form leaves open is settled by looking, so that the range is always that of the values."""
    found, values = position_range(position, extents), _values(position, extents)
    assert found == (min(values), max(values), True)


@given(places, sizes)
def test_symbolic_sizes_give_no_range_that_is_too_narrow(position: AffineExpr, extents: tuple[int, int]) -> None:
    n, m = d.symbol("n"), d.symbol("m")
    found, values = position_range(position, (n, m)), _values(position, extents)
    assert found is not None
    low, high = (d.evaluate(end, {"n": extents[0], "m": extents[1]}) for end in (found.low, found.high))
    assert low <= min(values) and max(values) <= high
    assert not found.met or (low, high) == (min(values), max(values))


@pytest.mark.parametrize(
    ("position", "high", "met"),
    [
        (ROW % 4, 3, True),
        (ROW * 2 % 4, 2, True),
        (ROW * 4 % 6, 4, False),
        ((ROW + 1) % 4, 3, False),
        ((ROW * 2 + 1) % 4, 3, True),
    ],
)
def test_remainders_come_in_steps(position: AffineExpr, high: int, met: bool) -> None:
    found = position_range(position, (d.symbol("n", 9), 1))
    assert found is not None
    assert (found.high, found.met) == (high, met)


def test_a_remainder_of_few_points_is_as_small_as_they_are() -> None:
    n = d.symbol("n")
    assert position_range(ROW % 4, (n,)) == (0, d.minimum(d.sub(n, 1), 3), True)


def test_a_loop_that_occurs_twice_may_not_meet_its_ends() -> None:
    n = d.symbol("n")
    found = position_range((ROW // 2) - ROW, (n,))
    assert found is not None and not found.met
    assert position_range(ROW - COLUMN, (n, n)) == (d.sub(1, n), d.sub(n, 1), True)


def test_many_points_are_not_looked_at(monkeypatch: pytest.MonkeyPatch) -> None:
    position = (ROW // 2) - ROW
    for most, met in ((35, False), (36, True)):
        monkeypatch.setattr(map_ranges, "MOST_POINTS", most)
        found = position_range(position + (COLUMN // 2) - COLUMN, (6, 6))
        assert found is not None and found.met == met


def test_a_product_of_loops_has_no_range() -> None:
    assert position_range(AffineBinaryOpExpr(AffineBinaryOpKind.Mul, ROW, COLUMN), (3, 3)) is None
    assert position_range(AffineConstantExpr(5), ()) == (5, 5, True)
