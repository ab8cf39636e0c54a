"""Runs that are interrupted (Ctrl-C, wherever Python looks for it) leave nothing behind: no lock, no memory, no caller
that counts."""

from __future__ import annotations

import dis
import sys
from collections.abc import Callable
from functools import cache
from itertools import pairwise
from types import CodeType, FrameType
from typing import Any

import numpy as np
import pytest

from fuseline.runtime import Session, host
from fuseline.runtime.callers import running
from fuseline.runtime.program import HostCall, Operand
from fuseline.runtime.teams import _teams  # pyright: ignore[reportPrivateUsage]

from .test_concurrency import TWICE, N, _session  # pyright: ignore[reportPrivateUsage]

TRIES = 200


class _Interrupt(BaseException):
    pass


@cache
def _points(code: CodeType) -> frozenset[int]:
    """Offsets in front of which the interpreter looks for signals: behind calls, where a function begins, in loops. It
    looks while it is still at the call: where a `try` ends with it, what is raised behind it is no likeness."""
    bytecode = dis.Bytecode(code)
    instructions = list(bytecode)
    looking = [(one, then.offset) for one, then in pairwise(instructions) if one.opname.startswith(("CALL", "RESUME"))]
    looking += [(one, int(one.argval)) for one in instructions if one.opname.startswith("JUMP_BACKWARD")]
    return frozenset(to for one, to in looking if _handlers(bytecode, one.offset) == _handlers(bytecode, to))


def _handlers(bytecode: Any, offset: int) -> list[Any]:
    """Where an exception goes that the instruction there raises."""
    return [entry for entry in bytecode.exception_entries if entry.start <= offset < entry.end]


def _interrupted(work: Callable[[], object], at: int) -> int:
    """`work`, interrupted at such a point of its own; how many it came to."""
    count = 0

    def trace(frame: FrameType, event: str, argument: object) -> Any:
        nonlocal count
        del argument
        frame.f_trace_opcodes = True
        if event == "opcode" and frame.f_lasti in _points(frame.f_code):
            count += 1
            if count == at:
                raise _Interrupt
        return trace

    before = sys.gettrace()
    sys.settrace(trace)
    try:
        work()
    except _Interrupt:
        assert count == at
    finally:
        sys.settrace(before)
    return count


def _check_nothing_is_left(session: Session) -> None:
    pool = session._pool  # pyright: ignore[reportPrivateUsage]
    assert not running
    assert not any(team.lock.locked() for team in _teams)
    assert not pool._lock.locked() and not pool._waiting  # pyright: ignore[reportPrivateUsage]
    assert len(pool._made) == len(pool.idle)  # pyright: ignore[reportPrivateUsage]


@pytest.mark.parametrize("opened", [False, True])
@pytest.mark.parametrize("threads", [1, 2])
def test_a_run_that_is_interrupted_anywhere(kit: Any, threads: int, opened: bool) -> None:
    """A session's first run, or one that finds memory and an execution."""
    host.register("test-interrupted", lambda node, inputs: [inputs[0].copy()])
    operand = Operand(TWICE, (N,), "float32")
    first = _session(kit, threads, HostCall("test-interrupted", b"", (operand,), (operand,)))
    x, rng = np.random.default_rng().standard_normal(333).astype(np.float32), np.random.default_rng()
    wanted = first.run({"x": x})["y"]  # there is a team now

    def fresh() -> Session:
        session = Session(first.artifact)
        if opened:
            session.run({"x": x})
        return session

    session = fresh()
    total = _interrupted(lambda: session.run({"x": x}), at=0)
    assert total > 10
    for at in sorted({*range(1, 11), *rng.integers(1, total + 1, TRIES).tolist()}):
        session = fresh()
        _interrupted(lambda session=session: session.run({"x": x}), at)
        _check_nothing_is_left(session)
        np.testing.assert_array_equal(session.run({"x": x})["y"], wanted)
