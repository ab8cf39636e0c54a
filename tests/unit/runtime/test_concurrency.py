"""Runs side by side: values, memory that is shared out and given back, threads that each takes, runs in the
background."""

from __future__ import annotations

import gc
import os
import threading
import weakref
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import numpy as np
import pytest

from fuseline.buffers import BufferRef, TensorSpec
from fuseline.errors import FuselineError
from fuseline.runtime import Session, host
from fuseline.runtime.callers import fair_threads, running
from fuseline.runtime.execution import Launch, Workspace
from fuseline.runtime.program import HostCall, Operand
from fuseline.runtime.teams import chosen_team
from fuseline.runtime.workspaces import WorkspacePool

X, Y = BufferRef("input", 0), BufferRef("output", 0)
N = ("sum", ((1, "n"),))
GRID = ("sum", ((1, ("div", ("sum", ((1, "n"), (15,))), 16)),))
TWICE = BufferRef("arena", 0, ("sum", ((4, "n"),)))


def _vector(name: str, count: Any) -> TensorSpec:
    return TensorSpec(name, "float32", (count,))


def _session(kit: Any, threads: int, *between: Any) -> Session:
    """`2 x + 1` of a vector of any length: two launches through the arena."""
    commands = [
        kit.command("increment", [X, TWICE], N, GRID),
        *between,
        kit.command("add", [X, TWICE, Y], N, GRID, barrier=True),
    ]
    return Session(
        kit.artifact([_vector("x", N)], [_vector("y", N)], commands, arena_bytes=("sum", ((8, "n"),)), threads=threads)
    )


def _at_once(count: int, work: Callable[[int], Any]) -> list[Any]:
    """What `work` answers for each number, all of them begun at the same time."""
    start = threading.Barrier(count)

    def one(number: int) -> Any:
        start.wait(30)
        return work(number)

    with ThreadPoolExecutor(count) as pool:
        return list(pool.map(one, range(count)))


@pytest.mark.parametrize("threads", [1, 2, 4])
def test_sixteen_threads_on_random_sizes(kit: Any, threads: int) -> None:
    session = _session(kit, threads)
    whole = np.random.default_rng().standard_normal(5000).astype(np.float32)

    def work(seed: int) -> int:
        random, wrong = np.random.default_rng(seed), 0
        for _ in range(40):
            x = whole[: random.integers(1, 5000)]
            wrong += not np.array_equal(session.run({"x": x})["y"], x + (x + 1))
        return wrong

    assert _at_once(16, work) == [0] * 16
    assert len(session._pool.idle) <= len(os.sched_getaffinity(0))  # pyright: ignore[reportPrivateUsage]


def _waiting_for(name: str, together: threading.Barrier) -> HostCall:
    """A step in the middle that ends only once as many runs as the barrier wants have reached it."""

    def wait(node: bytes, inputs: Any) -> list[Any]:
        together.wait(30)
        return [inputs[0].copy()]

    host.register(name, wait)
    operand = Operand(TWICE, (N,), "float32")
    return HostCall(name, b"", (operand,), (operand,))


