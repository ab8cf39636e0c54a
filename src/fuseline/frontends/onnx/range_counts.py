"""How many numbers a range has."""

from __future__ import annotations

from math import ceil, isfinite, nan


def count_of_range(first: float, last: float, step: float) -> int | None:
    """How many numbers lie from `first` to before `last`, exactly where all are integers; None where none can say (a
    step of 0, NaN, infinities)."""
    if all(isinstance(number, int) for number in (first, last, step)):
        return max(0, -int((first - last) // step)) if step else None
    steps = (last - first) / step if step else nan
    return max(0, ceil(steps)) if isfinite(steps) else None
