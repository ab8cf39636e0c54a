"""Where the time of a trial and of its incumbent goes: every dispatch timed by itself, those that differ in turns, so
that a difference is told by the dispatches that make it.

    incumbent   [a b] [c]     [d e] [f]         a dispatch is known by its members' ids
    trial       [a] [b] [c]'  [d e  f]          c runs other code
                 \\___/  \\_/   \\_____/
    regions       a b     c     d e f           dispatches that share members, directly or through others

What both have with the same code is timed once, and gains nothing.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from random import Random
from typing import Protocol

import numpy as np

from fuseline.analysis.disjoint_sets import DisjointSets
from fuseline.report.launches import dispatches_launched
from fuseline.report.records import DispatchRecord
from fuseline.tuning.objectives import dispatch_key
from fuseline.tuning.trial import TrialOutcome

ROUNDS = 7
LEAST_ROUNDS = 3
SAMPLE_SECONDS = 5e-4
"""A launch is repeated until a sample takes this long: the clock, and the run around a launch, are coarse."""

MOST_REPEATS = 20

MEDIAN_ERROR = 1.4826 * 1.2533
"""The standard error of a median, by the median deviation and the root of the number: of normal noise."""


EQUAL_TIMES = 1.15
"""Equal layers take times that differ by no larger factor."""


class Timer(Protocol):
    """What times the launches of a program: `verify.dispatch_times.DispatchTimer`."""

    def sample(self, index: int, repeats: int = 1) -> float:
        """Seconds of a launch, by one timing of `repeats`."""
        ...


@dataclass(frozen=True, slots=True)
class DispatchTimes:
    """Seconds by dispatch, of a trial and of its incumbent in the same rounds; `error`: standard errors of the
    difference, for those that are not the same in both."""

    trial: Mapping[str, float]
    incumbent: Mapping[str, float]
    error: Mapping[str, float]

    @classmethod
    def of(cls, outcome: TrialOutcome) -> DispatchTimes:
        """Those that an outcome has."""
        return cls(outcome.dispatch_seconds, outcome.incumbent_dispatch_seconds, outcome.dispatch_error)


@dataclass(frozen=True, slots=True)
class Launch:
    """One launch of a program: which dispatch it is, its members, and what tells its code from others'."""

    index: int
    key: str
    code: object

    @property
    def members(self) -> list[str]:
        """Its members' ids; its key, where it has none."""
        return self.key.split("+")


def launches(labels: Sequence[str], dispatches: Iterable[DispatchRecord], threads: int) -> list[Launch]:
    """The launches of a program that is recorded so; one that the records do not know is known by its label."""
    records = dispatches_launched(dispatches, labels)
    return [
        Launch(index, label, threads)
        if record is None
        else Launch(index, dispatch_key(record), (record.kernels, record.workgroups, record.family, threads))
        for index, (label, record) in enumerate(zip(labels, records, strict=True))
    ]


class TimedProgram:
    """A program whose launches can be timed one by one; what was timed once is remembered."""

    def __init__(self, timer: Timer, launched: Sequence[Launch]) -> None:
        self.timer, self.launches = timer, launched
        self._repeats: dict[int, int] = {}
        self._steady: dict[int, float] = {}

    def sample(self, launch: Launch) -> float:
        """Seconds of a launch, over as many as make a sample."""
        if launch.index not in self._repeats:
            taken = max(min(self.timer.sample(launch.index) for _ in range(2)), 1e-9)
            self._repeats[launch.index] = int(np.clip(SAMPLE_SECONDS / taken, 1, MOST_REPEATS))
        return self.timer.sample(launch.index, self._repeats[launch.index])

    def steady(self, launch: Launch) -> float:
        """Seconds of a launch, measured the first time that it is asked for."""
        if launch.index not in self._steady:
            self._steady[launch.index] = float(np.median([self.sample(launch) for _ in range(LEAST_ROUNDS)]))
        return self._steady[launch.index]


def attributed(
    trial: TimedProgram,
    incumbent: TimedProgram,
    seconds: float,
    *,
    seed: int = 0,
    clock: Callable[[], float] = time.perf_counter,
) -> DispatchTimes:
    """The times of all dispatches of both, spending about `seconds` on those that differ, at least `LEAST_ROUNDS`."""
    common = {(launch.key, launch.code) for launch in trial.launches}
    common &= {(launch.key, launch.code) for launch in incumbent.launches}
    steady = {
        launch.key: incumbent.steady(launch) for launch in incumbent.launches if (launch.key, launch.code) in common
    }
    sides = [
        [(program, launch) for launch in program.launches if (launch.key, launch.code) not in common]
        for program in (trial, incumbent)
    ]
    samples = _samples(_neighbours(sides), seconds, Random(seed), clock)
    ours, theirs = (_sums([(launch.key, samples[id(launch)]) for _, launch in side]) for side in sides)
    return DispatchTimes(
        trial={**steady, **_medians(ours)},
        incumbent={**steady, **_medians(theirs)},
        error={key: float(np.hypot(_error(ours.get(key)), _error(theirs.get(key)))) for key in {**ours, **theirs}},
    )


Side = list[tuple[TimedProgram, Launch]]


