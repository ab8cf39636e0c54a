"""The outputs of a whole program against another program's, with the interpreter in float64 as the judge where they
differ."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import cache
from typing import Any

import numpy as np

from fuseline.report.check_results import RIGHT, ROUNDING, WRONG, OutputCheck
from fuseline.verify.compare import Comparison, compare

Outputs = Mapping[str, Any]

SPREADS = 3.0
"""How many times further from float64 than noise moves it a program may lie, where noise moves it far."""

Exactly = Callable[[], "tuple[Outputs, list[Outputs]]"]
"""The outputs in float64, and those of runs that are off by a rounding or two: in f32, and of noisy feeds."""


def check_outputs(
    ours: Outputs, theirs: Outputs, reference: str, tolerance: float, exactly: Exactly | None = None
) -> list[OutputCheck]:
    """Each output of `theirs`, which `reference` answered. `exactly` is asked where one is off by more than
    `tolerance`, a part of its largest magnitude: both may be as far from float64 as noise moves that."""
    judge = None if exactly is None else cache(exactly)
    return [_check(name, ours, theirs, reference, tolerance, judge) for name in theirs]


def _check(
    name: str, ours: Outputs, theirs: Outputs, reference: str, tolerance: float, exactly: Exactly | None
) -> OutputCheck:
    if not (_is_numbers(theirs[name]) and _is_numbers(ours.get(name))):
        return _equal(name, ours.get(name), theirs[name], reference)
    found = _compared(name, ours, theirs)
    if found.passes(tolerance):
        return _row(found, reference, RIGHT)
    if exactly is None:
        return _row(found, reference, WRONG)
    exact, noisy = exactly()
    mine, others, *spread = (_compared(name, one, exact, wide=True) for one in (ours, theirs, *noisy))
    allowed = max(tolerance, SPREADS * max(one.error for one in spread))
    told = (
        f"from float64 ours is {mine.error:.2e}, {reference} {others.error:.2e}, noise moves it {allowed / SPREADS:.2e}"
    )
    explained = all(one.passes(allowed) for one in (mine, others)) and np.isfinite(allowed)
    return _row(found, reference, ROUNDING if explained else WRONG, told)


def _compared(name: str, ours: Outputs, theirs: Outputs, *, wide: bool = False) -> Comparison:
    mine, other = np.asarray(ours[name]), np.asarray(theirs[name])
    if wide:
        mine = mine.astype(other.dtype)
    return compare({name: mine}, {name: other}, {name})[0]


def _row(found: Comparison, reference: str, status: str, detail: str = "") -> OutputCheck:
    words = "; ".join(word for word in (found.problem, detail) if word)
    return OutputCheck(
        output=found.output,
        reference=reference,
        error=found.error,
        magnitude=found.magnitude,
        status=status,
        detail=words,
    )


def _is_numbers(value: Any) -> bool:
    return isinstance(value, np.ndarray) and value.dtype != object


def _equal(name: str, ours: Any, theirs: Any, reference: str) -> OutputCheck:
    """Strings, sequences and whatever is no tensor of numbers: equal, or not."""
    same = same_values(ours, theirs)
    return OutputCheck(
        output=name,
        reference=reference,
        error=0.0 if same else float("inf"),
        magnitude=1.0,
        status=RIGHT if same else WRONG,
        detail="" if same else "values differ",
    )


def same_values(first: Any, second: Any) -> bool:
    """Whether two outputs are the same, to the bit where they are numbers; of any type that outputs have."""
    if isinstance(first, list) and isinstance(second, list):
        return len(first) == len(second) and all(map(same_values, first, second))
    if isinstance(first, dict) and isinstance(second, dict):
        return first.keys() == second.keys() and all(same_values(first[key], second[key]) for key in first)
    if isinstance(first, np.ndarray) and isinstance(second, np.ndarray):
        if first.dtype == object:
            return first.shape == second.shape and first.tolist() == second.tolist()
        return first.shape == second.shape and first.dtype == second.dtype and first.tobytes() == second.tobytes()
    if isinstance(first, np.ndarray) or isinstance(second, np.ndarray):
        return False
    return bool(first == second)
