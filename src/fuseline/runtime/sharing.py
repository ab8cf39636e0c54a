"""How the grids of a program are cut among threads. Static: decided once per combination of sizes."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import groupby, pairwise, repeat
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from fuseline.runtime.program import Arm, Command, Loop
from fuseline.runtime.sizes import SizeEvaluator


class Shares(NamedTuple):
    """`barriers[row]`: one stands before the row. `ranges[thread, row]` is the first workgroup of the thread's range
    and the one behind it."""

    barriers: list[bool]
    ranges: NDArray[np.int64]


def workgroups_of(row: Arm | Loop, evaluate: SizeEvaluator) -> int:
    """The grid of a row; for that of a loop, which launches nothing, its iterations."""
    return max(evaluate(row.workgroups), 0) if isinstance(row, Arm) else evaluate(row.trips)


def cost_ns(step: Command | Loop, evaluate: SizeEvaluator) -> int:
    """What all arms cost, in all iterations of a loop."""
    if isinstance(step, Loop):
        return evaluate(step.trips) * sum(cost_ns(command, evaluate) for command in step.commands)
    return sum(evaluate(arm.cost_ns) for arm in step.arms)


def rows_of(steps: Sequence[Command | Loop]) -> Iterator[Arm | Loop]:
    """The rows of the command table: the arms of all commands in order, and a row in front of those of a loop."""
    for step in steps:
        if isinstance(step, Loop):
            yield step
            yield from rows_of(step.commands)
        else:
            yield from step.arms


def commands_by_row(steps: Sequence[Command | Loop]) -> Iterator[Command | None]:
    """The command behind each of `rows_of`, None for those of loops."""
    for step in steps:
        if isinstance(step, Loop):
            yield None
            yield from commands_by_row(step.commands)
        else:
            yield from repeat(step, len(step.arms))


def share_grids(
    steps: Sequence[Command | Loop], threads: int, evaluate: SizeEvaluator, split_above_ns: int = 0
) -> Shares:
    """Cut the grids of each command, one row per arm, with a row in front of those of a loop.

    A wave (the commands from one barrier to the next) that costs less than `split_above_ns` runs on thread 0, and
    between two such waves the barrier is dropped: program order on that thread does the same. In other waves every
    thread gets an equal share of every grid, so that estimates of what a workgroup costs matter for those alone that
    are left over: these go to the threads with the least to do so far.

    >>> grids = [Command((Arm(0, (), (), workgroups),)) for workgroups in (3, 1)]
    >>> share_grids(grids, 2, SizeEvaluator({})).ranges.tolist()
    [[[0, 2], [0, 0]], [[2, 3], [0, 1]]]
    """
    if threads == 1:
        whole = [[0, workgroups_of(row, evaluate) if isinstance(row, Arm) else 0] for row in rows_of(steps)]
        return Shares([False] * len(whole), np.array(whole, np.int64).reshape(1, -1, 2))
    table = _Table(threads, evaluate, split_above_ns)
    for segment in _segments(steps):
        if isinstance(segment, Loop):
            table.add_loop(segment)
        else:
            table.add_wave(segment, barrier=segment[0].barrier)
    return Shares(table.barriers, np.array(table.rows, np.int64).reshape(len(table.rows), threads, 2).swapaxes(0, 1))


class _Table:
    """Rows as they are shared out. `was_alone`: what ran last ran on thread 0."""

    def __init__(self, threads: int, evaluate: SizeEvaluator, split_above_ns: int) -> None:
        self.threads, self.evaluate, self.split_above_ns, self.was_alone = threads, evaluate, split_above_ns, True
        self.barriers: list[bool] = []
        self.rows: list[list[int]] = []

    def add_wave(self, wave: Sequence[Command], *, barrier: bool) -> None:
        """The rows of a wave; with `barrier` one stands before it, unless thread 0 alone runs it and what came
        before."""
        alone = self._alone(wave)
        self.rows += self._share_wave(wave, 1 if alone else self.threads)
        self.barriers += [barrier and not (alone and self.was_alone)]
        self.barriers += [False] * (len(self.rows) - len(self.barriers))
        self.was_alone = alone

    def add_loop(self, loop: Loop) -> None:
        """The rows of a loop: its own, and those of its waves, the first of which follows the last of the iteration
        before."""
        waves = list(_waves(loop.commands))
        self.rows.append([0] * (2 * self.threads))
        self.barriers.append(loop.barrier and not (self.was_alone and self._alone(waves[0])))
        self.was_alone = self._alone(waves[-1])
        for wave in waves:
            self.add_wave(wave, barrier=wave is waves[0] or wave[0].barrier)

    def _alone(self, wave: Sequence[Command]) -> bool:
        return sum(cost_ns(command, self.evaluate) for command in wave) < self.split_above_ns

    def _share_wave(self, wave: Sequence[Command], most: int) -> Iterator[list[int]]:
        """For each row the first workgroup of each thread and the one behind its last."""
        loads = [0.0] * self.threads
        for command in wave:
            participants = min(most, command.max_threads or most)
            taking = range(most) if participants == most else sorted(_least(loads, range(most), participants))
            grids = [self._grid(arm) for arm in command.arms]
            dearest_first = sorted(range(len(grids)), key=lambda i: -grids[i].workgroup_ns)
            shared = {arm: _share(grids[arm], taking, loads) for arm in dearest_first}
            yield from (shared[arm] for arm in range(len(shared)))

    def _grid(self, arm: Arm) -> _Grid:
        workgroups = workgroups_of(arm, self.evaluate)
        return _Grid(workgroups, max(self.evaluate(arm.cost_ns), 1) / max(workgroups, 1))


def _segments(steps: Sequence[Command | Loop]) -> Iterator[Sequence[Command] | Loop]:
    """The waves and loops in order."""
    for is_loop, group in groupby(steps, lambda step: isinstance(step, Loop)):
        found: list[Any] = list(group)
        yield from found if is_loop else _waves(found)


def _waves(commands: Sequence[Command]) -> Iterator[Sequence[Command]]:
    starts = [i for i, command in enumerate(commands) if command.barrier and i]
    for start, end in pairwise([0, *starts, len(commands)]):
        if start < end:
            yield commands[start:end]


class _Grid(NamedTuple):
    """The grid of an arm, and what one workgroup of it costs."""

    workgroups: int
    workgroup_ns: float


def _share(grid: _Grid, taking: Sequence[int], loads: list[float]) -> list[int]:
    """An equal share for each thread of `taking`, and what is left over to those with the least `loads`, which grow.

    Threads take their ranges in order, so that neighbours in a grid are often on the thread that had them in the last
    one.
    """
    quotient, remainder = divmod(grid.workgroups, len(taking))
    extra = set(_least(loads, taking, remainder)) if remainder else set[int]()
    at, ranges = 0, [0] * (2 * len(loads))
    for thread in taking:
        count = quotient + (thread in extra)
        ranges[2 * thread : 2 * thread + 2] = at, at + count
        loads[thread] += count * grid.workgroup_ns
        at += count
    return ranges


def _least(loads: Sequence[float], taking: Sequence[int], count: int) -> list[int]:
    return sorted(taking, key=loads.__getitem__)[:count]