def _neighbours(sides: Sequence[Side]) -> list[Side]:
    """The launches of both sides region by region, so that those that are compared are timed soon after each other."""
    joined = DisjointSets[str]()
    for _, launch in (pair for side in sides for pair in side):
        for member in launch.members:
            joined.join(member, launch.members[0])
    regions: dict[str, Side] = {}
    for pair in (pair for side in sides for pair in side):
        regions.setdefault(joined.of(pair[1].members[0]), []).append(pair)
    return list(regions.values())


def _samples(
    regions: Sequence[Side], seconds: float, random: Random, clock: Callable[[], float]
) -> Mapping[int, list[float]]:
    """Seconds by launch, one for each round."""
    found: dict[int, list[float]] = {id(launch): [] for region in regions for _, launch in region}
    end = clock() + seconds
    for done in range(ROUNDS):
        if done >= LEAST_ROUNDS and clock() > end:
            break
        for region in regions:
            for program, launch in random.sample(region, len(region)):
                found[id(launch)].append(program.sample(launch))
    return found


def _sums(samples: Iterable[tuple[str, list[float]]]) -> dict[str, np.ndarray]:
    """Seconds by round of each dispatch; one that is launched several times takes the sum."""
    found: dict[str, np.ndarray] = {}
    for key, times in samples:
        found[key] = found[key] + np.array(times) if key in found else np.array(times)
    return found


def _medians(times: Mapping[str, np.ndarray]) -> dict[str, float]:
    return {key: float(np.median(values)) for key, values in times.items()}


def _error(times: np.ndarray | None) -> float:
    if times is None:
        return 0.0
    deviation = np.median(np.abs(times - np.median(times)))
    return float(MEDIAN_ERROR * deviation / np.sqrt(len(times)))


# regions --------------------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class RegionGain:
    """Dispatches of the incumbent and what the trial has in their place: by keys. `gain_seconds` of a run, with its
    standard error; `layers`: how many regions alike the figures are the mean of."""

    incumbent: tuple[str, ...]
    trial: tuple[str, ...]
    gain_seconds: float
    error_seconds: float
    layers: int = 1


def of_several(measured: Sequence[DispatchTimes]) -> DispatchTimes:
    """What several processes measured of the same two programs: medians, and errors by how far they are apart."""
    timed = [times for times in measured if times.trial]
    if not timed:
        return DispatchTimes({}, {}, {})
    known = [times for times in timed if times.trial.keys() == timed[0].trial.keys()]  # else another program
    trial, incumbent = (
        {key: np.array([getattr(times, side)[key] for times in known]) for key in getattr(known[0], side)}
        for side in ("trial", "incumbent")
    )
    errors = {key: float(np.hypot(_error(trial.get(key)), _error(incumbent.get(key)))) for key in known[0].error}
    return DispatchTimes(_medians(trial), _medians(incumbent), errors)


def region_gains(times: DispatchTimes) -> list[RegionGain]:
    """What each region gained by itself, the largest gain first. Regions that did the same to dispatches of the same
    kinds (equal layers) add their evidence: each has the mean, with an error that is less by the root of their
    number."""

    def seconds(region: RegionGain) -> float:
        return sum(times.incumbent[key] for key in region.incumbent)

    alike: list[list[RegionGain]] = []
    for region in sorted(_regions(times), key=lambda region: (_kind(region), seconds(region))):
        before = alike[-1][-1] if alike else None
        if before and _kind(before) == _kind(region) and seconds(region) <= EQUAL_TIMES * seconds(before):
            alike[-1].append(region)
        else:
            alike.append([region])
    pooled = [found for layers in alike for found in _pooled(layers)]
    return sorted(pooled, key=lambda region: -region.gain_seconds)


def _regions(times: DispatchTimes) -> list[RegionGain]:
    joined = DisjointSets[str]()
    for key in times.error:
        for member in key.split("+"):
            joined.join(member, key.split("+")[0])
    keys: dict[str, list[str]] = {}
    for key in times.error:
        keys.setdefault(joined.of(key.split("+")[0]), []).append(key)
    return [_region(times, found) for found in keys.values()]


def _region(times: DispatchTimes, keys: Sequence[str]) -> RegionGain:
    before, after = ([key for key in keys if key in side] for side in (times.incumbent, times.trial))
    gain = sum(times.incumbent[key] for key in before) - sum(times.trial[key] for key in after)
    return RegionGain(tuple(before), tuple(after), gain, float(np.sqrt(sum(times.error[key] ** 2 for key in keys))))


def _kind(region: RegionGain) -> tuple[tuple[str, ...], ...]:
    return _kinds(region.incumbent), _kinds(region.trial)


def _kinds(keys: Sequence[str]) -> tuple[str, ...]:
    """What the members do, without which they are."""
    return tuple(sorted("+".join(member.partition(".")[0] for member in key.split("+")) for key in keys))


def _pooled(alike: Sequence[RegionGain]) -> list[RegionGain]:
    """Regions of one kind and time, unless they gained too differently to be equal layers."""
    gains = np.array([region.gain_seconds for region in alike])
    errors = np.array([region.error_seconds for region in alike])
    if len(alike) == 1 or np.ptp(gains) > 4 * float(errors.max()):
        return list(alike)
    mean, error = float(gains.mean()), float(np.sqrt((errors**2).sum()) / len(alike))
    return [RegionGain(region.incumbent, region.trial, mean, error, len(alike)) for region in alike]
