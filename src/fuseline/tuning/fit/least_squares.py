"""Costs that predict measured times best: robust least squares on the logarithm of the ratio.

A dispatch that is off by much (denormal numbers, an algorithm that the model knows nothing of, a trial that another
process ran over) counts with its root rather than its square. Each cost stays positive and within what a machine can
have; those that no measured dispatch says much of stay near where they started.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from fuseline.errors import FuselineError
from fuseline.ir.work_costs import OVERLAP, WorkCosts, overlapped
from fuseline.tuning.fit.classes import (
    HIDING,
    NAMES,
    STARTS,
    Array,
    Classes,
    apart,
    costs_of_vector,
    times_of,
    vector_of,
)

PROGRAM_WEIGHT = 4.0
"""What the residuals of one program are multiplied by, beside the pull towards the start."""

PULL = 0.02
"""A cost that is e times its start weighs as much as one program whose dispatches are all off by half a per cent."""

SOFT = 0.1
"""Relative error from which on a residual counts as its root."""

SPAN = 50.0
"""A fitted cost is at most so many times its start, and at least one so many-th."""

LEAST_CLASSES, LEAST_MODELS = 12, 2
SAME_KIND = 0.999
"""Dispatches that spend more than this of their predicted time on one kind of work say nothing of the others."""


def fitted(programs: Sequence[Classes], start: WorkCosts, before: WorkCosts | None = None) -> WorkCosts:
    """The costs that predict `programs` best, beginning at `start`; those of work that there is none of are as in
    `before`. Raises E0501 for what no fit can be made from, and E0503 without scipy."""
    _require_enough(programs, start)
    seen = np.concatenate([one.rows for one in programs]).any(axis=0)
    return costs_of_vector(np.where(seen, solved(programs, start), vector_of(before or start)))


def solved(programs: Sequence[Classes], start: WorkCosts) -> Array:
    """The same in the order of `NAMES`, of any programs."""
    rows = np.concatenate([one.rows for one in programs])
    measured = np.log(np.concatenate([one.seconds for one in programs]) * 1e9)
    weights = PROGRAM_WEIGHT * np.concatenate([one.weights for one in programs])
    first = np.log(vector_of(start))
    seen = rows.any(axis=0)  # the others keep their start to the digit

    def spent(costs: Array) -> Array:
        found = np.zeros_like(rows)
        found[:, seen] = rows[:, seen] * np.exp(costs)
        return found

    def residuals(costs: Array) -> Array:
        return np.concatenate([weights * (np.log(times_of(spent(costs))) - measured), PULL * (costs - at)])

    def slopes(costs: Array) -> Array:
        times = spent(costs)
        shares = (slopes_of(times) * times)[:, seen] / times_of(times)[:, None]
        return np.concatenate([weights[:, None] * shares, PULL * np.eye(len(costs))])

    at = first[seen]
    span = np.log(SPAN)
    found: Any = _optimize().least_squares(
        residuals, at, jac=slopes, bounds=(at - span, at + span), loss="soft_l1", f_scale=SOFT, x_scale=1.0
    )
    result = first.copy()
    result[seen] = found.x
    return np.exp(result)


def slopes_of(spent: Array) -> Array:
    """What a nanosecond more of each kind of work adds to the time of a dispatch, `(n, k)`."""
    _, arithmetic, traffic = apart(spent)
    both = np.maximum(overlapped(arithmetic, traffic), np.finfo(np.float64).tiny)
    found = np.ones_like(spent)
    found[:, STARTS:] = ((arithmetic / both) ** (OVERLAP - 1))[:, None]
    found[:, HIDING] = ((traffic / both) ** (OVERLAP - 1))[:, None]
    return found


def _optimize() -> Any:
    try:
        from scipy import optimize
    except ImportError as error:
        hint = "pip install 'fuseline[tune]'"
        raise FuselineError("E0503", "scipy is not installed", node="scipy", hint=hint) from error
    return optimize


def _require_enough(programs: Sequence[Classes], start: WorkCosts) -> None:
    models = {one.digest for one in programs}
    classes = sum(len(one.seconds) for one in programs)
    if len(models) < LEAST_MODELS or classes < LEAST_CLASSES:
        raise FuselineError(
            "E0501",
            f"{classes} different dispatches of {len(models)} models are too few to fit {len(NAMES)} costs",
            hint=f"measure {LEAST_MODELS} models and {LEAST_CLASSES} different dispatches at least",
        )
    spent = np.concatenate([one.rows for one in programs]) * vector_of(start)
    shares = spent / spent.sum(axis=1, keepdims=True)
    dominant = np.unique(shares.argmax(axis=1))
    if len(dominant) == 1 and float(shares.max(axis=1).min()) > SAME_KIND:
        raise FuselineError(
            "E0501",
            f"all dispatches spend their time on one kind of work: {NAMES[dominant[0]]}",
            hint="measure models that do other things, too",
        )
