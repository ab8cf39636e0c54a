"""Time stamps in a command table: rows that launch nothing but a look at the clock, in front of each command and behind
it. The table says all that is needed, so that programs and their code stay as they are, and a run without stamps costs
what it always did.

    rows      begin 0 | command 0 | end 0 | begin 1 | command 1 | end 1 | command 2 | end 2
    barrier      x                             x
                                                                         each thread stamps a word of its own

A barrier stands before the stamp, so end 0 to begin 1 is what a thread waits. Where there is none and nothing happens
in between, the end of a command is the beginning of the next. In a loop the words of an iteration lie behind those of
the one before. Every run has words of its own, made ahead and zero: nothing is copied or cleared while runs go on.
"""

from __future__ import annotations

import ctypes
import platform
import time
from collections.abc import Collection, Iterator, Sequence
from functools import cache
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from fuseline.buffers import BufferRef, LoopOffset
from fuseline.errors import FuselineError
from fuseline.runtime.memory import CodePages
from fuseline.runtime.program import Arm, Command, Loop
from fuseline.runtime.sharing import Shares, workgroups_of
from fuseline.runtime.sizes import SizeEvaluator

MOST_STAMPS = 1 << 22
"""Words of stamps that a run may fill (32 MiB)."""

_WORD = 8
_LOOKS = 16
_BLOCK_WORDS = 1 << 16
"""Words that are made at once (512 KiB): many runs of a small program, or one of a large."""

STAMPS = -1
"""The number of the output that stamps go to, as far as a command table knows."""

# A kernel as the scheduler calls it: (bindings*, sizes*, begin, end, scratch*); the clock goes to bindings[0][begin].
_CODE = {
    "x86_64": bytes.fromhex(
        "4989d1"  # mov r9, rdx
        "0f31"  # rdtsc
        "48c1e220"  # shl rdx, 32
        "4809d0"  # or rax, rdx
        "488b3f"  # mov rdi, [rdi]
        "4a8904cf"  # mov [rdi + 8*r9], rax
        "c3"  # ret
    ),
    "aarch64": bytes.fromhex(
        "49e03bd5"  # mrs x9, cntvct_el0
        "0a0040f9"  # ldr x10, [x0]
        "497922f8"  # str x9, [x10, x2, lsl #3]
        "c0035fd6"  # ret
    ),
}


@cache
def stamp_code() -> CodePages:
    """The kernel that stamps, mapped. Raises FuselineError: E0501 for a machine that none is written for, E0405."""
    machine = platform.machine()
    if machine not in _CODE:
        known = ", ".join(_CODE)
        raise FuselineError("E0501", f"no time lines on machine {machine!r}", hint=f"they are written on {known}")
    return CodePages(_CODE[machine], ())


