"""Cores of a machine, held by one worker at a time: what two of them time on one core is not worth having.

    worker 4711  ──holds──>  core 0        a core is held by a socket with its number for a name, which the system frees
    worker 4712  ──holds──>  core 1        when the process ends, however it ends; nothing is left on a disk
    worker 4713  waits

Names of such sockets (the abstract ones of Linux, unix(7)) are seen by all users of a machine, but not from one
container to another.
"""

from __future__ import annotations

import os
import random
import socket
import time
from collections.abc import Callable, Generator, Sequence
from contextlib import contextmanager, suppress

from fuseline.errors import FuselineError
from fuseline.runtime.processors import allowed_processors, core_of, spread

_NAME = "\0fuseline-core-{}"
_PAUSE_SECONDS = 0.02


def physical_cores() -> list[int]:
    """One processor of each core that this process may use, named by the core's lowest processor."""
    return sorted({core_of(processor) for processor in allowed_processors()})


@contextmanager
def held_cores(
    count: int, prefer: Sequence[int] = (), given_up: Callable[[], bool] = lambda: False
) -> Generator[tuple[int, ...]]:
    """`count` processors of cores that no other process of this machine holds, for the time of a `with`; waits for
    them. On fewer cores than that all of them, and more than one processor of some.

    Args:
        prefer: processors that are taken where they are free. given_up: asked between attempts; once true nothing is
        waited for.

    Raises FuselineError: E1103 once given up.
    """
    processors = allowed_processors()
    cores = {processor: core_of(processor) for processor in processors}
    order = spread(processors, cores)
    order.sort(key=lambda processor: processor not in prefer)
    needed = min(count, len(set(cores.values())))
    while True:
        with _hold(list(dict.fromkeys(cores[processor] for processor in order)), needed) as held:
            if held:
                yield tuple(sorted([p for p in order if cores[p] in held][: min(count, len(processors))]))
                return
        if given_up():
            raise FuselineError("E1103", "the work was given up while it waited for a core")
        time.sleep(_PAUSE_SECONDS * random.uniform(0.5, 1.5))  # not in step with others that wait


@contextmanager
def _hold(cores: Sequence[int], needed: int) -> Generator[list[int]]:
    """`needed` of `cores`, the first that are free; none where there are fewer, so that nobody waits holding some."""
    sockets: dict[int, socket.socket] = {}
    try:
        for core in cores:
            if len(sockets) < needed and (found := _taken(core)) is not None:
                sockets[core] = found
        yield list(sockets) if len(sockets) == needed else []
    finally:
        for found in sockets.values():
            found.close()


def _taken(core: int) -> socket.socket | None:
    found = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
    try:
        found.bind(_NAME.format(core))
    except OSError:
        found.close()
        return None
    return found


@contextmanager
def pinned(processors: Sequence[int]) -> Generator[None]:
    """Run this thread, and the threads and processes that it starts, on `processors` only."""
    if not hasattr(os, "sched_setaffinity"):
        yield
        return
    before = os.sched_getaffinity(0)
    os.sched_setaffinity(0, processors)
    try:
        yield
    finally:
        with suppress(OSError):  # the system may have taken a processor away meanwhile
            os.sched_setaffinity(0, before)
