"""Writing outputs so that a failure leaves nothing behind: into a temporary file beside the target, then one rename."""

from __future__ import annotations

import os
import tempfile
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import BinaryIO

from fuseline.errors import FuselineError


def write_atomically(path: Path, write: Callable[[BinaryIO], None]) -> None:
    """Calls `write` with a binary file and puts the result at `path` only if it succeeded; raises E0502 when the place is not writable."""
    write_all_atomically({path: write})


def write_text(path: Path, text: str) -> None:
    """A text file in UTF-8, as `write_atomically` writes it."""

    def write(file: BinaryIO) -> None:
        file.write(text.encode())

    write_atomically(path, write)


def write_all_atomically(writers: Mapping[Path, Callable[[BinaryIO], None]]) -> None:
    """Several files, all of them or none: every one is complete on disk before the first gets its name."""
    temporary: dict[Path, Path] = {}
    try:
        for path, write in writers.items():
            path.parent.mkdir(parents=True, exist_ok=True)
            handle, name = tempfile.mkstemp(dir=path.parent, prefix=f".{path.name}.")
            temporary[path] = Path(name)
            with os.fdopen(handle, "wb") as file:
                write(file)
            os.chmod(name, 0o666 & ~_umask())
        for path, partial in temporary.items():
            partial.replace(path)
    except OSError as problem:
        raise FuselineError("E0502", f"cannot write: {problem.strerror}", node=str(problem.filename), hint="give another place") from problem
    finally:
        for partial in temporary.values():
            partial.unlink(missing_ok=True)


def _umask() -> int:
    current = os.umask(0)
    os.umask(current)
    return current