class Clock:
    """Ticks of the processor's steady counter in nanoseconds of `time.perf_counter_ns`, by two looks at both clocks:
    one now, one when `settle` is called. The further apart, the better."""

    LEAST_NS = 20_000_000
    """Between the looks, so that what a look is off (some 100 ns) is a part in 10^5."""

    def __init__(self) -> None:
        self._kernel = ctypes.CFUNCTYPE(None, *[ctypes.c_void_p, ctypes.c_void_p, ctypes.c_int64])(stamp_code().base)
        self._first = self._last = self._look()

    def settle(self) -> None:
        """Look again, not before `LEAST_NS` have gone by."""
        time.sleep(max(0, self._first[1] + self.LEAST_NS - time.perf_counter_ns()) / 1e9)
        self._last = self._look()

    def ns(self, ticks: NDArray[np.int64]) -> NDArray[np.int64]:
        """Nanoseconds of `time.perf_counter_ns` for ticks; `settle` first."""
        (tick, ns), (last_tick, last_ns) = self._first, self._last
        rate = (last_ns - ns) / (last_tick - tick)
        return ((ticks - tick) * rate).astype(np.int64) + ns

    def _look(self) -> tuple[int, int]:
        """Ticks and nanoseconds of one moment: the shortest of several looks."""
        word, looks = np.zeros(1, np.int64), list[tuple[int, int, int]]()
        binding = ctypes.c_void_p(word.ctypes.data)
        for _ in range(_LOOKS):
            before = time.perf_counter_ns()
            self._kernel(ctypes.addressof(binding), 0, 0)
            after = time.perf_counter_ns()
            looks.append((after - before, int(word[0]), (before + after) // 2))
        return min(looks)[1:]


class Stamped(NamedTuple):
    """A command whose beginnings and ends are stamped: the first words of both, how often it runs, which threads have a
    part in it, and whether a barrier stands before it."""

    command: Command
    begin: int
    end: int
    trips: int
    threads: tuple[bool, ...]
    barrier: bool


class Room:
    """Words for the stamps of one run after the other: `begin_run` goes on to the next, all of them zero."""

    def __init__(self, words: int) -> None:
        self._words, self._runs = words, max(1, _BLOCK_WORDS // max(words, 1))
        self._block: NDArray[np.int64] = np.zeros((0, words), np.int64)
        self._slot, self._address = -1, 0

    def begin_run(self) -> int:
        """The address of a run's words."""
        self._slot += 1
        if self._slot >= len(self._block):
            self._block, self._slot = np.zeros((self._runs, self._words), np.int64), 0
            self._address = self._block.ctypes.data - _WORD * self._words
        self._address += _WORD * self._words
        return self._address

    def last_run(self) -> tuple[NDArray[np.int64], int]:
        """The words of some runs, and which of them are the last one's."""
        return self._block, self._slot


class StampedTable:
    """Steps and shares with stamps, for a command table; `room` is where they go.

    Args:
        steps: the commands and loops of a table; shares: how their rows are cut; threads: of a run. code: address of
        the image that kernels are offsets in. starts: rows that a launch may begin at, beside the first.

    Raises FuselineError: E0405 for a run that stamps more than `MOST_STAMPS` words, and what `stamp_code` raises.
    """

    def __init__(
        self,
        steps: Sequence[Command | Loop],
        shares: Shares,
        threads: int,
        evaluate: SizeEvaluator,
        code: int,
        starts: Collection[int] = (),
    ) -> None:
        self.threads, self._kernel, self._given = threads, stamp_code().base - code, shares
        self._row, self._words, self._starts = 0, 0, frozenset(starts)
        self._end: int | None = None  # the stamp behind the command before, where another may begin with it
        self._barriers, self._ranges = list[bool](), list[NDArray[np.int64]]()
        self._row_of, self.stamped = list[int](), list[Stamped]()
        self.steps: list[Command | Loop] = []
        for step in steps:
            self.steps += [self._loop(step, evaluate)] if isinstance(step, Loop) else self._command(step)
        self._row_of.append(len(self._barriers))
        if self._words > MOST_STAMPS:
            message = f"a time line of {self._words} moments is more than {MOST_STAMPS}"
            raise FuselineError("E0405", message, hint="trace a run with smaller sizes")
        ranges = np.array(self._ranges, np.int64).reshape(-1, threads, 2)
        self.shares = Shares(self._barriers, np.ascontiguousarray(ranges.swapaxes(0, 1)))
        self.room = Room(self._words)

    def rows(self, first: int, last: int) -> tuple[int, int]:
        """The rows of this table for those from `first` to `last` of the one without stamps."""
        return self._row_of[first], self._row_of[last]

    def of(self, stamped: Stamped, ticks: NDArray[np.int64]) -> NDArray[np.int64]:
        """What one command has of the words of a run: `[iteration, begin or end, thread]`."""
        count = self.threads * stamped.trips
        parts = [ticks[word : word + count].reshape(stamped.trips, self.threads) for word in stamped[1:3]]
        return np.stack(parts, axis=1)

    # building ---------------------------------------------------------------------------------------------------------

    def _loop(self, loop: Loop, evaluate: SizeEvaluator) -> Loop:
        """The same loop around commands with stamps; its own row has none."""
        trips = workgroups_of(loop, evaluate)
        self._keep_row(self._given.barriers[self._row])
        self._end = None
        commands = [inner for command in loop.commands for inner in self._command(command, trips)]
        self._end = None
        return loop._replace(commands=tuple(commands))

    def _command(self, command: Command, trips: int | None = None) -> Iterator[Command]:
        """A command between its stamps; `trips`: of the loop that it is in."""
        first, last = self._row, self._row + len(command.arms)
        participates, barrier = (self._cut(first, last) > 0).tolist(), self._given.barriers[first]
        starts, begin = len(self._barriers), self._end
        if begin is None or barrier or first in self._starts:
            begin = self._words
            yield self._stamp(trips, barrier=barrier)
        for _ in command.arms:
            self._keep_row(barrier=False)
        self._row_of[first] = starts  # whoever runs the command runs its stamps
        yield command
        self._end = self._words
        yield self._stamp(trips, barrier=False)
        count = 1 if trips is None else trips
        self.stamped.append(Stamped(command, begin, self._end, count, tuple(participates), barrier))

    def _cut(self, first: int, last: int) -> NDArray[np.int64]:
        """How many workgroups each thread has in these rows."""
        found = self._given.ranges[:, first:last]
        return (found[..., 1] - found[..., 0]).sum(axis=1)

    def _keep_row(self, barrier: bool) -> None:
        self._row_of.append(len(self._barriers))
        self._barriers.append(barrier)
        self._ranges.append(self._given.ranges[:, self._row])
        self._row += 1

    def _stamp(self, trips: int | None, *, barrier: bool) -> Command:
        """A command that stamps: thread `t` has workgroup `t` of it. Its words are the next ones."""
        ref = BufferRef("output", STAMPS, _WORD * self._words)
        moves = () if trips is None else (LoopOffset(_WORD * self.threads),)
        self._barriers.append(barrier)
        self._ranges.append(np.array([[t, t + 1] for t in range(self.threads)], np.int64))
        self._words += self.threads * (1 if trips is None else trips)
        return Command((Arm(self._kernel, (ref,), (), self.threads, 0, moves),))
