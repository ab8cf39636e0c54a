"""What the choices of a trial did, each by the dispatches that it changes: so that choices about other dispatches are
judged by one trial together.

    default   [a b] [c] [d e]        3 ms   5 ms   2 ms
    trial     [a] [b] [c] [d e f]    4 ms   5 ms   1.5 ms        a|b: 4 / 3      d e + f: 1.5 / 2

Dispatches that no choice changed say how much faster or slower the machine was meanwhile.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass, field
from math import hypot

from fuseline.passes.fusion.plan import Ids, id_of
from fuseline.tuning.knob import Knob
from fuseline.tuning.trial import TrialOutcome

CERTAIN_ERRORS = 2.0
"""A difference of fewer standard errors is no difference."""

STEADY_SHARE = 0.2
"""Of the time of a run, what dispatches that did not change must take to say how fast the machine was."""


@dataclass(frozen=True)
class Places:
    """The ops of the default groups that each knob changes. A knob without any changes all of the program."""

    ops: Mapping[str, frozenset[str]] = field(default_factory=dict[str, frozenset[str]])

    @classmethod
    def of(cls, knobs: Collection[Knob], groups: Collection[Ids]) -> Places:
        """Those of `knobs` in a program of `groups`."""
        home = {id: frozenset(ids) for ids in groups for id in ids}
        return cls(
            {
                knob.name: frozenset[str]().union(
                    *(home.get(id_of(op), frozenset({id_of(op)})) for ids in knob.ops for op in ids)
                )
                for knob in knobs
            }
        )

    def everywhere(self, name: str) -> bool:
        """Whether a knob changes all of the program."""
        return not self.ops[name]

    def overlap(self, first: str, second: str) -> bool:
        """Whether two knobs change the same dispatches."""
        return bool(self.ops[first] & self.ops[second]) or self.everywhere(first) or self.everywhere(second)


def dispatch_times(outcome: TrialOutcome) -> Mapping[str, float]:
    """Seconds by dispatch, as they were measured; as they are predicted, where all of the outcome is."""
    return outcome.dispatch_seconds or (outcome.predicted_seconds if outcome.ratio is None else {})


def relative_time(
    trial: TrialOutcome, base: TrialOutcome, ops: frozenset[str], changed: frozenset[str]
) -> float | None:
    """The time of the dispatches of `ops` by that in `base`, None where it is not known; `changed`: all ops that the
    trial's choices concern. Where both were timed in the same rounds, that is taken."""
    ours, theirs = dispatch_times(trial), trial.incumbent_dispatch_seconds or dispatch_times(base)
    before = _sum(theirs, ops)
    if not ours or before <= 0:
        return None
    return _sum(ours, ops) * _pace(ours, theirs, changed) / before


def is_noise(trial: TrialOutcome, ops: frozenset[str]) -> bool:
    """Whether the times of the dispatches of `ops` differ by less than what measuring them does."""
    if not trial.dispatch_error:
        return False
    before, after = _sum(trial.incumbent_dispatch_seconds, ops), _sum(trial.dispatch_seconds, ops)
    errors = [error for key, error in trial.dispatch_error.items() if not ops.isdisjoint(ops_of(key))]
    return abs(after - before) < CERTAIN_ERRORS * hypot(*errors)


def share_of(outcome: TrialOutcome, ops: frozenset[str]) -> float:
    """The share of a run that the dispatches of `ops` take."""
    times = dispatch_times(outcome)
    whole = sum(times.values())
    return _sum(times, ops) / whole if whole > 0 else 0.0


def _sum(times: Mapping[str, float], ops: frozenset[str]) -> float:
    return sum(seconds for key, seconds in times.items() if not ops.isdisjoint(ops_of(key)))


def _pace(ours: Mapping[str, float], theirs: Mapping[str, float], changed: frozenset[str]) -> float:
    """How much slower the machine was while `theirs` were measured, by the dispatches that both have."""
    same = [key for key in ours if key in theirs and changed.isdisjoint(ops_of(key))]
    first, second = (sum(times[key] for key in same) for times in (ours, theirs))
    return second / first if first > 0 and second >= STEADY_SHARE * sum(theirs.values()) else 1.0


def ops_of(key: str) -> frozenset[str]:
    """The structural ids in the key of a dispatch.

    >>> sorted(ops_of("contraction.95bb0c5c-2+elementwise.0534916d"))
    ['0534916d', '95bb0c5c-2']
    """
    return frozenset(map(id_of, key.split("+")))
