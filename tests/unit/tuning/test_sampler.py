"""Samples on a clock of the test's own."""

from __future__ import annotations

import pytest

from fuseline.tuning.sampler import BATCH_SECONDS, MOST_CALLS, MachineClock, Sampler
from fuseline.verify.measure import SETTLE_SECONDS
from tests.unit.tuning.test_paired_rounds import FakeClock


def _sampler(seconds: float) -> tuple[Sampler, FakeClock, list[float]]:
    clock, calls = FakeClock(), list[float]()

    def call() -> None:
        calls.append(clock.now)
        clock.now += seconds

    return Sampler(call, clock), clock, calls


@pytest.mark.parametrize("seconds", [1e-6, 1e-3, 0.005, 1.0])
def test_a_batch_fills_its_time(seconds: float):
    sample, clock, calls = _sampler(seconds)
    assert sample.calls == max(1, min(MOST_CALLS, round(BATCH_SECONDS / seconds)))
    before, made = clock.now, len(calls)
    assert sample() == pytest.approx(seconds)
    assert clock.now - before == pytest.approx(sample.cost)
    assert len(calls) - made == sample.calls + (sample.calls > 1)  # one wakes threads and caches
    assert calls[made] - before == pytest.approx(SETTLE_SECONDS)


def test_long_calls_are_not_made_again_to_see_how_long_they_are():
    _, _, calls = _sampler(1.0)
    assert len(calls) == 2


def test_the_median_of_a_batch_forgets_an_outlier():
    clock, slow = FakeClock(), iter([0.001] * 5 + [1.0] + [0.001] * 1000)
    sample = Sampler(lambda: clock.sleep(next(slow)), clock)
    assert sample() == pytest.approx(0.001)


def test_the_machines_clock_goes_on():
    clock = MachineClock()
    start = clock()
    clock.sleep(0.001)
    assert clock() > start
