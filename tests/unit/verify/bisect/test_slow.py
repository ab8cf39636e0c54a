"""The decision that costs time, on programs whose times are made up: noise is no decision."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, cast

import numpy as np
import pytest

from fuseline.ir.fuel import Decision
from fuseline.verify.bisect.slow import slow_decision
from fuseline.verify.bisect.trial import Outcome, Trials
from tests.draws import RNG

COUNT = 37


class _Fake:
    """Trials of a program with so many merges; its artifacts are its limits."""

    def __init__(self) -> None:
        self.tried: set[tuple[tuple[str, int], ...]] = set()

    def __call__(self, limits: dict[str, int]) -> Outcome:
        self.tried.add(tuple(limits.items()))
        number = limits.get("fusion", COUNT)
        merges = [Decision("fusion", i, f"rule-{i}", (f"op.{i}",)) for i in range(min(number, COUNT))]
        return Outcome("", merges, cast(Any, (limits.get("fusion", COUNT),)))


def _found(seconds: Callable[[int], float], noise: float) -> tuple[Any, _Fake]:
    def clock(artifacts: Sequence[Any]) -> list[np.ndarray]:
        slowness = 1 + RNG.uniform(0, 1, 15)  # of the whole machine, in each round
        return [seconds(one[0]) * slowness * RNG.normal(1, noise, 15) for one in artifacts]

    fake = _Fake()
    return slow_decision(cast(Trials, fake), clock), fake


@pytest.mark.parametrize("at", [0, 11, COUNT - 1])
def test_one_that_costs_is_found_among_others_that_save(at: int):
    """Each of the others makes a run 2 % shorter, this one half as long again."""
    found, fake = _found(lambda fuel: 0.98**fuel * (1.5 if fuel > at else 1.0), noise=0.01)
    assert found is not None and found.decision.number == at and found.decision.what == f"rule-{at}"
    assert found.limits == {"fusion": at + 1} and 1.3 < found.ratio.value < 1.6
    assert len(fake.tried) <= 30


def test_where_all_save_nothing_is_found():
    assert _found(lambda fuel: 0.98**fuel, noise=0.01)[0] is None


def test_noise_is_no_decision():
    assert _found(lambda fuel: 1.0, noise=0.02)[0] is None


def test_a_rise_over_many_small_decisions_is_none_of_them():
    assert _found(lambda fuel: 1.005**fuel, noise=0.002)[0] is None
