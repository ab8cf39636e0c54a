"""The threads of this process that are in a run, and what each may take of the processors."""

from __future__ import annotations

import os
from threading import get_ident

_callers: set[int] = set()


def enter() -> int:
    """This thread is in a run from now on: its number for `leave`, or 0 where it was in one before (an operator of the
    host may run another program)."""
    caller = get_ident()
    if caller in _callers:
        return 0
    _callers.add(caller)
    return caller


def leave(caller: int) -> None:
    """The outermost run of the thread of this number has ended."""
    _callers.discard(caller)


def fair_threads(wanted: int, processors: int, callers: int | None = None) -> int:
    """Threads for a run that would take `wanted` if it were alone: with several callers an equal part of the
    processors, rounded down to a power of two so that few shares of grids are ever worked out.

    >>> [fair_threads(16, 16, callers) for callers in (1, 2, 3, 8, 16, 40)]
    [16, 8, 4, 2, 1, 1]
    """
    many = len(_callers) if callers is None else callers
    if many <= 1:
        return wanted
    part = max(processors // many, 1)
    return min(wanted, 1 << (part.bit_length() - 1))


os.register_at_fork(after_in_child=_callers.clear)  # runs of the parent's other threads do not go on in a child
