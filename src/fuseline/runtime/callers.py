"""The threads of this process that are in a run, and what each may take of the processors."""

from __future__ import annotations

import os

running: set[int] = set()
"""The identifiers of the threads that are in a run. Who enters adds its own within the `try` that takes it out again,
the outermost run of a thread alone (an operator of the host may run another program), so that an interrupted run counts
no longer."""


def fair_threads(wanted: int, processors: int, callers: int | None = None) -> int:
    """Threads for a run that would take `wanted` if it were alone: with several callers an equal part of the
    processors, rounded down to a power of two so that few shares of grids are ever worked out.

    >>> [fair_threads(16, 16, callers) for callers in (1, 2, 3, 8, 16, 40)]
    [16, 8, 4, 2, 1, 1]
    """
    many = len(running) if callers is None else callers
    if many <= 1:
        return wanted
    share = max(processors // many, 1)
    return min(wanted, 1 << (share.bit_length() - 1))


os.register_at_fork(after_in_child=running.clear)  # runs of the parent's other threads do not go on in a child
