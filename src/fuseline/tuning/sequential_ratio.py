"""A ratio of times that rounds are added to until it is decided: clearly above, clearly below, or as good as 1.

    ratio   0.98   0.99    1    1.01   1.02
                    |  margin   |
      <--[-----]--> |           |              faster: high < 1 - margin
                    |           |  [---]       slower: low > 1 + margin
                    | [-------] |              same
               [------------]                  one more pair of rounds

Every interval holds the median ratio with 95 %, all looks taken together (`sign_bounds`): whoever stops at the first
that suits is wrong in at most one of twenty comparisons, 2.5 % on either side.
"""

from __future__ import annotations

from math import exp, inf, log
from typing import Literal

import numpy as np

from fuseline.tuning.sign_bounds import ERROR, LEAST_ROUNDS, last_bound, sign_bounds
from fuseline.tuning.trial import Interval

MARGIN = 0.01
"""What is within this of 1 is as good as 1: two copies of one program, at other addresses, differ by as much."""

Verdict = Literal["faster", "slower", "same", "open"]


class SequentialRatio:
    """Trial / incumbent, round by round; `planned` rounds at most, at least `LEAST_ROUNDS`, an even number. `looks`:
    after every pair of rounds, or after the `last` alone, which makes the narrowest interval of so many rounds."""

    def __init__(
        self,
        planned: int,
        *,
        margin: float = MARGIN,
        error: float = ERROR,
        looks: Literal["pairs", "last"] = "pairs",
    ) -> None:
        self.planned = max(LEAST_ROUNDS, planned - planned % 2)
        self.margin, self.error, self._looks = margin, error, looks
        self._logs: list[float] = []
        self._low, self._high = -inf, inf

    @property
    def rounds(self) -> int:
        """How many were added."""
        return len(self._logs)

    def add(self, trial: float, incumbent: float) -> None:
        """Seconds of one round."""
        self._logs.append(log(max(trial, 1e-12)) - log(max(incumbent, 1e-12)))
        bounds = self._bounds(self.planned)
        if self.rounds in bounds:
            self._look(bounds[self.rounds])

    def end(self) -> None:
        """No more rounds, and fewer than were planned: what is left of the error is spent on those there are. Why one
        ends (time is over) must not hang on the ratios."""
        paired = self.rounds - self.rounds % 2
        if LEAST_ROUNDS <= paired < self.planned:
            del self._logs[paired:]
            self._look(self._bounds(paired)[paired])

    def _look(self, bound: int) -> None:
        """Narrow the interval to medians that the rounds so far do not speak against; all looks hold at once, so it
        never widens."""
        logs = sorted(self._logs)
        if bound <= len(logs):
            self._low = max(self._low, logs[len(logs) - bound])
            self._high = min(self._high, logs[bound - 1])

    def _bounds(self, planned: int) -> dict[int, int]:
        if self._looks == "last":
            return {planned: last_bound(planned, self.error)}
        return sign_bounds(planned, self.error)

    @property
    def interval(self) -> Interval:
        """The median ratio so far, and the interval of 95 %; from nothing to the largest number where nothing can be
        said."""
        value = exp(float(np.median(self._logs))) if self._logs else 1.0
        low, high = sorted(exp(min(max(end, -300.0), 300.0)) for end in (self._low, self._high))
        return Interval(min(max(value, low), high), low, high)

    @property
    def verdict(self) -> Verdict:
        """`open` until it is decided."""
        found = self.interval
        if found.low > 1 + self.margin:
            return "slower"
        if found.high < 1 - self.margin:
            return "faster"
        return "same" if found.low >= 1 - self.margin and found.high <= 1 + self.margin else "open"

    @property
    def done(self) -> bool:
        """Whether no further round is wanted; rounds come in pairs."""
        return self.rounds >= self.planned or (self.rounds % 2 == 0 and self.verdict != "open")
