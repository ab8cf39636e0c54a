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
    """What cutting must know of a command: its arms. `max_threads` 0: no limit. `barrier`: earlier commands must have
    ended."""

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


class LoopGrids(NamedTuple):
    """What cutting must know of a loop: its commands, and how often they are run."""

    trips: int
    body: tuple[Grids, ...]
    barrier: bool = False

    @property
    def cost_ns(self) -> int:
        """Of all iterations."""
        return self.trips * sum(command.cost_ns for command in self.body)


class Shares(NamedTuple):
    """`barriers[row]`: one stands before the row. `ranges[thread, row]` is the first workgroup of the thread's range
    and the one behind it."""

    barriers: list[bool]
    ranges: NDArray[np.int64]


def share_grids(steps: Sequence[Grids | LoopGrids], threads: int, split_above_ns: int = 0) -> Shares:
    """Cut the grids of each command, one row per arm, with a row in front of those of a loop.

    A wave (the commands from one barrier to the next) that costs less than `split_above_ns` runs on thread 0, and
    between two such waves the barrier is dropped: program order on that thread does the same. In other waves every
    thread gets an equal share of every grid, so that estimates of what a workgroup costs matter for those alone that
    are left over: these go to the threads with the least to do so far.

    >>> share_grids([Grids((Grid(3),)), Grids((Grid(1),))], 2).ranges.tolist()
    [[[0, 2], [0, 0]], [[2, 3], [0, 1]]]
    """
    if threads == 1:
        whole = [[[0, count] for count in row_workgroups(steps)]]
        return Shares([False] * len(whole[0]), np.array(whole, np.int64).reshape(1, -1, 2))
    table = _Table(threads, split_above_ns)
    for segment in _segments(steps):
        if isinstance(segment, LoopGrids):
            table.add_loop(segment)
        else:
            table.add_wave(segment, barrier=segment[0].barrier)
    return Shares(table.barriers, np.array(table.rows, np.int64).reshape(len(table.rows), threads, 2).swapaxes(0, 1))


class _Table:
    """Rows as they are shared out. `was_alone`: what ran last ran on thread 0."""

    def __init__(self, threads: int, split_above_ns: int) -> None:
        self.threads, self.split_above_ns, self.was_alone = threads, split_above_ns, True
        self.barriers: list[bool] = []
        self.rows: list[list[int]] = []

    def add_wave(self, wave: Sequence[Grids], *, barrier: bool) -> None:
        """The rows of a wave; with `barrier` one stands before it, unless thread 0 alone runs it and what came
        before."""
        alone = self._alone(wave)
        self.rows += _share_wave(wave, 1 if alone else self.threads, self.threads)
        self.barriers += [barrier and not (alone and self.was_alone)]
        self.barriers += [False] * (len(self.rows) - len(self.barriers))
        self.was_alone = alone

    def add_loop(self, loop: LoopGrids) -> None:
        """The rows of a loop: its own, and those of its waves, the first of which follows the last of the iteration
        before."""
        waves = list(_waves(loop.body))
        self.rows.append([0] * (2 * self.threads))
        self.barriers.append(loop.barrier and not (self.was_alone and self._alone(waves[0])))
        self.was_alone = self._alone(waves[-1])
        for wave in waves:
            self.add_wave(wave, barrier=wave is waves[0] or wave[0].barrier)

    def _alone(self, wave: Sequence[Grids]) -> bool:
        return sum(command.cost_ns for command in wave) < self.split_above_ns


def row_workgroups(steps: Sequence[Grids | LoopGrids]) -> Iterator[int]:
    """The workgroups of each row; a loop's own row has none."""
    for step in steps:
        if isinstance(step, Grids):
            yield from (grid.workgroups for grid in step.arms)
        else:
            yield 0
            yield from row_workgroups(step.body)


def _segments(steps: Sequence[Grids | LoopGrids]) -> Iterator[Sequence[Grids] | LoopGrids]:
    """The waves and loops in order."""
    commands: list[Grids] = []
    for step in steps:
        if isinstance(step, Grids):
            commands.append(step)
            continue
        yield from _waves(commands)
        commands = []
        yield step
    yield from _waves(commands)


def _waves(commands: Sequence[Grids]) -> Iterator[Sequence[Grids]]:
    starts = [i for i, command in enumerate(commands) if command.barrier and i]
    for start, end in pairwise([0, *starts, len(commands)]):
        if start < end:
            yield commands[start:end]


def _share_wave(wave: Sequence[Grids], most: int, threads: int) -> Iterator[list[int]]:
    """For each row the first workgroup of each thread and the one behind its last."""
    loads = [0.0] * threads
    for command in wave:
        participants = min(most, command.max_threads or most)
        taking = range(most) if participants == most else sorted(_least(loads, range(most), participants))
        dearest_first = sorted(range(len(command.arms)), key=lambda i: -_unit(command.arms[i]))
        shared = {arm: _share(command.arms[arm], taking, loads) for arm in dearest_first}
        yield from (shared[arm] for arm in range(len(shared)))


def _share(grid: Grid, taking: Sequence[int], loads: list[float]) -> list[int]:
    """An equal share for each thread of `taking`, and what is left over to those with the least `loads`, which grow.

    Threads take their ranges in order, so that neighbours in a grid are often on the thread that had them in the last
    one.
    """
    quotient, remainder = divmod(grid.workgroups, len(taking))
    extra = set(_least(loads, taking, remainder)) if remainder else set[int]()
    unit, at = _unit(grid), 0
    ranges = [0] * (2 * len(loads))
    for thread in taking:
        count = quotient + (thread in extra)
        ranges[2 * thread : 2 * thread + 2] = at, at + count
        loads[thread] += count * unit
        at += count
    return ranges


def _least(loads: Sequence[float], taking: Sequence[int], count: int) -> list[int]:
    return sorted(taking, key=loads.__getitem__)[:count]


def _unit(grid: Grid) -> float:
    """What one workgroup costs."""
    return max(grid.cost_ns, 1) / max(grid.workgroups, 1)
