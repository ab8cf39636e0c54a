"""Pieces of work on a team of workers: one at a time each; one that loses its worker is done elsewhere, and counts
once.

    waiting ──> worker is free ──> attempt 1 ──> result
       ^                               └── worker lost ──┐
       └──────────────── attempt 2 <────────────────────┘      after LOSSES of them: an error, E1103

Dask would move the work of a lost worker by itself, but not to one of the team: each attempt is held to the worker that
it was given to, under a name of its own, and what an earlier one answers late is nobody's any more.
"""

from __future__ import annotations

import time
import uuid
from collections import deque
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass, field
from queue import Empty, Queue
from typing import Any, Generic, TypeVar

from distributed import CancelledError, KilledWorker
from distributed.comm.core import CommClosedError

from fuseline.border import coded
from fuseline.cluster.team import Team
from fuseline.errors import FuselineError

LOSSES = 3
"""Workers that one piece of work may lose: it is likely that it is what ends them."""

_LOOK_SECONDS = 0.5
_FETCH_SECONDS = 5.0

R = TypeVar("R")


class NotPreparedError(Exception):
    """Raised by work on a worker that lacks what it was sent: it is sent again."""


@dataclass(slots=True)
class Job:
    """One piece of work: what to call, the attempt at it (by number; 0 before the first), and workers it has lost."""

    number: int
    function: Callable[..., Any]
    arguments: tuple[Any, ...]
    attempt: int = 0
    losses: int = 0
    worker: str = ""
    future: Any = None


@dataclass(frozen=True, slots=True)
class Done(Generic[R]):
    """A finished job: its result, or the coded error that it ended with; `worker` is the address."""

    number: int
    worker: str
    result: R | None = None
    error: FuselineError | None = None


@dataclass(slots=True)
class Jobs(Generic[R]):
    """Jobs on `team`, answered as they finish.

    `losses`: workers that one may lose. `supply`: called with the address of a worker and a job's arguments before it
    runs there; a FuselineError that it raises is the job's answer.
    """

    team: Team
    losses: int = LOSSES
    supply: Callable[[str, tuple[Any, ...]], object] = lambda address, arguments: None
    _name: str = field(default_factory=lambda: uuid.uuid4().hex)
    _waiting: deque[Job] = field(default_factory=deque[Job])
    _running: dict[int, Job] = field(default_factory=dict[int, Job])
    _over: Queue[tuple[int, int]] = field(default_factory=Queue[tuple[int, int]])
    _answers: deque[Done[R]] = field(default_factory=deque[Done[R]])
    _looked: float = field(default_factory=time.monotonic)

    def submit(self, number: int, function: Callable[..., R], *arguments: Any) -> None:
        """Call `function`, which workers can import, with `arguments`; `number` is the job's own."""
        self._waiting.append(Job(number, function, arguments))
        self._assign()

    @property
    def open(self) -> int:
        """How many are not answered yet."""
        return len(self._waiting) + len(self._running) + len(self._answers)

    def done(self, timeout: float | None = None) -> Done[R] | None:
        """The next finished job; None where none finished within `timeout` seconds, or none is open. Raises
        FuselineError: E1101 where the scheduler is gone, E1102 where no worker is left."""
        end = None if timeout is None else time.monotonic() + timeout
        while self.open:
            self._look_after_workers()
            left = _LOOK_SECONDS if end is None else min(_LOOK_SECONDS, end - time.monotonic())
            with suppress(Empty):
                self._settle(*self._over.get(timeout=0.0 if self._answers else max(left, 0.0)))
            self._assign()
            if self._answers:
                return self._answers.popleft()
            if end is not None and time.monotonic() >= end:
                return None
        return None

    def cancel(self) -> None:
        """Give all of them up; what runs on workers goes on until it ends by itself."""
        self._waiting.clear()
        self._answers.clear()
        for job in self._running.values():
            _drop(job.future)
        self._running.clear()

    # attempts ---------------------------------------------------------------------------------------------------------

    def _assign(self) -> None:
        busy = {job.worker for job in self._running.values()}
        for address in [address for address in self.team.members if address not in busy]:
            if not self._waiting:
                return
            self._start(self._waiting.popleft(), address)

    def _start(self, job: Job, address: str) -> None:
        job.attempt, job.worker = job.attempt + 1, address
        number, attempt = job.number, job.attempt
        try:
            self.supply(address, job.arguments)
        except FuselineError as error:
            if error.code == "E1101":
                raise
            self._answers.append(Done(number, address, error=error))
            return
        job.future = self.team.client.submit(
            job.function,
            *job.arguments,
            key=f"fuseline-{self._name}-{number}-{attempt}",
            workers=[address],
            allow_other_workers=False,
            pure=False,
            retries=0,
        )
        self._running[number] = job
        job.future.add_done_callback(lambda _: self._over.put((number, attempt)))

    def _settle(self, number: int, attempt: int) -> None:
        """Take what an attempt came to; nothing of one that is nobody's any more."""
        job = self._running.get(number)
        if job is None or job.attempt != attempt:
            return
        try:
            result = self._fetched(job)
        except (CancelledError, KilledWorker, CommClosedError):
            self.team.refresh()
            self._again(job)
        except NotPreparedError:
            self.team.forget(job.worker)
            self._again(job)
        except Exception as problem:  # noqa: BLE001 - whatever ends a job is its answer
            self._finish(job, error=coded(problem, "work on a worker"))
        else:
            self._finish(job, result=result)

    def _fetched(self, job: Job) -> R:
        """The result, from the worker that has it. Raises CancelledError where that is gone meanwhile."""
        while True:
            try:
                return job.future.result(timeout=_FETCH_SECONDS)
            except TimeoutError as problem:
                if job.future.status == "error":  # the job's own
                    raise
                self.team.refresh()
                if job.worker not in self.team.members:
                    raise CancelledError(job.worker) from problem

    def _finish(self, job: Job, result: R | None = None, error: FuselineError | None = None) -> None:
        del self._running[job.number]
        _drop(job.future)
        self._answers.append(Done(job.number, job.worker, result, error))

    # workers that are lost --------------------------------------------------------------------------------------------

    def _look_after_workers(self) -> None:
        """Once in a while: see who is there, and do the work of those who left elsewhere."""
        if time.monotonic() - self._looked < _LOOK_SECONDS and self._running:
            return
        self.team.refresh()
        self._looked = time.monotonic()
        for job in [job for job in self._running.values() if job.worker not in self.team.members]:
            self._again(job)

    def _again(self, job: Job) -> None:
        """It is the first of those that wait, or has lost its last worker."""
        job.losses += 1
        if job.losses >= self.losses:
            message = f"{job.losses} workers were lost while they did it"
            hint = "it may be what ends them: memory, or code that crashes; the logs of the workers say more"
            self._finish(job, error=FuselineError("E1103", message, hint=hint))
            return
        del self._running[job.number]
        _drop(job.future)
        self._waiting.appendleft(job)


def _drop(future: Any) -> None:
    if future is not None:
        future.cancel()
