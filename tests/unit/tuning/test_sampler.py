"""Samples on a clock of the test's own."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from fuseline.tuning.sampler import (
    BATCH_SECONDS,
    GRAIN_SECONDS,
    LEAST_CALLS,
    LONG_SECONDS,
    MOST_CALLS,
    MachineClock,
    Sampler,
    ThreadClock,
)
from fuseline.verify.measure import SETTLE_SECONDS
from tests.unit.tuning.test_paired_rounds import FakeClock


def _sampler(seconds: float) -> tuple[Sampler, FakeClock, list[float]]:
    clock, calls = FakeClock(), list[float]()

    def call() -> None:
        calls.append(clock.now)
        clock.now += seconds

    return Sampler(lambda: call, clock), clock, calls


@pytest.mark.parametrize("seconds", [1e-6, 1e-3, 0.005, 1.0])
def test_a_batch_fills_its_time(seconds: float):
    sample, clock, calls = _sampler(seconds)
    least = LEAST_CALLS if seconds < LONG_SECONDS else 1
    assert sample.calls == pytest.approx(max(least, min(MOST_CALLS, BATCH_SECONDS / seconds)), abs=1)
    before, made = clock.now, len(calls)
    assert sample() == pytest.approx(seconds)
    assert clock.now - before == pytest.approx(sample.cost, rel=0.1)
    counted = sample.calls // sample.group * sample.group
    assert len(calls) - made == counted + 1  # one wakes threads and caches
    assert calls[made] - before == pytest.approx(SETTLE_SECONDS)


def test_every_sample_is_of_a_new_contender_whose_first_call_does_not_count():
    clock, made = FakeClock(), list[int]()

    def make() -> Callable[[], None]:
        made.append(0)
        return lambda: clock.sleep(1.0 if (first := next(firsts, None)) is None else first)

    firsts = iter([9.0, 1.0, 9.0, 1.0, 9.0])
    sample = Sampler(make, clock)
    assert [sample(), sample()] == [1.0, 1.0] and len(made) == 3


def test_short_calls_are_timed_in_groups():
    assert _sampler(1e-6)[0].group == pytest.approx(GRAIN_SECONDS / 1e-6, abs=1) and _sampler(1e-3)[0].group == 1


def test_calls_that_were_disturbed_as_it_began_do_not_make_a_batch_of_few():
    clock, slow = FakeClock(), iter([1.0, 0.015, 0.001] + [0.001] * 100)
    assert Sampler(lambda: lambda: clock.sleep(next(slow)), clock).calls == 20


def test_long_calls_are_not_made_again_to_see_how_long_they_are():
    _, _, calls = _sampler(1.0)
    assert len(calls) == 2


def test_the_median_of_a_batch_forgets_an_outlier():
    clock, slow = FakeClock(), iter([0.001] * 5 + [1.0] + [0.001] * 1000)
    sample = Sampler(lambda: lambda: clock.sleep(next(slow)), clock)
    assert sample() == pytest.approx(0.001)


def test_the_machines_clock_goes_on_while_it_sleeps_and_that_of_a_thread_does_not():
    wall, thread = MachineClock(), ThreadClock()
    start, idle = wall(), thread()
    wall.sleep(0.2)
    assert wall() - start >= 0.2 and thread() - idle < 0.1
