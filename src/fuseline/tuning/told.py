"""The trials of a search whose outcomes are known, in the order of their numbers, on one scale.

A trial is measured against the incumbent of its time, whose ratio to the default is known by then:

    trial / default  =  trial / incumbent  *  incumbent / default
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from fuseline.tuning.goal import Goal, dominates
from fuseline.tuning.trial import Interval, TrialOutcome

UNSURE = 1.1
"""By how much a ratio may be better than the worst that its interval allows."""

NOISE, EQUAL = 2e-3, 1e-9
"""Shares of a run by which times that were measured, or predicted, may differ and be the same."""


@dataclass(frozen=True, slots=True)
class Told:
    """One trial. `configuration`: its choices that are no default. `against`: the number of the trial that was the
    incumbent. `relative`: its time by that of the default; None where it has none. `values`: by objective."""

    number: int
    configuration: Mapping[str, str]
    against: int
    outcome: TrialOutcome
    relative: float | None
    values: tuple[float, ...] | None

    @property
    def complete(self) -> bool:
        """Whether it counts: it is correct, and was measured to the end."""
        return self.values is not None


class TrialsTold:
    """All of them, and the best."""

    def __init__(self, goal: Goal) -> None:
        self.goal = goal
        self.trials: list[Told] = []
        self.best: Told | None = None

    def add(self, configuration: Mapping[str, str], against: int, outcome: TrialOutcome) -> Told:
        """The next trial, by number."""
        relative = self._relative(outcome, against)
        counts = outcome.state == "complete" and relative is not None
        values = self.goal.values(outcome, (relative or 0.0) * self.default_seconds(outcome)) if counts else None
        told = Told(len(self.trials), dict(configuration), against, outcome, relative, values)
        self.trials.append(told)
        if self._is_better(told):
            self.best = told
        return told

    def default_seconds(self, first: TrialOutcome | None = None) -> float:
        """The time of the default, which is the first trial; `first`: its outcome before it is told."""
        outcome = self.trials[0].outcome if self.trials else first
        return outcome.seconds if outcome is not None else 0.0

    def simplest(self) -> Told | None:
        """Of the trials that are as good as the best but for noise, the one that changes least: a choice that gains
        nothing is none."""
        best = self.best
        if best is None or best.values is None:
            return best
        room = NOISE if best.outcome.ratio is not None and self.goal.of_time else EQUAL
        alike = [
            told
            for told in self.trials
            if told.values is not None
            and told.values[0] <= best.values[0] * (1 + room)
            and all(ours <= theirs for ours, theirs in zip(told.values[1:], best.values[1:], strict=True))
        ]
        return min(alike, key=lambda told: (len(told.configuration), told.values or (), told.number))

    def front(self) -> list[Told]:
        """The trials that no other beats in every objective, the best by the first objective first; one of those with
        equal values."""
        found: dict[tuple[float, ...], Told] = {}
        for told in self.trials:
            if told.values is not None and not any(
                other.values is not None and dominates(other.values, told.values) for other in self.trials
            ):
                found.setdefault(told.values, told)
        return [found[values] for values in sorted(found)]

    def count(self, *states: str) -> int:
        """How many trials ended in one of `states`."""
        return sum(told.outcome.state in states for told in self.trials)

    def _relative(self, outcome: TrialOutcome, against: int) -> float | None:
        if outcome.state in ("failed", "wrong"):
            return None
        if not self.trials:
            return 1.0
        if outcome.ratio is None:
            default = self.default_seconds()
            return outcome.seconds / default if default > 0 and outcome.seconds > 0 else None
        incumbent = self.trials[against].relative
        return sure_ratio(outcome.ratio) * (incumbent if incumbent is not None else 1.0)

    def _is_better(self, told: Told) -> bool:
        if told.values is None:
            return False
        best = self.best
        if best is None or best.values is None:
            return True
        if not self.goal.of_time:
            return _lower(told.values, best.values)
        surely = told.outcome.ratio is None or told.outcome.ratio.high < 1
        return surely and _lower(told.values, best.values)


def sure_ratio(ratio: Interval) -> float:
    """The ratio to reckon with: on a busy machine an interval is wide, and its middle promises too much. It is never
    further from 1 than the nearer end of the interval by more than `UNSURE`.

    >>> sure_ratio(Interval(0.9, 0.88, 0.92)), round(sure_ratio(Interval(0.2, 0.01, 0.88)), 3)
    (0.9, 0.8)
    >>> sure_ratio(Interval(1.4, 0.7, 9.0))
    1.0
    """
    if ratio.value < 1:
        return min(max(ratio.value, ratio.high / UNSURE), 1.0)
    return max(min(ratio.value, ratio.low * UNSURE), 1.0)


def _lower(first: Sequence[float], second: Sequence[float]) -> bool:
    return tuple(first) < tuple(second)
