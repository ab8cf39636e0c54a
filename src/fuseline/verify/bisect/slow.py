"""The decision that costs time: with it a run takes longer than without.

    fuel        0    n/4    n/2   3n/4    n
    seconds    10      6      4      7    6.5      between n/2 and 3n/4 a decision costs more than all others save

Most decisions save time, so time does not rise with fuel as wrongness does. Of some prefixes of the decisions, timed in
turns, the two are taken between which time rises most; of the two halves between them the one in which it rises more,
and so on. Every step is timed anew, in paired rounds, and counts only where its whole interval of confidence does.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import NamedTuple

import numpy as np

from fuseline.ir.fuel import Decision
from fuseline.runtime import Session
from fuseline.runtime.artifact import Artifact
from fuseline.verify.bisect.trial import Tried
from fuseline.verify.measure import Ratio, interleaved, paired_ratio

KINDS = ("fusion", "kernel", "pass")
POINTS = 8
"""Into how many parts the decisions of a kind are cut at first."""

LEAST = 1.03
"""A decision that costs less than this is none: machines are not that even."""

Clock = Callable[[Sequence[Artifact]], Sequence[np.ndarray]]
"""Seconds of a run of each program, one for each round; the rounds of all are paired."""


class Slow(NamedTuple):
    """A decision, the fuel with which it is made, and how much longer a run takes with it."""

    decision: Decision
    limits: Mapping[str, int]
    ratio: Ratio


class _Rise(NamedTuple):
    kind: str
    low: int
    high: int
    ratio: Ratio


def clock_of(feeds: Mapping[str, np.ndarray], threads: int | None, rounds: int = 15) -> Clock:
    """Times programs on these feeds."""

    def clock(artifacts: Sequence[Artifact]) -> Sequence[np.ndarray]:
        sessions = [Session(artifact, threads=threads) for artifact in artifacts]
        calls = {str(i): (lambda session=session: session.run(feeds)) for i, session in enumerate(sessions)}
        found = interleaved(calls, rounds=rounds)
        return [found[str(i)] for i in range(len(sessions))]

    return clock


def slow_decision(trials: Tried, clock: Clock, kinds: Sequence[str] = KINDS) -> Slow | None:
    """The decision of these kinds that costs most time; None where none costs any that can be told from noise."""
    rises = [rise for kind in kinds if (rise := _scanned(trials, clock, kind)) is not None]
    if not rises:
        return None
    rise = _narrowed(trials, clock, max(rises, key=lambda one: one.ratio.low))
    ratio = _ratio(trials, clock, rise.kind, rise.low, rise.high)  # once more: the largest of many is large by chance
    if rise.high - rise.low > 1 or ratio.low < LEAST:
        return None
    limits = {rise.kind: rise.high}
    return Slow(trials(limits).of_kind(rise.kind)[rise.high - 1], limits, ratio)


def costs_time(clock: Clock, before: Artifact, after: Artifact) -> bool:
    """Whether a run of `after` surely takes longer than one of `before`."""
    times = clock([before, after])
    return paired_ratio(times[1], times[0]).low >= LEAST


def _scanned(trials: Tried, clock: Clock, kind: str) -> _Rise | None:
    """Between which prefixes of the decisions of a kind time rises most, and surely."""
    count = len(trials({}).of_kind(kind))
    points = [point for point in sorted({count * i // POINTS for i in range(POINTS + 1)})]
    known = [(point, artifact) for point in points if (artifact := trials({kind: point}).artifact) is not None]
    times = clock([artifact for _, artifact in known])
    rises = [
        _Rise(kind, low, high, paired_ratio(times[j], times[i]))
        for i, (low, _) in enumerate(known)
        for j, (high, _) in enumerate(known)
        if low < high
    ]
    best = max(rises, key=lambda one: one.ratio.low, default=None)
    return best if best is not None and best.ratio.low >= LEAST else None


def _narrowed(trials: Tried, clock: Clock, rise: _Rise) -> _Rise:
    """The half in which time rises more, again and again; where neither does surely, what there is."""
    while rise.high - rise.low > 1:
        middle = (rise.low + rise.high) // 2
        artifacts = [trials({rise.kind: point}).artifact for point in (rise.low, middle, rise.high)]
        there = [artifact for artifact in artifacts if artifact is not None]
        if len(there) < 3:
            return rise
        low, between, high = clock(there)
        first = _Rise(rise.kind, rise.low, middle, paired_ratio(between, low))
        second = _Rise(rise.kind, middle, rise.high, paired_ratio(high, between))
        better = max(first, second, key=lambda one: one.ratio.value)
        if better.ratio.low <= 1.0:
            return rise
        rise = better
    return rise


def _ratio(trials: Tried, clock: Clock, kind: str, low: int, high: int) -> Ratio:
    before, after = trials({kind: low}).artifact, trials({kind: high}).artifact
    if before is None or after is None:
        return Ratio(1.0, 1.0, 1.0)
    times = clock([before, after])
    return paired_ratio(times[1], times[0])
