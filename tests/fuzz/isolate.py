"""Work in forked children: what hangs, dies or leaks there is a finding, and the parent goes on."""

from __future__ import annotations

import os
import pickle
import select
import signal
import struct
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

Work = Callable[[Any, Callable[[str], None]], Any]
"""What is done with an item; the second argument tells the parent which stage it has come to."""

SECONDS = 60.0
"""Longest time for one item."""


@dataclass(frozen=True, slots=True)
class Answer:
    """What became of an item: `value` where it was answered, else `failure` in `stage`: `crash`, `hang`, or `error` for
    an exception of `work`."""

    item: Any
    value: Any = None
    failure: str = ""
    stage: str = ""
    seconds: float = 0.0


def run_isolated(items: Sequence[Any], work: Work, *, seconds: float = SECONDS, batch: int = 25) -> Iterator[Answer]:
    """`work(item, stage)` for each item, in children that do up to `batch` of them; one that dies or takes too long
    costs that item only."""
    position = 0
    while position < len(items):
        part = items[position : position + batch]
        for answer in _child(part, work, seconds):
            position += 1
            yield answer


def _child(items: Sequence[Any], work: Work, seconds: float) -> Iterator[Answer]:
    """The answers of one child, up to and including the item that it fails at."""
    reading, writing = os.pipe()
    sys.stdout.flush()
    sys.stderr.flush()
    pid = os.fork()
    if pid == 0:
        _serve(items, work, reading, writing)
    os.close(writing)
    try:
        yield from _collect(items, reading, pid, seconds)
    finally:
        os.close(reading)
        _end(pid)


def _serve(items: Sequence[Any], work: Work, reading: int, writing: int) -> None:
    """The child: never returns."""
    try:
        os.setsid()
        os.close(reading)
        for item in items:
            _send(writing, ("answer", work(item, lambda stage: _send(writing, ("stage", stage)))))
    except BaseException as error:  # noqa: BLE001
        _send(writing, ("died", repr(error)))
    finally:
        os._exit(0)


def _send(writing: int, message: Any) -> None:
    data = pickle.dumps(message)
    data = struct.pack("<I", len(data)) + data
    while data:
        data = data[os.write(writing, data) :]


def _collect(items: Sequence[Any], reading: int, pid: int, seconds: float) -> Iterator[Answer]:
    for item in items:
        stage, start = "start", time.monotonic()
        while True:
            message = _receive(reading, start + seconds)
            taken = time.monotonic() - start
            if message is None or message[0] == "died":
                yield Answer(item, None, *_failure(message, pid, taken >= seconds, stage), taken)
                return
            if message[0] == "answer":
                yield Answer(item, message[1], seconds=taken)
                break
            stage = message[1]


def _failure(message: Any, pid: int, late: bool, stage: str) -> tuple[str, str]:
    if late:
        return "hang", stage
    if message is not None:
        return "error", f"{stage}: {message[1]}"
    _, status = os.waitpid(pid, 0)
    return "crash", f"{stage}: signal {os.WTERMSIG(status)}" if os.WIFSIGNALED(status) else f"{stage}: exit"


def _receive(reading: int, deadline: float) -> Any:
    """The next message; None at the end of the pipe or past the deadline."""
    head = _exactly(reading, 4, deadline)
    data = None if head is None else _exactly(reading, struct.unpack("<I", head)[0], deadline)
    return None if data is None else pickle.loads(data)


def _exactly(reading: int, count: int, deadline: float) -> bytes | None:
    data = b""
    while len(data) < count:
        ready, _, _ = select.select([reading], [], [], max(deadline - time.monotonic(), 0))
        part = os.read(reading, count - len(data)) if ready else b""
        if not part:
            return None
        data += part
    return data


def _end(pid: int) -> None:
    """End a child and what it started."""
    for group in (True, False):
        try:
            os.killpg(pid, signal.SIGKILL) if group else os.kill(pid, signal.SIGKILL)
        except (ProcessLookupError, PermissionError):
            pass
    try:
        os.waitpid(pid, 0)
    except ChildProcessError:
        pass
