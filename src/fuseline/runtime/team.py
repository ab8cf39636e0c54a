"""A team: native worker threads and the state they share with the scheduler. Layouts:
`fuseline.runtime.abi`."""

from __future__ import annotations

import ctypes
import os
import signal
import threading
from collections.abc import Generator
from contextlib import contextmanager

from fuseline.errors import FuselineError
from fuseline.runtime import abi
from fuseline.runtime.memory import CodePages, libc_address, map_pages
from fuseline.runtime.processors import allowed_processors, core_of, spread

PAUSES = 1000
"""Pauses before a waiting thread starts to yield: about 20 to 40 us, the time Python needs between two runs."""

YIELDS = 100
"""Yields before a waiting thread sleeps; a wake from sleep costs about 28 us."""

_STACK_BYTES = 2 << 20

_libc = ctypes.CDLL(None)


class Team:
    """Workers that help the calling thread. `lock` must be held around a run of more than one thread.

    Args:
        code: the image whose scheduler the workers run; it stays mapped for good. worker: offset of the worker entry in
        that image (bytes). pin: give each worker one processor of the process's affinity mask, on cores of their own as
        far as there are enough. The caller is
            never pinned: a run leaves out the worker that shares the caller's core (there is one more worker than
            needed).
    """

    def __init__(self, code: CodePages, worker: int, *, pin: bool) -> None:
        self.lock = threading.Lock()
        self.pin = pin and hasattr(os, "sched_getaffinity")
        code.keep()
        self._entry = code.base + worker
        self._workers = self._threads = 0
        allowed = allowed_processors()
        self._cores = {processor: core_of(processor) for processor in allowed}
        self._order = spread(allowed, self._cores)
        self.address = map_pages(abi.TEAM_BYTES)
        self._write(abi.TEAM_YIELDS, YIELDS)
        self._write(abi.TEAM_SYSCALL, libc_address("syscall"))
        self._write(abi.TEAM_YIELD, libc_address("sched_yield"))
        self._write(abi.TEAM_GETCPU, libc_address("sched_getcpu") if self.pin else 0)
        self._write(abi.TEAM_PLACES, map_pages(8 * (max(allowed) + 1)))
        self._write(abi.TEAM_PLACE_COUNT, max(allowed) + 1)

    def _write(self, offset: int, value: int) -> None:
        ctypes.c_int64.from_address(self.address + offset).value = value

    def _read(self, offset: int) -> int:
        return ctypes.c_int64.from_address(self.address + offset).value

    def ensure(self, threads: int) -> None:
        """Be ready for a run of `threads` threads; call with `lock` held. Raises FuselineError (E0405) where a worker
        cannot be made."""
        if threads == self._threads:
            return
        self._write(
            abi.TEAM_PAUSES, PAUSES if threads <= len(self._order) else 0
        )  # who waits must not keep the others from a processor
        wanted = threads if self.pin else threads - 1
        with _signals_blocked():
            while self._workers < wanted:
                self._start(self._workers)
                self._workers += 1
        self._write(abi.TEAM_WORKERS, self._workers)
        if self.pin:
            self._write_places(threads)
        self._threads = threads

    def _processor(self, number: int) -> int:
        return self._order[number % len(self._order)]

    def _write_places(self, threads: int) -> None:
        """A run with a core for every thread keeps off the caller's core; a wider one only off the caller's
        processor."""
        by_core = threads <= len(set(self._cores.values()))
        places = {processor: core if by_core else processor for processor, core in self._cores.items()}
        table = self._read(abi.TEAM_PLACES)
        for processor in range(self._read(abi.TEAM_PLACE_COUNT)):
            ctypes.c_int64.from_address(table + 8 * processor).value = places.get(processor, -1)
        for number in range(self._workers):
            self._write(_line(number) + abi.WORKER_PLACE, places[self._processor(number)])

    def _start(self, number: int) -> None:
        line = _line(number)
        self._write(line + abi.WORKER_PLACE, -3)
        self._write(line + abi.WORKER_TEAM, self.address)
        handle = ctypes.c_ulong()
        with _small_stack() as attributes:
            status = _libc.pthread_create(
                ctypes.byref(handle), attributes, ctypes.c_void_p(self._entry), ctypes.c_void_p(self.address + line)
            )
        if status:
            raise FuselineError(
                "E0405", f"a worker thread cannot be created: {os.strerror(status)}", hint="run with fewer threads"
            )
        if self.pin:
            _pin(handle, self._processor(number))


def _line(number: int) -> int:
    """Offset of a worker's words in the team state."""
    return abi.TEAM_LINES + number * abi.LINE_BYTES


def _pin(handle: ctypes.c_ulong, cpu: int) -> None:
    """Best effort: a container may forbid it, and then the thread merely floats."""
    mask = (1 << cpu).to_bytes(max(128, cpu // 64 * 8 + 8), "little")
    _libc.pthread_setaffinity_np(handle, ctypes.c_size_t(len(mask)), mask)


@contextmanager
def _signals_blocked() -> Generator[None]:
    """Threads inherit the mask: workers must leave every signal to Python's threads."""
    old = signal.pthread_sigmask(signal.SIG_BLOCK, signal.valid_signals())
    try:
        yield
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, old)


@contextmanager
def _small_stack() -> Generator[ctypes.Array[ctypes.c_char]]:
    attributes = ctypes.create_string_buffer(256)
    _libc.pthread_attr_init(attributes)
    _libc.pthread_attr_setdetachstate(attributes, 1)
    _libc.pthread_attr_setstacksize(attributes, ctypes.c_size_t(_STACK_BYTES))
    try:
        yield attributes
    finally:
        _libc.pthread_attr_destroy(attributes)
