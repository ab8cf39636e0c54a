"""The process that trials run in, seen from inside: takes requests from a connection, one after the other, until its
other end is gone."""

from __future__ import annotations

import faulthandler
import os
from collections.abc import Callable
from contextlib import suppress
from multiprocessing.connection import Connection
from pathlib import Path
from queue import Queue
from threading import Thread
from typing import Any

from fuseline.tuning.runner import TrialRunner

Request = tuple[str, tuple[Any, ...]]
"""A method of `TrialRunner` and its arguments."""


def serve(descriptor: int) -> None:
    """Run what comes in over the socket `descriptor`: first what the runner is made of, then requests, each answered
    before the next."""
    faulthandler.enable()
    _go_first_when_memory_ends()
    connection = Connection(descriptor)
    requests: Queue[Request] = Queue()
    setting, realize, folder = connection.recv()
    Thread(target=_receive, args=(connection, requests.put), daemon=True).start()
    runner = TrialRunner(setting, realize, Path(folder))
    while True:
        method, arguments = requests.get()
        connection.send(getattr(runner, method)(*arguments))


def _receive(connection: Connection, put: Callable[[Request], None]) -> None:
    """Hand requests on; where the other process is gone, no trial is worth ending."""
    with suppress(EOFError, OSError):
        while True:
            put(connection.recv())
    os._exit(0)


def _go_first_when_memory_ends() -> None:
    """Should memory run out, the system is to end this process, not the search."""
    with suppress(OSError):
        Path("/proc/self/oom_score_adj").write_text("800", encoding="ascii")
