"""Writing files so that a failure leaves nothing behind: into a temporary file beside the target, then one rename.

What is there and is no file (a device, a pipe) takes the bytes and stays what it is.
"""

from __future__ import annotations

import errno
import os
import shutil
import stat
import tempfile
from collections.abc import Callable, Mapping
from contextlib import suppress
from typing import BinaryIO, TypeAlias

from fuseline.errors import FuselineError

Writer: TypeAlias = Callable[[BinaryIO], object]

_NAME_KEPT = 100
"""Letters of the target's name in that of the temporary file: names have a limit."""


def write_files(writers: Mapping[str | os.PathLike[str], Writer], *, durable: bool = True) -> None:
    """Several files, all of them or none: every one is complete before the first gets its name. Missing folders are
    made.

    Args:
        writers: what writes the content, by path; each is called with a binary file.
        durable: have the content on the disk before the rename, so that not even a power failure leaves half a file.

    Raises FuselineError (E0502) for a place that cannot be written; what a writer raises leaves as it is. Nothing is
    left behind either way.
    """
    written: dict[str, str] = {}
    try:
        for path, write in writers.items():
            target = os.fspath(path)
            written[target] = _written(target, write, durable)
        for target, temporary in written.items():
            _place(temporary, target)
    except OSError as error:
        raise _unwritable(error, next(iter(writers))) from error
    finally:
        for temporary in written.values():
            _remove(temporary)


def write_file(path: str | os.PathLike[str], write: Writer, *, durable: bool = True) -> None:
    """One file, as `write_files` writes it."""
    write_files({path: write}, durable=durable)


def write_bytes(path: str | os.PathLike[str], content: bytes) -> None:
    """A file with this content, as `write_files` writes it."""
    write_file(path, lambda file: file.write(content))


def _written(target: str, write: Writer, durable: bool) -> str:
    """The name of a complete temporary file beside `target`, or where temporary files are if that is no file."""
    folder, name = os.path.split(target)
    if "\0" in target:
        raise OSError(errno.EINVAL, "the name has a zero byte in it", target)
    if not name or os.path.isdir(target):
        raise OSError(errno.EISDIR, "Is a directory", target)
    if folder:
        os.makedirs(folder, exist_ok=True)
    place = tempfile.gettempdir() if _takes_bytes(target) else folder
    temporary = os.path.join(place, f".{name[:_NAME_KEPT]}.{os.getpid()}-{os.urandom(4).hex()}.tmp")
    try:
        with open(temporary, "xb") as file:
            write(file)
            file.flush()
            if durable:
                os.fsync(file.fileno())
    except BaseException:
        _remove(temporary)
        raise
    return temporary


def _place(temporary: str, target: str) -> None:
    """Give the complete file its name, or its bytes to what is there and no file."""
    if not _takes_bytes(target):
        os.replace(temporary, target)
        return
    with open(temporary, "rb") as source, open(target, "wb") as sink:
        shutil.copyfileobj(source, sink)


def _takes_bytes(target: str) -> bool:
    """Whether `target` is a device or a pipe: a rename would put a file in its place."""
    try:
        mode = os.stat(target).st_mode
    except (OSError, ValueError):
        return False
    return not (stat.S_ISREG(mode) or stat.S_ISDIR(mode))


def _remove(path: str) -> None:
    with suppress(OSError, ValueError):
        os.unlink(path)


def _unwritable(error: OSError, path: str | os.PathLike[str]) -> FuselineError:
    return FuselineError(
        "E0502", f"cannot write: {error.strerror or error}", node=os.fspath(path), hint="give another place"
    )
