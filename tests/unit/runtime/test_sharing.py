"""Cutting grids: every workgroup once, equal cost for all threads, barriers only where threads change hands."""

from __future__ import annotations

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from fuseline.runtime.program import Arm, Command
from fuseline.runtime.sharing import Shares, share_grids, workgroups_of
from fuseline.runtime.sizes import SizeEvaluator

SIZES = SizeEvaluator({})


def _grid(workgroups: int, cost_ns: int = 0) -> Arm:
    return Arm(0, (), (), workgroups, cost_ns)


ARMS = st.lists(st.builds(_grid, st.integers(0, 9), st.integers(0, 100)), min_size=1, max_size=4).map(tuple)
COMMANDS = st.lists(st.builds(Command, ARMS, st.booleans(), st.integers(0, 3), st.just(""), st.none()), max_size=12)


def _one(workgroups: int, cost_ns: int = 0, *, barrier: bool = False) -> Command:
    return Command((_grid(workgroups, cost_ns),), barrier)


def _shares(commands: list[Command], threads: int, split_above: int = 0) -> Shares:
    return share_grids(commands, threads, SIZES, split_above)


@given(COMMANDS, st.integers(1, 5), st.integers(0, 200))
def test_every_workgroup_runs_once(commands: list[Command], threads: int, split_above: int) -> None:
    barriers, ranges = _shares(commands, threads, split_above)
    grids = [grid for command in commands for grid in command.arms]
    assert len(barriers) == len(grids) and ranges.shape == (threads, len(grids), 2)
    for row, grid in enumerate(grids):
        taken = sorted(workgroup for begin, end in ranges[:, row] for workgroup in range(begin, end))
        assert taken == list(range(workgroups_of(grid, SIZES)))


@given(COMMANDS, st.integers(2, 5))
def test_a_command_keeps_its_limit_of_threads(commands: list[Command], threads: int) -> None:
    ranges, row = _shares(commands, threads).ranges, 0
    for command in commands:
        busy = (ranges[:, row : row + len(command.arms), 0] < ranges[:, row : row + len(command.arms), 1]).any(1)
        assert not command.max_threads or busy.sum() <= command.max_threads
        row += len(command.arms)


@given(COMMANDS, st.integers(1, 5), st.integers(0, 200))
def test_a_dropped_barrier_had_one_thread_on_both_sides(
    commands: list[Command], threads: int, split_above: int
) -> None:
    barriers, ranges = _shares(commands, threads, split_above)
    wanted = [command.barrier and arm == 0 for command in commands for arm in range(len(command.arms))]
    since: set[int] = set()  # threads at work since the last barrier that was kept
    wave: list[set[int]] = []
    for row, (barrier, want) in enumerate(zip(barriers, wanted, strict=True)):
        assert want or not barrier
        used = {thread for thread, (begin, end) in enumerate(ranges[:, row]) if begin < end}
        if barrier:
            since, wave = set(), []
        elif want:
            wave = [since]
        if wave:  # this wave relies on program order alone
            assert used <= {0} and since <= {0}
        since |= used


@given(COMMANDS, st.integers(1, 5))
def test_every_thread_gets_an_equal_share_of_every_arm(commands: list[Command], threads: int) -> None:
    ranges, row = _shares(commands, threads).ranges, 0
    for command in commands:
        for grid in command.arms:
            counts = sorted(ranges[:, row, 1] - ranges[:, row, 0])[-(command.max_threads or threads) :]
            assert max(counts) - min(counts) <= 1 and sum(counts) == grid.workgroups
            row += 1


@given(
    st.lists(st.builds(_grid, st.integers(1, 40), st.integers(1, 1000)), min_size=2, max_size=6).map(tuple),
    st.integers(2, 6),
)
def test_threads_differ_by_the_dearest_workgroup_at_most(arms: tuple[Arm, ...], threads: int) -> None:
    ranges = _shares([Command(arms)], threads).ranges
    each = np.array([SIZES(grid.cost_ns) / SIZES(grid.workgroups) for grid in arms])
    costs = ((ranges[..., 1] - ranges[..., 0]) * each).sum(1)
    assert max(costs) - min(costs) <= max(each) + 1e-6


def test_an_arm_nine_times_as_dear() -> None:
    ranges = _shares([Command((_grid(1, 1), _grid(9, 9)))], 2).ranges
    assert (ranges[..., 1] - ranges[..., 0]).tolist() == [[1, 4], [0, 5]]


def test_dear_workgroups_are_dealt_out_first() -> None:
    ranges = _shares([Command((_grid(1, 4), _grid(1, 3), _grid(1, 9)))], 2).ranges
    assert (ranges[..., 1] - ranges[..., 0]).tolist() == [[0, 0, 1], [1, 1, 0]]


def test_a_single_grid_is_cut_evenly() -> None:
    assert _shares([_one(7)], 3).ranges[:, 0].tolist() == [[0, 3], [3, 5], [5, 7]]


def test_small_grids_spread() -> None:
    ranges = _shares([_one(1), _one(1), _one(3), _one(1)], 2).ranges
    assert (ranges[..., 1] - ranges[..., 0]).tolist() == [[1, 0, 2, 0], [0, 1, 1, 1]]


def test_waves_start_at_the_first_thread() -> None:
    ranges = _shares([_one(1), _one(3, barrier=True)], 2).ranges
    assert ranges[:, 1].tolist() == [[0, 2], [2, 3]]


def test_chains_of_tiny_waves_need_no_barrier() -> None:
    tiny, large = _one(4, 10, barrier=True), _one(4, 1000, barrier=True)
    barriers, ranges = _shares([tiny, tiny, large, tiny, tiny], 2, 100)
    assert barriers == [False, False, True, True, False]
    assert (ranges[1, :, 1] > ranges[1, :, 0]).tolist() == [False, False, True, False, False]
