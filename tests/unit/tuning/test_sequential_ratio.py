"""A ratio that rounds are added to: how often it claims what is not so, on noise that is worse than a machine's."""

from __future__ import annotations

from collections.abc import Callable
from math import comb

import numpy as np
import pytest

from fuseline.tuning.sequential_ratio import SequentialRatio
from fuseline.tuning.sign_bounds import last_bound
from tests.draws import RNG

Noise = Callable[[int], tuple[float, float]]
"""Factors on the times of trial and incumbent in a round."""

SEARCHES = 300


def _most(chance: float) -> int:
    """What a count of `SEARCHES` events of this chance exceeds in one session of a million."""
    odds = [comb(SEARCHES, hits) * chance**hits * (1 - chance) ** (SEARCHES - hits) for hits in range(SEARCHES + 1)]
    return next(hits for hits in range(SEARCHES) if sum(odds[hits + 1 :]) < 1e-6)


def _heavy_tails(scale: float) -> Noise:
    """Independent noise whose variance is infinite."""
    return lambda index: tuple(np.exp(np.clip(scale * RNG.standard_t(1.5, 2), -600, 600)))


def _drift(scale: float) -> Noise:
    """Whoever runs second is slower each time, and the machine becomes slower all the while."""

    def factors(index: int) -> tuple[float, float]:
        first, second = np.exp(scale * RNG.standard_normal(2) + index * 0.05 + np.array([0.0, 0.03]))
        return (first, second) if RNG.random() < 0.5 else (second, first)

    return factors


def _bursts(scale: float) -> Noise:
    """Another process takes half of the machine for some rounds, and now and then hits one of the two alone."""

    def factors(index: int) -> tuple[float, float]:
        both = 2.0 if (index // 7) % 2 else 1.0
        alone = np.where(RNG.random(2) < 0.1, 5.0, 1.0)
        first, second = both * alone * np.exp(scale * np.abs(RNG.standard_normal(2)))
        return float(first), float(second)

    return factors


NOISES = {
    "quiet": _heavy_tails(0.002),
    "heavy tails": _heavy_tails(0.03),
    "drift": _drift(0.02),
    "bursts": _bursts(0.02),
}


def _search(truth: float, noise: Noise, planned: int = 24) -> SequentialRatio:
    found = SequentialRatio(planned)
    while not found.done:
        ours, theirs = noise(found.rounds)
        found.add(truth * ours * 1e-3, theirs * 1e-3)
    return found


@pytest.mark.parametrize("noise", NOISES)
def test_equal_programs_are_seldom_told_apart(noise: str):
    """Neither a verdict nor an interval beside 1 more often than in 5 of 100 searches."""
    found = [_search(1.0, NOISES[noise]) for _ in range(SEARCHES)]
    assert sum(item.verdict in ("faster", "slower") for item in found) <= _most(0.05)
    assert sum(not item.interval.low <= 1 <= item.interval.high for item in found) <= _most(0.05)


@pytest.mark.parametrize("noise", NOISES)
@pytest.mark.parametrize(("truth", "wrong"), [(1.01, "slower"), (0.99, "faster")])
def test_a_trial_that_is_not_clearly_slower_is_seldom_given_up(truth: float, wrong: str, noise: str):
    """At the margin itself the error is the whole of one side."""
    found = [_search(truth, NOISES[noise]) for _ in range(SEARCHES)]
    assert sum(item.verdict == wrong for item in found) <= _most(0.025)


def test_a_rule_that_is_looked_at_without_paying_for_it_would_fail_here():
    """What these tests can see: intervals of 95 % each, looked at again and again, are wrong far too often."""
    wrong = 0
    for _ in range(SEARCHES):
        ratios = np.array([np.divide(*NOISES["heavy tails"](index)) for index in range(100)])
        looks = [np.sort(ratios[:rounds]) for rounds in range(6, 101, 2)]
        bounds = [last_bound(len(look)) for look in looks]
        wrong += any(look[-bound] > 1 or look[bound - 1] < 1 for look, bound in zip(looks, bounds, strict=True))
    assert wrong > _most(0.05)


def test_a_clear_difference_is_seen_soon():
    found = [_search(1.2, NOISES["quiet"]) for _ in range(100)]
    assert all(item.verdict == "slower" for item in found) and max(item.rounds for item in found) <= 16
    found = [_search(0.8, NOISES["quiet"]) for _ in range(100)]
    assert all(item.verdict == "faster" for item in found)


def test_a_noisy_machine_takes_more_rounds():
    quiet, noisy = (np.mean([_search(1.1, NOISES[n]).rounds for _ in range(100)]) for n in ("quiet", "heavy tails"))
    assert quiet < noisy


def test_what_ends_early_spends_what_was_left():
    found = SequentialRatio(100)
    for _ in range(9):
        found.add(1.1, 1.0)
    found.end()
    assert found.rounds == 8  # in pairs
    assert (found.interval.low, found.interval.high) == pytest.approx((1.1, 1.1)) and found.verdict == "slower"


def test_before_anything_can_be_said():
    found = SequentialRatio(3)
    assert found.planned == 6 and found.verdict == "open" and not found.done
    for _ in range(5):
        found.add(2.0, 1.0)
    found.end()
    assert found.interval.low < 1e-100 and found.interval.high > 1e100
    assert found.interval.value == pytest.approx(2.0)


def test_a_single_look_is_the_interval_of_a_sign_test():
    found = SequentialRatio(20, looks="last")
    ratios = np.sort(np.exp(RNG.standard_normal(20)))
    for ratio in RNG.permutation(ratios):
        found.add(float(ratio), 1.0)
    assert (found.interval.low, found.interval.high) == pytest.approx((ratios[5], ratios[14]))


def test_equal_times_are_the_same():
    found = SequentialRatio(60)
    while not found.done:
        found.add(1.0, 1.0)
    assert found.verdict == "same" and found.rounds == 8


def test_rounds_that_no_quotient_holds():
    found = SequentialRatio(20)
    for number in range(20):
        found.add(1e-3, float("inf") if number == 3 else 1e-3)
    assert found.interval.low <= 1.0 <= found.interval.high
