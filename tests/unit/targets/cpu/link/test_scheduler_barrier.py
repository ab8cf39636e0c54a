"""How threads wait for each other: the functions of the barrier, evaluated, with other threads as what calls of the
system do."""

from __future__ import annotations

from typing import Any

import pytest

from fuseline.runtime import abi
from fuseline.targets.cpu.link.scheduler_barrier import FEW_THREADS, SPINS
from tests.unit.targets.cpu.link.threads import FUTEX, Team


def test_a_flag_that_is_up_needs_no_waiting() -> None:
    team = Team()
    team[team.flag(1)] = 5
    team.wait(5)
    team.wait(4)
    assert team.yields == 0 and team.calls == []


@pytest.mark.parametrize("after", [1, 3])
def test_who_waits_yields_before_it_sleeps(after: int) -> None:
    team = Team()

    def other() -> None:
        if team.yields == after:
            team[team.flag(1)] = 9

    team.on_yield = other
    team.wait(9)
    assert team.yields == after and team.calls == []


def test_who_waits_long_sleeps_until_the_flag_is_up() -> None:
    """It sleeps on the value that it has seen, is counted meanwhile, and looks again when it wakes for nothing."""
    team, sleepers = Team(), list[int]()

    def other() -> None:
        sleepers.append(team[abi.TEAM_SLEEPERS])
        team[team.flag(1)] += 1

    team.on_syscall = other
    team[team.flag(1)] = 2**32 + 6
    team.wait(2**32 + 8)
    flag = team.address + team.flag(1)
    assert team.calls == [(FUTEX, flag, 128, low, 0) for low in (6, 7)]
    assert team.yields == 4 and sleepers == [1, 1] and team[abi.TEAM_SLEEPERS] == 0


def test_looks_are_bounded_by_spins_pauses_and_yields(monkeypatch: pytest.MonkeyPatch) -> None:
    from tests.kernel_ir import evaluate_functions as interpreter

    operations: dict[str, Any] = vars(interpreter)["_OPS"]
    looks, real = list[str](), dict(operations)
    for name in ("atomic_load", "pause"):
        monkeypatch.setitem(operations, name, lambda r, v: (looks.append(v.op), real[v.op](r, v))[1])
    team = Team(pauses=3, yields=2)
    team.on_syscall = lambda: team.__setitem__(team.flag(1), 1)
    team.wait(1)
    assert looks.count("pause") == 3 and looks.count("atomic_load") == 1 + SPINS + 3 + 2 + 2  # two around the sleep


@pytest.mark.parametrize("asleep", [0, 2])
def test_a_signal_wakes_only_who_sleeps(asleep: int) -> None:
    team = Team()
    team[abi.TEAM_SLEEPERS] = asleep
    team.call("arrive", 2, 7)
    flag = team.address + team.flag(2)
    assert team[team.flag(2)] == 7 and team.calls == ([(FUTEX, flag, 129, 2**31 - 1)] if asleep else [])


@pytest.mark.parametrize("threads", [2, FEW_THREADS, FEW_THREADS + 1])
@pytest.mark.parametrize("thread", [0, 1])
def test_few_threads_watch_all_flags_many_the_first_one(threads: int, thread: int) -> None:
    team = Team(pauses=0, yields=10**6)
    gathers = thread == 0 or threads <= FEW_THREADS
    raised: list[int] = []

    def other() -> None:  # one thread more arrives, the last of them first; then, where that is asked for, the release
        missing = [t for t in range(threads) if team[team.flag(t)] < 3]
        if missing and gathers:
            raised.append(missing[-1])
            team[team.flag(missing[-1])] = 3
        else:
            team[abi.TEAM_RELEASE] = 3

    team.on_yield = other
    team.call("sync", thread, threads, 3)
    assert team[team.flag(thread)] == 3
    assert raised == ([t for t in reversed(range(threads)) if t != thread] if gathers else [])
    assert team[abi.TEAM_RELEASE] == (3 if threads > FEW_THREADS else 0)
