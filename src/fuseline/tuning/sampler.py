"""One sample of a contender: the median seconds of a batch of calls, as many as fill a given time."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Protocol

import numpy as np

from fuseline.verify.measure import SETTLE_SECONDS

BATCH_SECONDS = 0.02
LEAST_CALLS, MOST_CALLS = 3, 1000
LONG_SECONDS = 0.1
"""A call that takes this long is a sample by itself; of shorter ones the median of a few is taken."""

GRAIN_SECONDS = 5e-5
"""Reading a clock takes up to half a microsecond: shorter calls are timed in groups."""

TRIES = 5


class Clock(Protocol):
    """Time, as a sampler reads and spends it."""

    def __call__(self) -> float:
        """Seconds, from any start."""
        ...

    def sleep(self, seconds: float) -> None:
        """Let time pass."""
        ...


class MachineClock:
    """The machine's own."""

    def __call__(self) -> float:
        """Seconds of the monotonic clock."""
        return time.perf_counter()

    def sleep(self, seconds: float) -> None:
        """Sleep."""
        time.sleep(seconds)


class ThreadClock(MachineClock):
    """The time that the calling thread had a processor: what other processes take of it does not count. For work that
    is done in the calling thread alone."""

    def __call__(self) -> float:
        """Seconds."""
        return time.thread_time()


class Sampler:
    """Times what `make` makes in batches of calls by `clock`; making a sampler calls it a few times to see how long it
    takes.

    Every sample has a new contender: where its code and memory lie is drawn anew, and what one position makes faster or
    slower is noise, not a difference. The first call of a batch is not counted: it prepares memory, wakes the threads
    and warms the caches that the contender before has used.

    Attributes:
        calls: how many of a batch are timed. group: how many calls are timed as one, for short ones. cost: seconds that
        a sample takes, about, by the `wall` clock.
    """

    def __init__(
        self,
        make: Callable[[], Callable[[], object]],
        clock: Clock | None = None,
        *,
        wall: Clock | None = None,
        batch: float = BATCH_SECONDS,
    ) -> None:
        self._make, self._clock, self.group = make, clock or MachineClock(), 1
        wall = wall or self._clock
        call = self._ready()
        start = wall()
        tried = [self._timed(call)]
        while len(tried) < TRIES and sum(tried) < batch:
            tried.append(self._timed(call))
        usual = (wall() - start) / len(tried)
        self.calls = _calls(min(tried), batch)
        self.group = int(np.clip(GRAIN_SECONDS / max(min(tried), 1e-9), 1, self.calls))
        self.cost = SETTLE_SECONDS + (self.calls + 1) * usual

    def _ready(self) -> Callable[[], object]:
        """A new contender that was called once."""
        call = self._make()
        call()
        return call

    def __call__(self) -> float:
        """Median seconds of a call."""
        self._clock.sleep(SETTLE_SECONDS)
        call = self._ready()
        return float(np.median([self._timed(call) for _ in range(self.calls // self.group)]))

    def _timed(self, call: Callable[[], object]) -> float:
        """Seconds of a call, over a group of them."""
        start = self._clock()
        for _ in range(self.group):
            call()
        return (self._clock() - start) / self.group


def _calls(seconds: float, batch: float) -> int:
    """How many calls of so many seconds make a batch."""
    least = LEAST_CALLS if seconds < LONG_SECONDS else 1
    return int(np.clip(batch / max(seconds, 1e-9), least, MOST_CALLS))
