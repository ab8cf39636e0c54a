"""Runs whose time line is kept: when each thread began and ended each command, and Python each operator of the host.

    with RunTracer(session) as tracer:
        outputs = tracer.run(feeds)
    tracer.events                       known when it is closed: ticks become nanoseconds between two looks at the clock

A traced run takes other command tables (`stamps.py`) than the session's own runs do, on memory of its own.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import partial
from itertools import pairwise
from time import perf_counter_ns
from typing import Any, Literal, NamedTuple

import numpy as np
from numpy.typing import NDArray

from fuseline.runtime.artifact import Artifact
from fuseline.runtime.execution import Array, Execution, Launch, TableContents
from fuseline.runtime.program import Command, HostCall, Loop
from fuseline.runtime.session import Session
from fuseline.runtime.stamps import Clock, StampedTable
from fuseline.runtime.values import Values

Kind = Literal["run", "native", "command", "wait", "host"]


class Event(NamedTuple):
    """Something that took time, from `begin` to `end` in nanoseconds of `time.perf_counter_ns`.

    `run` is a call of `run`, `native` one stay in the scheduler, `host` an operator in Python: all on the caller,
    thread 0. `command` is one thread's part of a launch, `wait` its time at the barrier before. `label` is that of the
    step; `number` counts the commands of a run from 0 in the order of the program (-1: no command), `trip` the
    iterations of the loop that it is in.
    """

    kind: Kind
    label: str
    thread: int
    begin: int
    end: int
    number: int = -1
    trip: int = 0


class RunTracer:
    """Traces runs of `session` (at its threads) until it is closed; then `events` are there, in order of time.

    Raises FuselineError as `Session.run` does, E0501 on a machine whose counter is not known, and E0405 for a run with
    too many moments. What a failed run had done by then is in `events` as well.
    """

    def __init__(self, session: Session) -> None:
        self.threads = session.threads
        self.events: list[Event] = []
        self._clock, self._ticks, self._commands = Clock(), list[_Ticks](), 0
        self._session = _TracedSession(session.artifact, threads=session.threads)
        self._session.tracer = self

    def __enter__(self) -> RunTracer:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def run(self, feeds: Mapping[str, Any]) -> dict[str, Any]:
        """One run: answers what the session would."""
        self._commands, begin = 0, perf_counter_ns()
        try:
            return self._session.run(feeds)
        finally:
            self.took("run", "run", begin)

    def forget(self) -> None:
        """Drop what was traced so far: a run that warmed up."""
        self.events.clear()
        self._ticks.clear()

    def close(self) -> None:
        """Turn ticks into time."""
        if self._ticks:
            self._clock.settle()
        for ticks in self._ticks:
            for thread in range(ticks.table.threads):
                self.events += ticks.events(self._clock, thread)
        self._ticks.clear()
        self.events.sort(key=lambda event: (event.begin, -event.end))

    # what executions tell ---------------------------------------------------------------------------------------------

    def took(self, kind: Kind, label: str, begin: int) -> None:
        """An event of the caller that ends now."""
        self.events.append(Event(kind, label, 0, begin, perf_counter_ns()))

    def keep(self, table: StampedTable) -> None:
        """Take what a table has stamped in the steps that it ran, and count its commands."""
        self._ticks.append(_Ticks(table, table.ticks.copy(), self._commands))
        self._commands += len(table.stamped)


class _Ticks(NamedTuple):
    """Stamps of one pass through a table; its commands are numbered from `first` on."""

    table: StampedTable
    ticks: NDArray[np.int64]
    first: int

    def events(self, clock: Clock, thread: int) -> Iterator[Event]:
        """What one thread did, and where it waited in between."""
        moments = sorted(self._moments(clock, thread), key=lambda event: event.begin)
        for before, event in pairwise([None, *moments]):
            assert event is not None
            stamped = self.table.stamped[event.number - self.first]
            if before is not None and stamped.barrier:
                yield event._replace(kind="wait", begin=before.end, end=event.begin)
            if stamped.threads[thread]:
                yield event

    def _moments(self, clock: Clock, thread: int) -> Iterator[Event]:
        for number, stamped in enumerate(self.table.stamped, self.first):
            ticks = self.table.of(stamped, self.ticks)[:, :, thread]
            for trip, (begin, end) in enumerate(clock.ns(ticks).tolist()):
                if ticks[trip].all():  # a run that failed has not come to those that are 0
                    yield Event("command", stamped.command.label, thread, begin, end, number, trip)


class _TracedSession(Session):
    """A session whose executions stamp."""

    tracer: RunTracer

    @property
    def _execution(self) -> Callable[..., Execution]:
        return partial(_TracedExecution, self.tracer)

    def _beside(self, artifact: Artifact) -> Session:
        other = _TracedSession(artifact, threads=self.threads, pin=self._pin)
        other.tracer = self.tracer
        return other


class _TracedExecution(Execution):
    """An execution that tells `tracer` what it did."""

    def __init__(self, tracer: RunTracer, *given: Any, **options: Any) -> None:
        self._tracer = tracer
        super().__init__(*given, **options)

    def _bind(self, steps: Sequence[Command | Loop], contents: TableContents) -> None:
        self._stamps = stamps = StampedTable(
            steps, contents.shares, self.threads, self._evaluate, self._code.pages.base
        )
        fixed = contents.addresses.fixed
        placed = contents.addresses._replace(fixed=lambda ref: found if (found := stamps.address(ref)) else fixed(ref))
        super()._bind(stamps.steps, contents._replace(shares=stamps.shares, addresses=placed))

    def _set_range(self, first: int, last: int) -> None:
        super()._set_range(*self._stamps.rows(first, last))

    def run(self, launch: Launch, inputs: Sequence[Array]) -> list[Array]:
        """As the execution it is, with stamps."""
        self._stamps.ticks.fill(0)
        try:
            return super().run(partial(self._launch, launch), inputs)
        finally:
            self._tracer.keep(self._stamps)

    def perform(self, launch: Launch, addresses: Sequence[int], values: Values) -> None:
        """As the execution it is, with stamps."""
        self._stamps.ticks.fill(0)
        try:
            super().perform(partial(self._launch, launch), addresses, values)
        finally:
            self._tracer.keep(self._stamps)

    def call(self, step: HostCall, values: Values) -> list[Any]:
        """As the execution it is, timed."""
        begin = perf_counter_ns()
        try:
            return super().call(step, values)
        finally:
            self._tracer.took("host", step.label, begin)

    def _launch(self, launch: Launch, context: int) -> None:
        begin = perf_counter_ns()
        launch(context)
        self._tracer.took("native", "native", begin)
