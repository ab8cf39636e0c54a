"""How the grids of a program are cut among threads. Static: decided once per combination of sizes."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import pairwise
from typing import NamedTuple


class Grid(NamedTuple):
    """What cutting must know of a command; `max_threads` 0: no limit. `barrier`: earlier commands must have ended."""

    workgroups: int
    cost_ns: int = 0
    max_threads: int = 0
    barrier: bool = False


class Share(NamedTuple):
    """A grid cut into `participants` ranges, of which thread `first` runs the first; see `fuseline.runtime.abi`."""

    participants: int
    first: int
    barrier: bool


def share_grids(grids: Sequence[Grid], threads: int, split_above_ns: int = 0) -> list[Share]:
    """Decide which threads take part in each command.

    A wave (the commands from one barrier to the next) that costs less than `split_above_ns` runs on thread 0, and between two such waves
    the barrier is dropped: program order on that thread does the same. In other waves each grid starts on the thread after the last one
    that got an odd share, so that small grids spread.

    >>> share_grids([Grid(3), Grid(1)], 2)
    [Share(participants=2, first=0, barrier=False), Share(participants=1, first=1, barrier=False)]
    """
    shares: list[Share] = []
    was_alone = True
    for wave in _waves(grids):
        alone = threads == 1 or sum(grid.cost_ns for grid in wave) < split_above_ns
        barrier = wave[0].barrier and not (alone and was_alone)
        shares += _share_wave(wave, 1 if alone else threads, threads, barrier)
        was_alone = alone
    return shares


def _waves(grids: Sequence[Grid]) -> Iterator[Sequence[Grid]]:
    starts = [i for i, grid in enumerate(grids) if grid.barrier and i]
    for start, end in pairwise([0, *starts, len(grids)]):
        if start < end:
            yield grids[start:end]


def _share_wave(wave: Sequence[Grid], most: int, threads: int, barrier: bool) -> Iterator[Share]:
    first = 0
    for row, grid in enumerate(wave):
        participants = max(1, min(most, grid.workgroups, grid.max_threads or most))
        yield Share(participants, first, barrier and row == 0)
        if most > 1:
            first = (first + (grid.workgroups if participants == threads else participants)) % threads
