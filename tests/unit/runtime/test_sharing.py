"""Cutting grids: every workgroup once, barriers only where threads change hands."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from fuseline.runtime.sharing import Grid, Share, share_grids

GRIDS = st.lists(st.builds(Grid, st.integers(0, 9), st.integers(0, 100), st.integers(0, 3), st.booleans()), max_size=12)


def _threads_of(grid: Grid, share: Share, threads: int) -> dict[int, int]:
    """Workgroups by thread, as the scheduler cuts them."""
    quotient, remainder = divmod(grid.workgroups, share.participants)
    counts = {(share.first + r) % threads: quotient + (r < remainder) for r in range(share.participants)}
    return {thread: count for thread, count in counts.items() if count}


@given(GRIDS, st.integers(1, 5), st.integers(0, 200))
def test_every_workgroup_runs_once(grids: list[Grid], threads: int, split_above: int) -> None:
    for grid, share in zip(grids, share_grids(grids, threads, split_above), strict=True):
        assert 1 <= share.participants <= threads and 0 <= share.first < threads
        assert sum(_threads_of(grid, share, threads).values()) == grid.workgroups
        assert not grid.max_threads or share.participants <= grid.max_threads


@given(GRIDS, st.integers(1, 5), st.integers(0, 200))
def test_a_dropped_barrier_had_one_thread_on_both_sides(grids: list[Grid], threads: int, split_above: int) -> None:
    shares = share_grids(grids, threads, split_above)
    since: set[int] = set()  # threads at work since the last barrier that was kept
    wave: list[set[int]] = []
    for grid, share in zip(grids, shares, strict=True):
        used = set(_threads_of(grid, share, threads))
        if share.barrier:
            since, wave = set(), []
        elif grid.barrier:
            wave = [since]
        if wave:  # this wave relies on program order alone
            assert used <= {0} and since <= {0}
        since |= used


def test_small_grids_spread() -> None:
    shares = share_grids([Grid(1), Grid(1), Grid(3), Grid(1)], 2)
    assert [share.first for share in shares] == [0, 1, 0, 1]


def test_waves_start_at_the_first_thread() -> None:
    assert [share.first for share in share_grids([Grid(1), Grid(2, barrier=True)], 2)] == [0, 0]


def test_chains_of_tiny_waves_need_no_barrier() -> None:
    tiny, large = Grid(4, 10, 0, True), Grid(4, 1000, 0, True)
    shares = share_grids([tiny, tiny, large, tiny, tiny], 2, 100)
    assert [share.barrier for share in shares] == [False, False, True, True, False]
    assert [share.participants for share in shares] == [1, 1, 2, 1, 1]
