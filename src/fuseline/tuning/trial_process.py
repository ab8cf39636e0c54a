"""The process that trials run in, seen from outside. What a trial may do to its process (a fault in generated code, no
memory, no end) is then a coded error here.

    search ──request──> socket ──> trial_server.serve ──> TrialRunner
           <──answer───

The process is started by its module, not forked (threads) and not spawned with the caller's main module (a script needs
no guard). It is in a session of its own, so that Ctrl-C reaches the search alone, and ends when the socket closes,
however the search ended.
"""

from __future__ import annotations

import os
import signal
import socket
import subprocess
import sys
import tempfile
import time
from contextlib import suppress
from multiprocessing.connection import Connection
from multiprocessing.reduction import ForkingPickler
from pathlib import Path
from typing import IO, Any

from fuseline.errors import FuselineError
from fuseline.tuning.setting import Realize, SearchSetting

_PROGRAM = "import sys; sys.path[:] = {}; from fuseline.tuning.trial_server import serve; serve({})"

_TRACE = ("Extension modules:", "Current thread", "Thread ", "  File ")
"""Lines of `faulthandler` that say where, not what."""

_GRACE_SECONDS = 5.0


class TrialProcess:
    """One process with a `TrialRunner`. Files that trials need are in `folder`; `realize` is importable by its name, or
    None for the usual one, which only that process imports: the compiler comes with it."""

    def __init__(self, setting: SearchSetting, realize: Realize | None, folder: Path) -> None:
        self._complaints: IO[bytes] = tempfile.TemporaryFile()
        first = ForkingPickler.dumps((setting, realize, str(folder)))
        ours, theirs = socket.socketpair()
        with theirs:
            self._process = subprocess.Popen(
                [sys.executable, "-c", _PROGRAM.format(sys.path, theirs.fileno())],
                stdin=subprocess.DEVNULL,
                stdout=subprocess.DEVNULL,
                stderr=self._complaints,
                pass_fds=[theirs.fileno()],
                start_new_session=True,
            )
        self._connection = Connection(ours.detach())
        self._started = 0.0
        self._send(first)

    @property
    def pid(self) -> int:
        """The number of the process."""
        return self._process.pid

    @property
    def gone(self) -> bool:
        """Whether the process ended."""
        return self._process.poll() is not None

    def request(self, method: str, *arguments: Any) -> None:
        """Call a method of the runner; `answer` has what it returns."""
        self._started = time.monotonic()
        self._send(ForkingPickler.dumps((method, arguments)))

    def _send(self, message: Any) -> None:
        with suppress(OSError):  # the process is gone: `answer` says so
            self._connection.send_bytes(message)

    @property
    def asked_for(self) -> float:
        """Seconds since the last request."""
        return time.monotonic() - self._started

    def ready(self, timeout: float) -> bool:
        """Whether `answer` has something to say, within `timeout` seconds."""
        return self._connection.poll(max(timeout, 0.0))

    def answer(self, node: str) -> Any:
        """What the method returned. Raises FuselineError E0604, naming `node`, where the process ended in its place."""
        try:
            return self._connection.recv()
        except (EOFError, OSError) as problem:
            raise self._ended(node) from problem

    def _ended(self, node: str) -> FuselineError:
        try:
            code = self._process.wait(_GRACE_SECONDS)
        except subprocess.TimeoutExpired:  # it closed its end and lives on
            code = 0
        how = f"status {code}" if code >= 0 else _signal_name(-code)
        return FuselineError("E0604", f"the process of the trial ended with {how}", node=node, hint=self._last_words())

    def _last_words(self) -> str | None:
        """The end of what it wrote to standard error."""
        self._complaints.seek(0)
        lines = self._complaints.read().decode("utf-8", "replace").strip().splitlines()
        said = [line for line in lines if line.strip() and not line.startswith(_TRACE)]
        return " | ".join(said[-2:])[-400:] or None

    def end(self) -> None:
        """End the process and what it started, now, whatever it does."""
        self._connection.close()
        with suppress(ProcessLookupError, PermissionError):
            os.killpg(self._process.pid, signal.SIGKILL)
        self._process.wait()
        self._complaints.close()


def _signal_name(number: int) -> str:
    try:
        return signal.Signals(number).name
    except ValueError:
        return f"signal {number}"
