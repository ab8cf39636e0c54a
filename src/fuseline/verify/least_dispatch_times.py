"""The least time that each dispatch was seen to take: what it takes undisturbed, also on a machine that has other work.

Trials are short, so that most of them run from end to end without losing the processor; a dispatch of less than a
trial is launched several times in one. One thread is timed by its own clock, which stands while it does not run.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from typing import Any, NamedTuple

from fuseline.runtime import Artifact
from fuseline.verify.dispatch_times import DispatchTimer

TRIAL_SECONDS = 3e-4
"""A trial lasts about so long: far above the clock's grain, far below a scheduler's time slice."""

MOST_LAUNCHES, MOST_TRIALS, LEAST_TRIALS = 64, 400, 5
LEAST_SECONDS = 1e-9


class LeastTime(NamedTuple):
    """One native command: its label (the executable), the least seconds of a launch."""

    label: str
    seconds: float


def least_dispatch_seconds(
    artifact: Artifact,
    feeds: Mapping[str, Any],
    threads: int,
    seconds_each: float = 0.05,
    progress: Callable[[int, int], None] = lambda done, total: None,
) -> list[LeastTime]:
    """Every native command of the artifact's own program, in order, each tried for about `seconds_each`; `progress` is
    told how many of how many are done."""
    timer = DispatchTimer(artifact, feeds, threads, time.thread_time if threads == 1 else time.perf_counter)
    found: list[LeastTime] = []
    for index, label in enumerate(timer.labels):
        progress(index, len(timer.labels))
        once = _least(timer, index, 1, seconds_each / 5)
        count = max(1, min(int(TRIAL_SECONDS / once), MOST_LAUNCHES))
        found.append(LeastTime(label, _least(timer, index, count, seconds_each)))
    return found


def _least(timer: DispatchTimer, index: int, launches: int, seconds: float) -> float:
    """The least seconds of one launch, of trials of so many."""
    trips = max(timer.trips[index], 1)
    best, end, trials = float("inf"), time.perf_counter() + seconds, 0
    while trials < LEAST_TRIALS or (trials < MOST_TRIALS and time.perf_counter() < end):
        best = min(best, timer.sample(index, launches) / trips)
        trials += 1
    return max(best, LEAST_SECONDS)
