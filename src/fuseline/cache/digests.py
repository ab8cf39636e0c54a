"""Digests of files; a file that the file system says is unchanged is not read again, as in git's index and ccache.

What is remembered of a file goes by device, inode, size and both times: a change within the clock's grain could keep
them all, so a file that changed a moment ago is read each time (git calls that "racily clean").
"""

from __future__ import annotations

import hashlib
import os
import time
from contextlib import suppress
from pathlib import Path

from fuseline.cache.folder import private_folder
from fuseline.errors import FuselineError
from fuseline.runtime.files import write_file

GRAIN_SECONDS = 2.0
"""A file whose times are older than this has been seen by its present content: file systems count in 1 s or less, FAT
in 2."""


def identity(status: os.stat_result) -> list[int]:
    """What changes when a file's content does: device, inode, size, time of content, time of the inode."""
    return [status.st_dev, status.st_ino, status.st_size, status.st_mtime_ns, status.st_ctime_ns]


def file_digest(path: str | os.PathLike[str]) -> str:
    """SHA-256 of a file's content. Raises OSError where it cannot be read."""
    with open(path, "rb") as file:
        status = os.fstat(file.fileno())
        memory = _memory(status)
        known = None if memory is None else _remembered(memory)
        if known is not None:
            return known
        digest = hashlib.file_digest(file, "sha256").hexdigest()
        if memory is not None and identity(os.fstat(file.fileno())) == identity(status):
            with suppress(FuselineError):
                write_file(memory, lambda out: out.write(digest.encode()), durable=False)
    return digest


def _memory(status: os.stat_result) -> Path | None:
    """Where the digest of a file with this status is remembered; None for one that changed a moment ago, and where
    there is no place for it."""
    if not max(status.st_mtime, status.st_ctime) < time.time() - GRAIN_SECONDS:
        return None
    name = hashlib.sha256(repr(identity(status)).encode()).hexdigest()
    with suppress(OSError):
        return private_folder("models") / name
    return None


def _remembered(memory: Path) -> str | None:
    with suppress(OSError, ValueError):
        text = memory.read_bytes().decode("ascii")
        if len(text) == 2 * hashlib.sha256().digest_size and int(text, 16) >= 0:
            return text
    return None
