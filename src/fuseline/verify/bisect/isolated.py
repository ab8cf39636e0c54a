"""Work that may end its process, in a process of its own: wrong code reads and writes where it likes."""

from __future__ import annotations

import faulthandler
import os
import pickle
import signal
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

from fuseline.border import coded
from fuseline.errors import FuselineError


class Ended(NamedTuple):
    """What came of some work: its answer, the error that it raised, or the signal that ended its process."""

    answer: Any = None
    error: FuselineError | None = None
    signal: str = ""


def isolated(work: Callable[[], Any], seconds: int = 0) -> Ended:
    """Do `work`, whose answer can be pickled, in a fork of this process; after `seconds` (0: never) SIGALRM ends it."""
    with tempfile.TemporaryDirectory(prefix="fuseline-") as folder:
        path = Path(folder) / "answer"
        child = os.fork()
        if child == 0:
            _do(work, path, seconds)
        status = os.waitpid(child, 0)[1]
        if not path.exists():
            number = os.waitstatus_to_exitcode(status)
            return Ended(signal=signal.Signals(-number).name if number < 0 else f"exit code {number}")
        return pickle.loads(path.read_bytes())


def _do(work: Callable[[], Any], path: Path, seconds: int) -> None:
    """In the child: leave the answer where the parent looks for it, and end without the parent's clean-up."""
    code = 1
    try:
        faulthandler.disable()  # that it ends is an answer
        signal.signal(signal.SIGALRM, signal.SIG_DFL)
        signal.alarm(seconds)
        try:
            ended = Ended(answer=work())
        except Exception as problem:  # noqa: BLE001 - whatever it raises is an answer
            ended = Ended(error=coded(problem, "bisect"))
        new = path.with_suffix(".new")
        new.write_bytes(pickle.dumps(ended))
        new.replace(path)
        code = 0
    finally:
        os._exit(code)
