"""Timing: every contender in every round, ratios paired by round with an interval around them."""

from __future__ import annotations

from itertools import pairwise

import numpy as np

from fuseline.verify.measure import best_of, interleaved, paired_ratio


def test_every_contender_is_timed_in_every_round():
    calls: list[str] = []
    times = interleaved({"a": lambda: calls.append("a"), "b": lambda: calls.append("b")}, rounds=4, round_seconds=1e-5)
    assert {name: len(values) for name, values in times.items()} == {"a": 4, "b": 4}
    assert all((values >= 0).all() for values in times.values())
    changes = sum(left != right for left, right in pairwise(calls))
    assert changes >= 4  # interleaved, not one after the other


def test_the_ratio_is_paired_so_a_slow_round_cancels():
    noise = np.array([1, 1, 10, 1, 5.0])
    ratio = paired_ratio(2 * noise, 4 * noise)
    assert (ratio.value, ratio.low, ratio.high) == (0.5, 0.5, 0.5)


def test_the_interval_holds_the_median_and_widens_with_noise():
    rng = np.random.default_rng(1)
    ratio = paired_ratio(rng.uniform(0.5, 1.5, 15), np.ones(15))
    assert ratio.low < ratio.value < ratio.high


def test_best_of():
    times = {"ours": np.array([1.0]), "a": np.array([3.0, 3.0]), "b": np.array([2.0])}
    assert best_of(times, ["a", "b"]) == "b"
    assert best_of(times, []) is None
