"""Rounds in which trial and incumbent are timed one after the other, whoever a coin names first, until their ratio is
decided.

    round 0: trial, incumbent    round 1: trial, incumbent    look?   round 2: incumbent, trial    round 3: ...

A slow moment of the machine hits both of a round, or one of them by chance; an outlier is one round among many: a noisy
machine takes more rounds, up to `rounds` or what the budget has time for.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from random import Random

import numpy as np

from fuseline.tuning.sampler import Clock, MachineClock
from fuseline.tuning.sequential_ratio import MARGIN, SequentialRatio, Verdict
from fuseline.tuning.sign_bounds import LEAST_ROUNDS
from fuseline.tuning.trial import Interval


@dataclass(frozen=True, slots=True)
class Limits:
    """When rounds end without a verdict: after `rounds`, or `seconds`; never before `LEAST_ROUNDS`. `margin`: what is
    within it of 1 is as good as 1; None: time all rounds whatever they say."""

    rounds: int
    seconds: float
    margin: float | None = MARGIN

    def planned(self, round_cost: float) -> int:
        """Rounds that there is time for, an even number."""
        affordable = int(self.seconds / max(round_cost, 1e-9))
        return max(LEAST_ROUNDS, min(self.rounds, affordable) // 2 * 2)


@dataclass(frozen=True, slots=True)
class PairedTimes:
    """What the rounds said; `trial_seconds` is the median over the rounds."""

    ratio: Interval
    verdict: Verdict
    trial_seconds: float
    rounds: int


def paired_rounds(
    trial: Callable[[], float],
    incumbent: Callable[[], float],
    limits: Limits,
    *,
    round_cost: float = 0.0,
    seed: int = 0,
    clock: Clock | None = None,
) -> PairedTimes:
    """Time both, each by a function that answers the seconds of one sample; a round of both takes about `round_cost`
    seconds. `seed`: of the coins."""
    now, coin = clock or MachineClock(), Random(seed)
    looks = "last" if limits.margin is None else "pairs"
    found = SequentialRatio(limits.planned(round_cost), margin=limits.margin or 0.0, looks=looks)
    times: list[tuple[float, float]] = []
    end = now() + limits.seconds
    while not found.done:
        if found.rounds >= LEAST_ROUNDS and found.rounds % 2 == 0 and now() > end:
            break
        times.append(_round(trial, incumbent, coin.random() < 0.5))
        found.add(*times[-1])
    found.end()
    seconds = float(np.median([trial_seconds for trial_seconds, _ in times]))
    return PairedTimes(found.interval, found.verdict, seconds, found.rounds)


def _round(trial: Callable[[], float], incumbent: Callable[[], float], turned: bool) -> tuple[float, float]:
    if turned:
        second = incumbent()
        return trial(), second
    return trial(), incumbent()
