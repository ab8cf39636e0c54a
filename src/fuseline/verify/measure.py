"""Interleaved timing: every contender runs in every round, so that a slow moment of the machine hits all of them;
ratios are paired by round."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np

SETTLE_SECONDS = 0.003
"""Pause between contenders: worker threads that spin after a run must fall asleep before the next one is timed."""

RESAMPLES = 2000


@dataclass(frozen=True, slots=True)
class Ratio:
    """A ratio of times and its bootstrap confidence interval of 95 %."""

    value: float
    low: float
    high: float


def interleaved(
    contenders: Mapping[str, Callable[[], object]],
    *,
    rounds: int = 15,
    round_seconds: float = 0.05,
    progress: Callable[[int, int], None] = lambda done, total: None,
) -> dict[str, np.ndarray]:
    """The median seconds per call of every contender in every round: arrays of length `rounds`. The order turns by one
    each round."""
    names = list(contenders)
    counts = {name: _calls_per_round(contenders[name], round_seconds) for name in names}
    medians: dict[str, list[float]] = {name: [] for name in names}
    for index in range(rounds):
        for name in names[index % len(names) :] + names[: index % len(names)]:
            time.sleep(SETTLE_SECONDS)
            medians[name].append(_median_seconds(contenders[name], counts[name]))
        progress(index + 1, rounds)
    return {name: np.array(values) for name, values in medians.items()}


def _calls_per_round(call: Callable[[], object], round_seconds: float) -> int:
    call()
    return int(np.clip(round_seconds / max(_median_seconds(call, 3), 1e-7), 2, 2000))


def _median_seconds(call: Callable[[], object], count: int) -> float:
    call()  # wakes the threads and warms the caches that the contender before has used
    times: list[float] = []
    for _ in range(count):
        start = time.perf_counter()
        call()
        times.append(time.perf_counter() - start)
    return float(np.median(times))


def paired_ratio(ours: np.ndarray, theirs: np.ndarray, *, seed: int = 0) -> Ratio:
    """Median over rounds of `ours / theirs`, with a percentile bootstrap over the rounds."""
    ratios = ours / theirs
    rng = np.random.default_rng(seed)
    medians = np.median(rng.choice(ratios, size=(RESAMPLES, len(ratios))), axis=1)
    low, high = np.quantile(medians, (0.025, 0.975))
    return Ratio(float(np.median(ratios)), float(low), float(high))


def best_of(times: Mapping[str, np.ndarray], names: Sequence[str]) -> str | None:
    """The name with the least median, None for no names."""
    return min(names, key=lambda name: float(np.median(times[name])), default=None)
