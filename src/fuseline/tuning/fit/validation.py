"""How well costs predict models that they were not fitted to: each model is left out in turn, in all its compiles."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import msgspec
import numpy as np

from fuseline.ir.work_costs import WorkCosts
from fuseline.tuning.fit.classes import FEW_DISPATCHES, Array, Classes, vector_of
from fuseline.tuning.fit.least_squares import solved

POOLED = "models of few dispatches"
"""Programs of fewer than `FEW_DISPATCHES` dispatches, together: a rank correlation of three points says nothing."""


class Quality(msgspec.Struct, frozen=True, kw_only=True):
    """How a prediction fits dispatches: the median of `|predicted / measured - 1|`, and Spearman's rank correlation
    (NaN where all are alike)."""

    error: float
    correlation: float


class LeftOut(msgspec.Struct, frozen=True, kw_only=True):
    """One program: how costs predict it that were there before, and those that were fitted to the other models."""

    model: str
    threads: int
    dispatches: int
    before: Quality
    after: Quality


def cross_validated(
    programs: Sequence[Classes],
    start: WorkCosts,
    before: WorkCosts,
    progress: Callable[[str, int, int], None] = lambda phase, done, total: None,
) -> list[LeftOut]:
    """A row for each program, those of few dispatches as one per number of threads, last. Fits begin at `start`."""
    digests = list(dict.fromkeys(one.digest for one in programs))
    known = vector_of(before)
    predictions: list[tuple[Classes, Array]] = []
    for done, digest in enumerate(digests):
        progress("leaving one model out", done, len(digests))
        others = [one for one in programs if one.digest != digest]
        costs = solved(others, start)
        predictions += [(one, one.predicted(costs)) for one in programs if one.digest == digest]
    long = [row for row in predictions if row[0].counts.sum() >= FEW_DISPATCHES]
    rows = [_row(one.model, one.threads, [(one, after)], known) for one, after in long]
    for threads in sorted({one.threads for one in programs}):
        few = [row for row in predictions if row[0].counts.sum() < FEW_DISPATCHES and row[0].threads == threads]
        rows += [_row(POOLED, threads, few, known)] if few else []
    return rows


def _row(model: str, threads: int, groups: Sequence[tuple[Classes, Array]], before: Array) -> LeftOut:
    measured = np.concatenate([one.each(one.seconds) for one, _ in groups])
    first = np.concatenate([one.each(one.predicted(before)) for one, _ in groups])
    then = np.concatenate([one.each(after) for one, after in groups])
    return LeftOut(
        model=model, threads=threads, dispatches=len(measured), before=quality(first, measured),
        after=quality(then, measured),
    )  # fmt: skip


def quality(predicted: Array, measured: Array) -> Quality:
    """How well times are predicted, dispatch by dispatch, both `(n,)`."""
    error = float(np.median(np.abs(predicted / measured - 1)))
    return Quality(error=error, correlation=rank_correlation(predicted, measured))


def rank_correlation(first: Array, second: Array) -> float:
    """Spearman's, with the mean of their ranks for equal ones; NaN where one side is all alike.

    >>> round(rank_correlation(np.array([1.0, 2.0, 3.0]), np.array([10.0, 30.0, 20.0])), 3)
    0.5
    """
    ranks = [_ranks(values) - (len(values) + 1) / 2 for values in (first, second)]
    spread: Any = np.sqrt((ranks[0] ** 2).sum() * (ranks[1] ** 2).sum())
    return float((ranks[0] * ranks[1]).sum() / spread) if spread > 0 else float("nan")


def _ranks(values: Array) -> Array:
    _, place, counts = np.unique(values, return_inverse=True, return_counts=True)
    last = np.cumsum(counts)
    return (last - (counts - 1) / 2)[place]
