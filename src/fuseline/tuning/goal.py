"""What a search makes small: the time of a run, the memory of its transients, the bytes of its code, or several of
these at once."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from fuseline.errors import FuselineError
from fuseline.tuning.trial import TrialOutcome

TIME, TRANSIENT_BYTES, CODE_BYTES = "time", "transient_bytes", "code_bytes"
OBJECTIVES = (TIME, TRANSIENT_BYTES, CODE_BYTES)


@dataclass(frozen=True, slots=True)
class Goal:
    """The objectives, the most important one first."""

    objectives: tuple[str, ...] = (TIME,)

    @property
    def several(self) -> bool:
        """Whether there is a front of answers rather than one."""
        return len(self.objectives) > 1

    @property
    def of_time(self) -> bool:
        """Whether time is what counts first."""
        return self.objectives[0] == TIME

    def values(self, outcome: TrialOutcome, seconds: float) -> tuple[float, ...]:
        """One number per objective, less is better; `seconds`: the time of a run on the scale of the whole search."""
        known = {TIME: seconds, TRANSIENT_BYTES: outcome.transient_bytes, CODE_BYTES: outcome.code_bytes}
        return tuple(float(known[name]) for name in self.objectives)


def parse_goal(text: str) -> Goal:
    """The objectives in a list with commas; raises E0501 for one that there is not, or that is there twice.

    >>> parse_goal("time,transient_bytes").objectives
    ('time', 'transient_bytes')
    """
    names = tuple(word.strip() for word in text.split(","))
    wrong = [name for name in names if name not in OBJECTIVES or names.count(name) > 1]
    if wrong:
        hint = f"use some of {', '.join(OBJECTIVES)}, each once"
        raise FuselineError("E0501", f"objective cannot be {wrong[0]!r}", hint=hint)
    return Goal(names)


def dominates(first: Sequence[float], second: Sequence[float]) -> bool:
    """Whether `first` is nowhere worse and somewhere better.

    >>> dominates((1, 2), (1, 3)), dominates((1, 2), (1, 2)), dominates((1, 3), (2, 2))
    (True, False, False)
    """
    return all(a <= b for a, b in zip(first, second, strict=True)) and tuple(first) != tuple(second)
