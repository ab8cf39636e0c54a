"""One sample of a contender: the median seconds of a batch of calls, as many as fill a given time."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Protocol

import numpy as np

from fuseline.verify.measure import SETTLE_SECONDS

BATCH_SECONDS = 0.02
MOST_CALLS = 500


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


class Sampler:
    """Times `call` in batches; making one calls it a few times to see how long it takes. The first call of a batch is
    not counted: it wakes the threads and warms the caches that the contender before has used."""

    def __init__(self, call: Callable[[], object], clock: Clock | None = None, batch: float = BATCH_SECONDS) -> None:
        self._call, self._clock = call, clock or MachineClock()
        call()
        estimate = self._timed()
        if estimate < batch:
            estimate = min(estimate, self._timed(), self._timed())
        self.calls = int(np.clip(batch / max(estimate, 1e-9), 1, MOST_CALLS))
        self.cost = SETTLE_SECONDS + (self.calls + self._warms) * estimate
        """Seconds that a sample takes, about."""

    @property
    def _warms(self) -> int:
        """A batch of one long call needs no other before it: what it finds cold is little of it."""
        return int(self.calls > 1)

    def __call__(self) -> float:
        """Median seconds of a call."""
        self._clock.sleep(SETTLE_SECONDS)
        for _ in range(self._warms):
            self._call()
        return float(np.median([self._timed() for _ in range(self.calls)]))

    def _timed(self) -> float:
        start = self._clock()
        self._call()
        return self._clock() - start
