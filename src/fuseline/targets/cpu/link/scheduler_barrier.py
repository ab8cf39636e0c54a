"""How the scheduler's threads wait for each other: `wait`, `signal`, and the barrier `sync` made of them.

One flag per thread on a line of its own, no read-modify-write; who waits spins shortly, pauses, yields, then sleeps in
a futex.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Any

from fuseline.runtime import abi
from fuseline.targets.cpu.kernel_ir.functions import FunctionBuilder
from fuseline.targets.cpu.kernel_ir.types import I32, I64, PTR, Function, MemRef, Operand, Value

SPINS = 64
"""Loads before the first pause: covers threads that arrive within about 50 ns of each other."""

FEW_THREADS = 4
"""Up to this many threads the barrier is all-to-all."""

WORD = 8
TEAM_WORDS, LINE_WORDS = abi.TEAM_BYTES // WORD, abi.LINE_BYTES // WORD

_FUTEX_WAIT_PRIVATE, _FUTEX_WAKE_PRIVATE = 128, 129
_ALL = 2**31 - 1
_LOW_HALF = 2**32 - 1


def barrier_functions(futex: int) -> Iterator[Function]:
    """The functions of the barrier, for a system whose call number of futex this is."""
    yield _wait(futex)
    yield _signal(futex)
    yield _arrive()
    yield _await_all()
    yield _sync()


def _wait(futex: int) -> Function:
    """`wait(team, flag, want, sleepers)` returns once the flag has reached `want` (difference taken signed)."""
    f = FunctionBuilder("wait", (PTR, PTR, I64, PTR))
    team_pointer, flag_pointer, want, sleepers_pointer = f.parameters
    team, flag, sleepers = f.words(team_pointer, TEAM_WORDS), f.words(flag_pointer, 1), f.words(sleepers_pointer, 1)

    def is_early(now: Value) -> Value:
        return f.compare("lt", f.sub(now, want), 0)

    def attempts(limit: Operand, act: Callable[[], Any], early: Value) -> Value:
        """Whether it is still early after so many more looks at the flag."""

        def again(i: Value, early: Value) -> Value:
            return f.bitand(early, f.compare("lt", i, limit))

        def look(i: Value, _: Value) -> Sequence[Operand]:
            act()
            return f.add(i, 1), is_early(f.atomic_load(flag, "acquire"))

        return f.while_(again, look, (0, early))[1]

    def sleep(_: Value) -> Sequence[Operand]:
        f.atomic("add", sleepers, 1)
        now = f.atomic_load(flag, "seq_cst")
        low = f.bitand(now, _LOW_HALF)
        f.when(is_early(now), lambda: _system_call(f, team, futex, flag_pointer, _FUTEX_WAIT_PRIVATE, low, 0))
        f.atomic("sub", sleepers, 1)
        return (is_early(f.atomic_load(flag, "acquire")),)

    early = attempts(SPINS, lambda: None, is_early(f.atomic_load(flag, "acquire")))
    early = attempts(f.word(team, abi.TEAM_PAUSES), f.pause, early)
    early = attempts(f.word(team, abi.TEAM_YIELDS), lambda: f.call(f.pointer(team, abi.TEAM_YIELD), (), I32), early)
    f.while_(lambda early: early, sleep, (early,))
    return f.finish()


def _signal(futex: int) -> Function:
    """`signal(team, flag, value, sleepers)` sets the flag and wakes whoever sleeps on it. The exchange is a full fence,
    so a sleeper is seen or sees the new value."""
    f = FunctionBuilder("signal", (PTR, PTR, I64, PTR))
    team, flag, value, sleepers = f.parameters
    f.atomic("xchg", f.words(flag, 1), value)
    asleep = f.compare("ne", f.atomic_load(f.words(sleepers, 1), "seq_cst"), 0)
    f.when(asleep, lambda: _system_call(f, f.words(team, TEAM_WORDS), futex, flag, _FUTEX_WAKE_PRIVATE, _ALL))
    return f.finish()


def _system_call(f: FunctionBuilder, team: MemRef, *arguments: Operand) -> None:
    f.call(f.pointer(team, abi.TEAM_SYSCALL), arguments, I64, variadic=True)


def _flag_of(f: FunctionBuilder, team: Value, thread: Operand) -> Value:
    return f.advance(team, f.add(f.mul(thread, abi.LINE_BYTES), abi.TEAM_FLAGS))


def _arrive() -> Function:
    """`arrive(team, thread, generation)` raises the flag of this thread."""
    f = FunctionBuilder("arrive", (PTR, I64, I64))
    team, thread, generation = f.parameters
    f.call("signal", (team, _flag_of(f, team, thread), generation, f.advance(team, abi.TEAM_SLEEPERS)))
    return f.finish()


def _await_all() -> Function:
    """`await_all(team, threads, generation)` waits until the flags of all threads have reached the generation."""
    f = FunctionBuilder("await_all", (PTR, I64, I64))
    team, threads, generation = f.parameters
    sleepers = f.advance(team, abi.TEAM_SLEEPERS)

    def await_one(thread: Operand) -> None:
        flag = _flag_of(f, team, thread)
        missing = f.sub(f.atomic_load(f.words(flag, 1), "acquire"), generation)
        f.when(f.compare("lt", missing, 0), lambda: _nothing(f.call("wait", (team, flag, generation, sleepers))))

    f.loop(0, threads, 1, await_one)
    return f.finish()


def _sync() -> Function:
    """`sync(team, thread, threads, generation)`, the barrier. Few threads watch each other's flags: one hop. Many
    threads would fetch each other's lines n*n times: thread 0 gathers and releases, two hops of n lines each."""
    f = FunctionBuilder("sync", (PTR, I64, I64, I64))
    team, thread, threads, generation = f.parameters
    f.call("arrive", (team, thread, generation))
    release, sleepers = f.advance(team, abi.TEAM_RELEASE), f.advance(team, abi.TEAM_SLEEPERS)
    few = f.compare("le", threads, FEW_THREADS)

    def gather() -> None:
        f.call("await_all", (team, threads, generation))
        f.when(few, lambda: None, lambda: _nothing(f.call("signal", (team, release, generation, sleepers))))

    def follow() -> None:
        f.call("wait", (team, release, generation, sleepers))

    f.when(f.bitor(few, f.compare("eq", thread, 0)), gather, follow)
    return f.finish()


def _nothing(_: Value) -> None:
    """What a call without a result yields."""
