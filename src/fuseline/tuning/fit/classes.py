"""Records as rows of a system of equations: launches of the same code are one class, whose time is the least that was
seen of any of them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from fuseline.ir.work_costs import KINDS, TRAFFIC, WorkCosts, overlapped
from fuseline.tuning.fit.records import ProgramSamples

NAMES = ("launch", "barrier", *KINDS)
"""The columns, in the order of `WorkCosts`."""

STARTS = 2
"""Columns before the kinds of work."""

HIDING = [NAMES.index(kind) for kind in TRAFFIC]
"""The columns of traffic."""

FEW_DISPATCHES = 8
"""A program of fewer dispatches counts for less than others."""

Array = NDArray[np.float64]


@dataclass(frozen=True, slots=True)
class Classes:
    """Dispatches of one program under one compile, a row for each class.

    Attributes:
        model, digest, threads, fusion: of the program. rows: units of each of `NAMES` on the busiest thread, `(n, k)`.
        seconds: `(n,)`. counts: launches in the program, `(n,)`. names: of a dispatch of each.
    """

    model: str
    digest: str
    threads: int
    fusion: str
    rows: Array
    seconds: Array
    counts: Array
    names: tuple[str, ...]

    @property
    def weights(self) -> Array:
        """What the residual of each class is multiplied by: programs count alike, whatever their length."""
        total = max(float(self.counts.sum()), FEW_DISPATCHES)
        return np.sqrt(self.counts / total)

    def each(self, values: Array) -> Array:
        """`values` of classes as those of dispatches."""
        return np.repeat(values, self.counts.astype(np.int64))

    def predicted(self, costs: Array) -> Array:
        """Seconds of each class at `costs` (nanoseconds per unit)."""
        return times_of(self.rows * costs) * 1e-9


def classes_of(records: Sequence[ProgramSamples]) -> list[Classes]:
    """One for each compile that was measured, its rounds together; those without a dispatch are left out."""
    rounds: dict[Any, list[ProgramSamples]] = {}
    for record in records:
        rounds.setdefault(record.key, []).append(record)
    return [_together(same) for same in rounds.values() if same[0].dispatches]


def _together(rounds: Sequence[ProgramSamples]) -> Classes:
    last = rounds[-1]
    least: dict[tuple[Any, ...], float] = {}
    for record in rounds:
        for one in record.dispatches:
            key = _key(one.executable, one.work, one.share)
            least[key] = min(least.get(key, float("inf")), one.seconds)
    counts: dict[tuple[Any, ...], int] = {}
    names: dict[tuple[Any, ...], str] = {}
    rows: dict[tuple[Any, ...], list[float]] = {}
    for one in last.dispatches:
        key = _key(one.executable, one.work, one.share)
        counts[key] = counts.get(key, 0) + 1
        names.setdefault(key, one.name)
        rows[key] = row_of(one.work, one.share)
    return Classes(
        model=last.model, digest=last.digest, threads=last.threads, fusion=last.fusion,
        rows=np.array(list(rows.values())), seconds=np.array([least[key] for key in rows]),
        counts=np.array(list(counts.values()), dtype=np.float64), names=tuple(names.values()),
    )  # fmt: skip


def _key(executable: str, work: dict[str, float], share: float) -> tuple[Any, ...]:
    return executable, share, tuple(sorted(work.items()))


def row_of(work: dict[str, float], share: float) -> list[float]:
    """The units whose costs `predicted_ns` adds up, in the order of `NAMES`.

    >>> row_of({"bytes": 10.0}, 0.5)[:2], sum(row_of({"bytes": 10.0}, 0.5))
    ([1.0, 1.0], 7.0)
    """
    return [1.0, 1.0 if share < 1 else 0.0, *(share * work.get(kind, 0.0) for kind in KINDS)]


def times_of(spent: Array) -> Array:
    """Nanoseconds of dispatches, `(n,)`, of those that each kind of work takes, `(n, k)` in the order of `NAMES`: as
    `predicted_ns` adds them up."""
    started, arithmetic, traffic = apart(spent)
    return started + overlapped(arithmetic, traffic)


def apart(spent: Array) -> tuple[Array, Array, Array]:
    """The sums of launch and barrier, of arithmetic, and of traffic that hides behind it, `(n,)` each."""
    started = spent[:, :STARTS].sum(axis=1)
    traffic = spent[:, HIDING].sum(axis=1)
    return started, spent[:, STARTS:].sum(axis=1) - traffic, traffic


def vector_of(costs: WorkCosts) -> Array:
    """Costs as numbers in the order of `NAMES`."""
    return np.array([getattr(costs, name) for name in NAMES], dtype=np.float64)


def costs_of_vector(vector: Array) -> WorkCosts:
    """Numbers in the order of `NAMES` as costs, three digits of each."""
    return WorkCosts(**{name: float(f"{value:.3g}") for name, value in zip(NAMES, vector, strict=True)})
