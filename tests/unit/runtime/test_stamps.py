"""Stamps stand around every command, and change nothing else of a table."""

from __future__ import annotations

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
def test_every_command_of_every_iteration_has_words_of_its_own(threads: int) -> None:
    table = _table(threads)
    numbered = np.arange(len(table.ticks))
    parts = [table.of(stamped, numbered) for stamped in table.stamped]
    assert [part.shape for part in parts] == [(1, 2, threads)] * 2 + [(4, 2, threads)] * 2
    assert sorted(np.concatenate([part.ravel() for part in parts]).tolist()) == numbered.tolist()


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
