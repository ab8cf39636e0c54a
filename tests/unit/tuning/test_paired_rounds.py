"""Rounds on a clock of the test's own: order, turns, budget, and what the rounds said."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import pytest

from fuseline.tuning.paired_rounds import Limits, paired_rounds
from tests.draws import RNG


class FakeClock:
    """Time that passes when somebody says so."""

    def __init__(self) -> None:
        self.now = 0.0

    def __call__(self) -> float:
        return self.now

    def sleep(self, seconds: float) -> None:
        self.now += seconds


class Contender:
    """Takes `seconds`, times noise."""

    def __init__(self, name: str, seconds: float, clock: FakeClock, order: list[str], noise: float = 0.0) -> None:
        self.name, self.seconds, self.clock, self.order, self.noise = name, seconds, clock, order, noise

    def __call__(self) -> float:
        taken = self.seconds * float(np.exp(self.noise * RNG.standard_normal()))
        self.order.append(self.name)
        self.clock.now += taken
        return taken


def _contenders(ours: float, theirs: float, noise: float = 0.0) -> tuple[Contender, Contender, FakeClock, list[str]]:
    clock, order = FakeClock(), list[str]()
    return Contender("t", ours, clock, order, noise), Contender("i", theirs, clock, order, noise), clock, order


def _order(seed: int) -> list[str]:
    trial, incumbent, clock, order = _contenders(1.0, 1.0)
    found = paired_rounds(trial, incumbent, Limits(60, 1e9, margin=None), seed=seed, clock=clock)
    assert (found.verdict, found.rounds) == ("same", 60)
    assert found.trial_seconds == 1.0
    return ["".join(order[at : at + 2]) for at in range(0, 120, 2)]


def test_a_coin_says_who_runs_first_the_same_for_the_same_seed():
    assert set(_order(1)) == {"ti", "it"} and _order(1) == _order(1) != _order(2)
    assert 10 < _order(3).count("ti") < 50


@pytest.mark.parametrize("period", [2, 4, 8])
def test_a_machine_that_slows_down_in_a_rhythm_fools_nobody(period: int):
    """Every so many samples are twice as slow: turns by a fixed order would fall in with that."""
    claims = 0
    for seed in range(200):
        clock, count = FakeClock(), iter(range(10**6))

        def sample(count: Iterator[int] = count) -> float:
            return (2.0 if next(count) % period < period // 2 else 1.0) * float(np.exp(0.02 * RNG.standard_normal()))

        claims += paired_rounds(sample, sample, Limits(24, 1e9), seed=seed, clock=clock).verdict in ("faster", "slower")
    assert claims <= 28  # 5 % of 200 are 10; more than 28 come once in ten million sessions


@pytest.mark.parametrize(("ours", "verdict"), [(1.5, "slower"), (0.5, "faster"), (1.0, "same")])
def test_the_verdict_and_the_ratio(ours: float, verdict: str):
    trial, incumbent, clock, _ = _contenders(ours, 1.0, noise=0.001)
    found = paired_rounds(trial, incumbent, Limits(60, 1e9), clock=clock)
    assert found.verdict == verdict and found.ratio.low <= found.ratio.value <= found.ratio.high
    assert found.ratio.value == pytest.approx(ours, rel=0.01)


def test_no_more_rounds_than_there_is_time_for():
    trial, incumbent, clock, order = _contenders(1.0, 1.0, noise=3.0)
    found = paired_rounds(trial, incumbent, Limits(60, 20.0), round_cost=2.0, clock=clock)
    assert found.rounds <= 10 and len(order) == 2 * found.rounds


def test_time_that_runs_out_ends_the_rounds_but_never_before_six():
    trial, incumbent, clock, _ = _contenders(100.0, 100.0, noise=1.0)
    found = paired_rounds(trial, incumbent, Limits(60, 1.0), clock=clock)
    assert found.rounds == 6
    assert found.ratio.low > 1e-9  # six rounds do say something


def test_without_a_margin_every_round_is_timed():
    trial, incumbent, clock, _ = _contenders(2.0, 1.0)
    assert paired_rounds(trial, incumbent, Limits(40, 1e9, margin=None), clock=clock).rounds == 40


def test_planned_rounds_are_even():
    assert Limits(15, 1e9).planned(0.0) == 14
    assert Limits(60, 10.0).planned(1.1) == 8
    assert Limits(2, 0.0).planned(1.0) == 6
