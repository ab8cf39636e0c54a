"""Bounds of the sequential sign test: what they promise is counted over all walks, not sampled."""

from __future__ import annotations

from itertools import product

import pytest

from fuseline.tuning.sign_bounds import LEAST_ROUNDS, sign_bounds, spending


def _reached(bounds: dict[int, int], planned: int) -> float:
    """The share of all walks of fair coins that reach a bound."""
    hits = 0
    for walk in product((0, 1), repeat=planned):
        hits += any(sum(walk[:rounds]) >= bound for rounds, bound in bounds.items())
    return hits / 2**planned


@pytest.mark.parametrize("planned", [6, 8, 12, 14])
@pytest.mark.parametrize("error", [0.025, 0.05, 0.2])
def test_a_fair_walk_reaches_a_bound_as_seldom_as_was_said(planned: int, error: float):
    bounds = sign_bounds(planned, error)
    reached = _reached(bounds, planned)
    assert 0 < reached <= error
    tighter = {**bounds, planned: bounds[planned] - 1}
    assert _reached(tighter, planned) > error  # the last look leaves nothing unspent


def test_looks_come_in_pairs_of_rounds_from_the_first_that_can_tell():
    assert list(sign_bounds(20)) == [6, 8, 10, 12, 14, 16, 18, 20]
    assert sign_bounds(4) == {} and LEAST_ROUNDS == 6
    assert all(2 * bound > rounds for rounds, bound in sign_bounds(200).items())


def test_all_of_the_error_is_spent_at_the_end():
    assert spending(0.0, 0.025) == 0 and spending(1.0, 0.025) == pytest.approx(0.025)
    assert spending(0.3, 0.025) < spending(0.6, 0.025)
