"""Stamps stand around every command, and change nothing else of a table."""

from __future__ import annotations

from itertools import pairwise

import numpy as np
import pytest

from fuseline.errors import FuselineError
from fuseline.runtime import stamps
from fuseline.runtime.program import Arm, Command, Loop
from fuseline.runtime.sharing import rows_of, share_grids
from fuseline.runtime.sizes import SizeEvaluator
from fuseline.runtime.stamps import Clock, StampedTable, stamp_code

EVALUATE = SizeEvaluator({})


def _command(workgroups: int, *, barrier: bool = False, arms: int = 1) -> Command:
    return Command((Arm(0, (), (), workgroups, 10_000),) * arms, barrier)


STEPS = [
    _command(5),
    _command(3, barrier=True, arms=2),
    Loop(4, (_command(2), _command(7, barrier=True)), barrier=True),
]


def _table(threads: int) -> StampedTable:
    shares = share_grids(STEPS, threads, EVALUATE)
    return StampedTable(STEPS, shares, threads, EVALUATE, stamp_code().base)


@pytest.mark.parametrize("threads", [1, 2, 3])
def test_the_rows_of_a_program_keep_their_shares_and_are_found(threads: int) -> None:
    table, given = _table(threads), share_grids(STEPS, threads, EVALUATE)
    count = len(list(rows_of(STEPS)))
    before = {table.rows(row, count)[0] for row in range(count)}
    assert table.rows(0, count) == (0, len(list(rows_of(table.steps))))
    assert len(before) == count
    kept = [row for row, arm in enumerate(rows_of(table.steps)) if isinstance(arm, Loop) or arm.bindings == ()]
    assert np.array_equal(table.shares.ranges[:, kept], given.ranges)


@pytest.mark.parametrize("threads", [2, 3])
def test_a_barrier_stands_before_the_stamp_that_begins(threads: int) -> None:
    table, given = _table(threads), share_grids(STEPS, threads, EVALUATE)
    assert sum(table.shares.barriers) == sum(given.barriers)
    for row, (arm, barrier) in enumerate(zip(rows_of(table.steps), table.shares.barriers, strict=True)):
        is_stamp = isinstance(arm, Arm) and arm.bindings != ()
        assert is_stamp or isinstance(arm, Loop) or not barrier, row


@pytest.mark.parametrize("threads", [1, 2])
def test_every_moment_of_every_iteration_has_a_word_of_its_own(threads: int) -> None:
    table = _table(threads)
    words = len(table.room.last_run()[0][0]) if table.room.begin_run() else 0
    numbered = np.arange(words)
    parts = [table.of(stamped, numbered) for stamped in table.stamped]
    assert [part.shape for part in parts] == [(1, 2, threads)] * 2 + [(4, 2, threads)] * 2
    assert sorted({word for part in parts for word in part.ravel().tolist()}) == numbered.tolist()


def test_a_command_begins_with_the_end_of_the_one_before_where_nothing_is_in_between() -> None:
    steps = [_command(2), _command(3), Loop(4, (_command(2), _command(7))), _command(1), _command(2)]
    shares = share_grids(steps, 1, EVALUATE)
    for starts, expected in (((), [1, 3, 5]), ((1, 6), [3])):
        found = StampedTable(steps, shares, 1, EVALUATE, 0, starts).stamped
        assert [n for n, (a, b) in enumerate(pairwise(found), 1) if a.end == b.begin] == expected
        assert all(one.end > one.begin for one in found)


def test_each_run_has_words_of_its_own_that_are_zero() -> None:
    room, seen = stamps.Room(3), set[int]()
    for _ in range(2 + stamps._BLOCK_WORDS // 3):  # pyright: ignore[reportPrivateUsage]
        address = room.begin_run()
        block, slot = room.last_run()
        assert block[slot].ctypes.data == address and not block[slot].any()
        block[slot] = 7
        seen.add(slot)
    assert 0 in seen and len(seen) == stamps._BLOCK_WORDS // 3  # pyright: ignore[reportPrivateUsage]


def test_a_thread_without_workgroups_has_no_part() -> None:
    table = StampedTable([_command(1)], share_grids([_command(1)], 2, EVALUATE), 2, EVALUATE, 0)
    assert sorted(table.stamped[0].threads) == [False, True]


def test_too_many_moments_are_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(stamps, "MOST_STAMPS", 10)
    with pytest.raises(FuselineError, match="more than 10") as caught:
        _table(2)
    assert caught.value.code == "E0405"


def test_a_machine_without_a_known_counter_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(stamps.platform, "machine", lambda: "riscv64")
    with pytest.raises(FuselineError, match="riscv64") as caught:
        stamp_code.__wrapped__()
    assert caught.value.code == "E0501"


def test_the_clock_turns_ticks_into_nanoseconds_of_python() -> None:
    clock = Clock()
    first = clock._first  # pyright: ignore[reportPrivateUsage]
    clock.settle()
    last = clock._last  # pyright: ignore[reportPrivateUsage]
    assert last[1] - first[1] >= Clock.LEAST_NS
    middle = np.array([first[0], (first[0] + last[0]) // 2, last[0]])
    found = clock.ns(middle)
    assert found[0] == first[1] and abs(found[2] - last[1]) <= 1
    assert abs(found[1] - (first[1] + last[1]) / 2) < 1000
