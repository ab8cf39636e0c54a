"""A program that is being made is made once: who wants the same one meanwhile waits for it.

    process a ──holds <key>.lock──> compiles ──> keeps <key>.fuse ──> lets go
    process b                       waits ..........................> finds <key>.fuse

The lock goes with the process (`file_lock.py`), and then the next one compiles.
"""

from __future__ import annotations

import os
import time
from collections.abc import Generator
from contextlib import contextmanager, suppress
from pathlib import Path

from fuseline.cache.file_lock import locks
from fuseline.cache.folder import private_folder

LONGEST_SECONDS = 300.0
"""After which somebody who may be stopped or stuck is not waited for any more."""

_PAUSE_SECONDS = 0.01


@contextmanager
def in_flight(key: str) -> Generator[bool]:
    """Hold the program `key` while it is made; the value is whether another process or thread held it before: then it
    may be there now. Where nothing can be locked, nobody waits."""
    lock = _lock(key)
    number, waited = (None, False) if lock is None else _held(lock)
    try:
        yield waited
    finally:
        if lock is not None and number is not None:
            with suppress(OSError):
                lock.unlink()  # before it is let go: who gets it then sees that it is gone
            os.close(number)


def _lock(key: str) -> Path | None:
    with suppress(OSError):
        return private_folder("programs") / f"{key}.lock"
    return None


def _held(lock: Path) -> tuple[int | None, bool]:
    """A descriptor that holds the lock, None without one; and whether that was waited for."""
    waited, end = False, time.monotonic() + LONGEST_SECONDS
    while time.monotonic() < end:
        try:
            number = _taken(lock)
        except (OSError, ImportError):  # no place for it; no locks there
            break
        if number is not None:
            return number, waited
        waited = True
        time.sleep(_PAUSE_SECONDS)
    return None, waited


def _taken(lock: Path) -> int | None:
    """A descriptor that holds the lock; None while somebody else does. Raises OSError, and ImportError on a system
    without flock."""
    number = os.open(lock, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
    try:
        if locks(number) and os.path.samestat(os.fstat(number), os.stat(lock)):
            return number
    except FileNotFoundError:  # let go, and its file gone, between the two
        pass
    except (OSError, ImportError):
        os.close(number)
        raise
    os.close(number)
    return None
