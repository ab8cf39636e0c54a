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
    """Times `call` in batches by `clock`; making one calls it a few times to see how long it takes. The first call of a
    batch is not counted: it wakes the threads and warms the caches that the contender before has used.

    Attributes:
        calls: how many of a batch are timed. group: how many calls are timed as one, for short ones. cost: seconds that
        a sample takes, about, by the `wall` clock.
    """

    def __init__(
        self,
        call: Callable[[], object],
        clock: Clock | None = None,
        *,
        wall: Clock | None = None,
        batch: float = BATCH_SECONDS,
    ) -> None:
        self._call, self._clock, self.group = call, clock or MachineClock(), 1
        wall = wall or (MachineClock() if clock is None else clock)
        call()
        start = wall()
        tried = [self._timed()]
        while len(tried) < TRIES and sum(tried) < batch:
            tried.append(self._timed())
        usual = (wall() - start) / len(tried)
        self.calls = _calls(min(tried), batch)
        self.group = int(np.clip(GRAIN_SECONDS / max(min(tried), 1e-9), 1, self.calls))
        self.cost = SETTLE_SECONDS + (self.calls + self._warms) * usual

    @property
    def _warms(self) -> int:
        """A batch of one long call needs no other before it: what it finds cold is little of it."""
        return int(self.calls > 1)

    def __call__(self) -> float:
        """Median seconds of a call."""
        self._clock.sleep(SETTLE_SECONDS)
        for _ in range(self._warms):
            self._call()
        return float(np.median([self._timed() for _ in range(self.calls // self.group)]))

    def _timed(self) -> float:
        """Seconds of a call, over a group of them."""
        start = self._clock()
        for _ in range(self.group):
            self._call()
        return (self._clock() - start) / self.group


def _calls(seconds: float, batch: float) -> int:
    """How many calls of so many seconds make a batch."""
    least = LEAST_CALLS if seconds < LONG_SECONDS else 1
    return int(np.clip(batch / max(seconds, 1e-9), least, MOST_CALLS))
