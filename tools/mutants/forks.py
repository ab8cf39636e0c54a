"""Work in forked children, several at once: each has its own copy of this process, so that what it changes or breaks
ends with it."""

from __future__ import annotations

import contextlib
import json
import os
import resource
import signal
import tempfile
import traceback
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NoReturn

MEMORY = 6 << 30
"""Bytes of data a child may hold: a mutant that appends without end stops there."""


@dataclass(frozen=True)
class Job:
    """A call to make in a child: `work` returns what JSON can hold; `seconds` of processor time and it is ended."""

    key: str
    work: Callable[[], Any]
    seconds: int


@dataclass(frozen=True)
class Outcome:
    """What a job returned, or `signal`, the number of the signal that ended it (0: none)."""

    key: str
    value: Any
    signal: int = 0

    @property
    def out_of_time(self) -> bool:
        """Did it run past its processor time, or sleep past the limit of the clock?"""
        return self.signal in (signal.SIGXCPU, signal.SIGKILL, signal.SIGALRM)


def outcomes(jobs: Iterable[Job], workers: int) -> Iterator[Outcome]:
    """Run the jobs, `workers` at a time, and give what they return as they end."""
    running: dict[int, tuple[Job, Path]] = {}
    with tempfile.TemporaryDirectory(prefix="mutants-") as folder:
        for number, job in enumerate(jobs):
            while len(running) >= workers:
                yield _next(running)
            place = Path(folder, str(number))
            running[_start(job, place)] = (job, place)
        while running:
            yield _next(running)


def _next(running: dict[int, tuple[Job, Path]]) -> Outcome:
    process, status = os.wait()
    job, place = running.pop(process)
    if os.WIFSIGNALED(status):
        return Outcome(job.key, None, os.WTERMSIG(status))
    return Outcome(job.key, json.loads(place.read_text()))


def _start(job: Job, place: Path) -> int:
    process = os.fork()
    if process == 0:
        _child(job, place)
    return process


def _child(job: Job, place: Path) -> NoReturn:
    value: Any = None
    with contextlib.suppress(BaseException):
        _limit(job.seconds)
        temporary = place.with_suffix(".tmp")
        temporary.mkdir()
        os.environ["TMPDIR"] = tempfile.tempdir = str(temporary)
        try:
            value = job.work()
        except BaseException:  # noqa: BLE001 - whatever a mutant raises (SystemExit too) is an answer
            value = {"error": traceback.format_exc()}
    place.write_text(json.dumps(value))
    os._exit(0)


def _limit(seconds: int) -> None:
    """Processor time, memory and, for what sleeps, the clock; nothing that a child prints is seen."""
    resource.setrlimit(resource.RLIMIT_CPU, (seconds, seconds + 5))
    resource.setrlimit(resource.RLIMIT_DATA, (MEMORY, MEMORY))
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    null = os.open(os.devnull, os.O_RDWR)
    for stream in (0, 1, 2):
        os.dup2(null, stream)
