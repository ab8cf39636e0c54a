"""How the grids of a program are cut among threads. Static: decided once per combination of sizes."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import pairwise
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray


class Grid(NamedTuple):
    """What cutting must know of an arm."""

    workgroups: int
    cost_ns: int = 0


class Grids(NamedTuple):
    """What cutting must know of a command: its arms. `max_threads` 0: no limit. `barrier`: earlier commands must have ended."""

    arms: tuple[Grid, ...]
    max_threads: int = 0
    barrier: bool = False

    @property
    def workgroups(self) -> int:
        """Of all arms."""
        return sum(grid.workgroups for grid in self.arms)

    @property
    def cost_ns(self) -> int:
        """Of all arms."""
        return sum(grid.cost_ns for grid in self.arms)


class Shares(NamedTuple):
    """`barriers[row]`: one stands before the row. `ranges[thread, row]` is the first workgroup of the thread's range and the one behind it."""

    barriers: list[bool]
    ranges: NDArray[np.int64]


def share_grids(commands: Sequence[Grids], threads: int, split_above_ns: int = 0) -> Shares:
    """Cut the grids of each command, one row per arm.

    A wave (the commands from one barrier to the next) that costs less than `split_above_ns` runs on thread 0, and between two such waves
    the barrier is dropped: program order on that thread does the same. In other waves each command starts on the thread after the last one
    that got an odd share, so that small grids spread.

    >>> share_grids([Grids((Grid(3),)), Grids((Grid(1),))], 2).ranges.tolist()
    [[[0, 2], [0, 0]], [[2, 3], [0, 1]]]
    """
    rows = [grid.workgroups for command in commands for grid in command.arms]
    ranges = np.zeros((threads, len(rows), 2), np.int64)
    if threads == 1:
        ranges[0, :, 1] = rows
        return Shares([False] * len(rows), ranges)
    barriers: list[bool] = []
    was_alone = True
    for wave in _waves(commands):
        alone = sum(command.cost_ns for command in wave) < split_above_ns
        _share_wave(wave, 1 if alone else threads, ranges[:, len(barriers) :])
        barriers += [wave[0].barrier and not (alone and was_alone), *[False] * (sum(len(command.arms) for command in wave) - 1)]
        was_alone = alone
    return Shares(barriers, ranges)


def _waves(commands: Sequence[Grids]) -> Iterator[Sequence[Grids]]:
    starts = [i for i, command in enumerate(commands) if command.barrier and i]
    for start, end in pairwise([0, *starts, len(commands)]):
        if start < end:
            yield commands[start:end]


def _share_wave(wave: Sequence[Grids], most: int, ranges: NDArray[np.int64]) -> None:
    """Fill the rows of `ranges` (of all threads) from the first on."""
    first = row = 0
    threads = len(ranges)
    for command in wave:
        participants = max(1, min(most, command.workgroups, command.max_threads or most))
        takers = (first + np.arange(participants)) % threads
        for cuts in _cuts(command.arms, participants):
            ranges[takers, row, 0], ranges[takers, row, 1] = cuts[:-1], cuts[1:]
            row += 1
        if most > 1:
            first = (first + _odd(command, participants, threads)) % threads


def _odd(command: Grids, participants: int, threads: int) -> int:
    """How many threads from the first on have got more than the others."""
    if participants < threads:
        return participants
    return command.workgroups if len(command.arms) == 1 else 0


def _cuts(arms: Sequence[Grid], pieces: int) -> Iterator[NDArray[np.int64]]:
    """For each grid the workgroups at which it is cut into `pieces` ranges: `pieces + 1` ascending numbers from 0 to all.

    One grid is cut evenly, the first ranges one longer. Several are laid end to end, each as long as its cost, and cut into pieces of equal
    cost: a piece is the end of one grid, some whole ones, and the beginning of another.
    """
    numbers = np.arange(pieces + 1)
    if len(arms) == 1:
        quotient, remainder = divmod(arms[0].workgroups, pieces)
        yield numbers * quotient + np.minimum(numbers, remainder)
        return
    costs = [max(grid.cost_ns, 1) if grid.workgroups else 0 for grid in arms]
    marks, start = numbers * (sum(costs) / pieces), 0
    for grid, cost in zip(arms, costs, strict=True):
        cuts = np.rint(np.clip((marks - start) / max(cost, 1), 0, 1) * grid.workgroups).astype(np.int64)
        cuts[0], cuts[-1] = 0, grid.workgroups
        yield cuts
        start += cost