@pytest.mark.parametrize("threads", [1, 4])
def test_runs_of_one_session_are_under_way_at_once(kit: Any, threads: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """Two that each wait for the other in the middle end, which they could not one after the other."""
    monkeypatch.setattr("fuseline.runtime.session.allowed_processors", lambda: [0, 1])
    session = _session(kit, threads, _waiting_for("test-side-by-side", threading.Barrier(2)))
    x = np.random.default_rng().standard_normal(333).astype(np.float32)
    for answer in _at_once(2, lambda _: session.run({"x": x})["y"]):
        np.testing.assert_array_equal(answer, x + (x + 1))


def test_memory_is_bounded_and_given_back(kit: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("fuseline.runtime.session.allowed_processors", lambda: [0, 1, 2])
    session = _session(kit, 1, _waiting_for("test-bounded", threading.Barrier(3)))
    x = np.ones(10, np.float32)
    _at_once(6, lambda _: session.run({"x": x}))
    pool = session._pool  # pyright: ignore[reportPrivateUsage]
    assert len(pool.idle) == 3
    pool.release(unused_for=3600, keep=1)
    assert len(pool.idle) == 3, "they were in use just now"
    pool.release(keep=1)
    assert len(pool.idle) == 1
    session.release_memory()
    assert not pool.idle
    _at_once(3, lambda _: session.run({"x": x}))
    assert len(pool.idle) == 3


def test_what_nobody_needs_goes_by_itself(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("fuseline.runtime.workspaces.RELEASE_AFTER_S", 0.05)
    pool = WorkspacePool(4)
    taken = [pool.take() for _ in range(4)]
    gone = threading.Event()
    monkeypatch.setattr(pool, "look", lambda look=pool.look: (look(), len(pool.idle) == 1 and gone.set()))
    for workspace in taken:
        pool.give(workspace)
    assert gone.wait(30) and pool.idle == taken[-1:]


def test_who_lost_its_workspace_leaves_room_for_another() -> None:
    """A run that is interrupted before it can give back what it took."""
    pool = WorkspacePool(1)
    for _ in range(3):
        pool.take()
    kept = pool.take()
    pool.give(kept)
    assert pool.idle == [kept] and pool.take() is kept


def test_who_waits_notices_a_workspace_that_is_gone(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("fuseline.runtime.workspaces.LOOK_AGAIN_S", 0.05)
    pool = WorkspacePool(1)
    taken = [pool.take()]
    with ThreadPoolExecutor(1) as waiting:
        another = waiting.submit(pool.take)
        with pytest.raises(TimeoutError):
            another.result(0.2)
        taken.clear()
        assert another.result(30)


def test_memory_that_executions_hold_goes_at_once() -> None:
    """Some know the workspace that they are in; its memory does not wait for the next garbage collection."""
    pool = WorkspacePool(2)
    workspace = pool.take()
    workspace.executions[(), 1] = _Knowing(workspace)
    pool.give(workspace)
    gone = weakref.ref(workspace)
    del workspace
    gc.disable()
    try:
        pool.release()
        assert gone() is None
    finally:
        gc.enable()


class _Knowing:
    threads = 1

    def __init__(self, workspace: Workspace) -> None:
        self.workspace = workspace

    def run(self, launch: Launch, inputs: Sequence[Any]) -> list[Any]:
        raise NotImplementedError


def test_a_run_that_fails_gives_back_what_it_took(kit: Any) -> None:
    def fail(node: bytes, inputs: Any) -> list[Any]:
        if inputs[0].shape == (7,):
            raise FuselineError("E0106", "seven")
        return [inputs[0].copy()]

    host.register("test-sevens", fail)
    operand = Operand(TWICE, (N,), "float32")
    session = _session(kit, 2, HostCall("test-sevens", b"", (operand,), (operand,)))

    def work(number: int) -> str:
        found = ""
        for count in (7, 5 + 10 * number, 7):
            x = np.full(count, number, np.float32)
            try:
                assert np.array_equal(session.run({"x": x})["y"], 2 * x + 1)
            except FuselineError as error:
                found += error.code
        return found

    assert _at_once(16, work) == ["E0106E0106"] * 16
    assert not running, "no run is under way"
    assert fair_threads(8, 8) == 8
    assert len(session._pool.idle) >= 1  # pyright: ignore[reportPrivateUsage]


def test_callers_share_the_processors(kit: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    """Alone a run takes the threads it was compiled for, beside another one half of the processors."""
    monkeypatch.setattr("fuseline.runtime.session.allowed_processors", lambda: [0, 1, 2, 3, 4])
    session, x = _session(kit, 4), np.ones(100, np.float32)
    session.run({"x": x})
    in_a_run, go_on = threading.Event(), threading.Event()

    def another() -> None:
        running.add(threading.get_ident())
        in_a_run.set()
        go_on.wait(30)
        running.discard(threading.get_ident())

    other = threading.Thread(target=another)
    other.start()
    assert in_a_run.wait(30)
    np.testing.assert_array_equal(session.run({"x": x})["y"], x + (x + 1))
    go_on.set()
    other.join()
    (workspace,) = session._pool.idle  # pyright: ignore[reportPrivateUsage]
    assert [execution.threads for execution in workspace.executions.values()] == [4, 2]


def test_a_program_inside_another_one_is_no_second_caller(kit: Any) -> None:
    inner, x = _session(kit, 2), np.ones(100, np.float32)
    callers: list[int] = []

    def nested(node: bytes, inputs: Any) -> list[Any]:
        inner.run({"x": x})
        callers.append(len(running))
        return [inputs[0].copy()]

    host.register("test-nested", nested)
    operand = Operand(TWICE, (N,), "float32")
    outer = _session(kit, 2, HostCall("test-nested", b"", (operand,), (operand,)))
    np.testing.assert_array_equal(outer.run({"x": x})["y"], x + (x + 1))
    assert callers == [1], "the outer run is still under way, and counts once"
    assert not running


def test_teams_are_bounded_and_never_shared(kit: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("fuseline.runtime.teams._teams", [])
    monkeypatch.setattr("fuseline.runtime.teams.allowed_processors", lambda: [0, 1, 2, 3])
    session = _session(kit, 2).open()
    code, worker = session._code.pages, session.artifact.entries["worker"]  # pyright: ignore[reportPrivateUsage]
    third = threading.Event()

    def borrow() -> None:
        team = chosen_team(code, worker, pin=True)
        with team.lock:
            assert team is first
            third.set()

    first = chosen_team(code, worker, pin=True)
    with first.lock:
        second = chosen_team(code, worker, pin=True)
        with second.lock:
            assert first is not second and first.pin and not second.pin
            waiting = threading.Thread(target=borrow)
            waiting.start()
            assert not third.wait(0.1)
    assert third.wait(30)
    waiting.join()


def test_runs_in_the_background(kit: Any) -> None:
    session, random = _session(kit, 2), np.random.default_rng()
    feeds = [random.standard_normal(count).astype(np.float32) for count in random.integers(1, 3000, 64)]
    for x, future in [(x, session.run_async({"x": x})) for x in feeds]:
        np.testing.assert_array_equal(future.result(60)["y"], x + (x + 1))
    problem = session.run_async({}).exception(60)
    assert isinstance(problem, FuselineError) and problem.code == "E0202"
