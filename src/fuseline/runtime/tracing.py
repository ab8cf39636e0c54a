"""Runs whose time line is kept: when each thread began and ended each command, and Python each operator of the host.

    with RunTracer(session) as tracer:
        outputs = tracer.run(feeds)
    tracer.events                       known when it is closed: ticks become nanoseconds between two looks at the clock

A traced run takes other command tables (`stamps.py`) than the session's own runs do, on memory of its own. While runs
go on, moments are kept as they are taken; events are made of them when the tracer is closed.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import partial
from itertools import pairwise
from math import ceil
from time import perf_counter_ns
from typing import Any, Literal, NamedTuple

import numpy as np
from numpy.typing import NDArray

from fuseline.runtime.artifact import Artifact
from fuseline.runtime.execution import Array, Execution, Launch, TableContents, ranges_of
from fuseline.runtime.program import Command, HostCall, Loop, Poison, Program
from fuseline.runtime.session import Session
from fuseline.runtime.stamps import STAMPS, Clock, StampedTable
from fuseline.runtime.values import Values

RECORDING_NS, STAMP_NS = 4000, 35
"""What recording adds to a run, caches that hold another's memory before and after it included, and each stamp of it
(measured, docs/runtime.md)."""

_LOOKS = 8
"""Runs after which it is known how many of them are recorded."""

Kind = Literal["run", "native", "command", "wait", "host"]


class Event(NamedTuple):
    """Something that took time, from `begin` to `end` in nanoseconds of `time.perf_counter_ns`.

    `run` is a call of `run`, `native` one stay in the scheduler (from its first stamp to its last where a run has but
    one), `host` an operator in Python: all on the caller, thread 0. `command` is one thread's part of a launch, `wait`
    its time at the barrier before. `label` is that of the step; `number` counts the commands of a run from 0 in the
    order of the program (-1: no command), `trip` the iterations of the loop that it is in.
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

    Args:
        session: of a native program. overhead: what recording may add to the time of many runs, as a part of it (0.03);
        one in `every` of them is recorded then, all where they are long. None: all are recorded.

    Raises FuselineError as `Session.run` does, E0501 on a machine whose counter is not known, and E0405 for a run with
    too many moments. What a failed run had done by then is in `events` as well.
    """

    def __init__(self, session: Session, overhead: float | None = None) -> None:
        self.threads, self.every = session.threads, 1
        self.events: list[Event] = []
        self._clock, self._commands = Clock(), 0
        self._skip, self._looks, self._overhead = 0, 0, overhead
        self._ticks, self._took = list[_Kept](), list[tuple[Any, ...]]()
        self._plain = session.run
        self._session = _TracedSession(session.artifact, threads=session.threads)
        self._session.tracer = self
        self._session.take_code(session)

    def __enter__(self) -> RunTracer:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def run(self, feeds: Mapping[str, Any]) -> dict[str, Any]:
        """One run: answers what the session would."""
        if self._skip:
            self._skip -= 1
            return self._plain(feeds)
        self._commands, begin = 0, perf_counter_ns()
        try:
            return self._session.run(feeds)
        finally:
            self._took.append(("run", "run", 0, begin, perf_counter_ns()))
            if self._overhead is not None and self._looks < _LOOKS:
                self._sample(self._overhead)
            self._skip = self.every - 1

    def forget(self) -> None:
        """Drop what was traced so far: a run that warmed up."""
        self._took.clear()
        self._ticks.clear()
        self._skip = 0

    def close(self) -> None:
        """Turn ticks into time."""
        if self._ticks:
            self._clock.settle()
        self.events += [Event(*taken) for taken in self._took]
        for kept in self._ticks:
            self.events += kept.events(self._clock)
        self.forget()
        self.events.sort(key=lambda event: (event.begin, -event.end))

    def _sample(self, overhead: float) -> None:
        """Record one in so many runs that recording takes less than a part of their time: by the shortest of the first,
        whose own cost is not counted."""
        _, _, _, begin, end = self._took[-1]
        cost = RECORDING_NS + STAMP_NS * sum(len(kept.block[0]) for kept in self._ticks[-1:])
        wanted = ceil(cost / (overhead * max(end - begin - cost, cost / 4)))
        self._looks, self.every = self._looks + 1, max(1, wanted, self.every)

    # what executions tell ---------------------------------------------------------------------------------------------

    def took(self, kind: Kind, label: str, begin: int) -> None:
        """An event of the caller that ends now."""
        self._took.append((kind, label, 0, begin, perf_counter_ns()))

    def keep(self, table: StampedTable, *, one_stay: bool) -> None:
        """Remember what a table has stamped in the steps that it ran, and count its commands. `one_stay`: all of them
        in one stay in the scheduler, which nobody has timed."""
        self._ticks.append(_Kept(table, *table.room.last_run(), self._commands, one_stay))
        self._commands += len(table.stamped)


class _Kept(NamedTuple):
    """Stamps of one pass through a table, in a slot of a block of such; its commands are numbered from `first` on."""

    table: StampedTable
    block: NDArray[np.int64]
    slot: int
    first: int
    one_stay: bool

    def events(self, clock: Clock) -> Iterator[Event]:
        """All that was stamped."""
        ticks = _Ticks(self.table, self.block[self.slot], self.first)
        found = [event for thread in range(self.table.threads) for event in ticks.events(clock, thread)]
        mine = [event for event in found if event.thread == 0]
        if self.one_stay and mine:
            yield Event("native", "native", 0, min(e.begin for e in mine), max(e.end for e in mine))
        yield from found


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

    def take_code(self, other: Session) -> None:
        """Run the code and read the constants that `other`, of the same artifact, has loaded: caches hold them once."""
        self.__dict__["_code"] = other.open()._code

    @property
    def _execution(self) -> Callable[..., Execution]:
        return partial(_TracedExecution, self.tracer)

    def _beside(self, artifact: Artifact) -> Session:
        other = _TracedSession(artifact, threads=self.threads, pin=self._pin)
        other.tracer = self.tracer
        return other


class _TracedExecution(Execution):
    """An execution that tells `tracer` what it did."""

    def __init__(self, tracer: RunTracer, program: Program, *given: Any, **options: Any) -> None:
        self._tracer, self._stamps_at = tracer, 0
        self._starts = [item[0] for item in ranges_of(program) if not isinstance(item, HostCall | Poison)]
        super().__init__(program, *given, **options)

    def _bind(self, steps: Sequence[Command | Loop], contents: TableContents) -> None:
        code, given = self._code.pages.base, contents.addresses
        self._stamps = stamps = StampedTable(steps, contents.shares, self.threads, self._evaluate, code, self._starts)
        placed = given._replace(
            segment_of=lambda ref: given.segments if ref.number == STAMPS else given.segment_of(ref),
            segments=given.segments + 1,
        )
        super()._bind(stamps.steps, contents._replace(shares=stamps.shares, addresses=placed))
        set_segments = self._table.set_segments
        self._table.set_segments = lambda *addresses: set_segments(*addresses, self._stamps_at)

    def _set_range(self, first: int, last: int) -> None:
        super()._set_range(*self._stamps.rows(first, last))

    def run(self, launch: Launch, inputs: Sequence[Array]) -> list[Array]:
        """As the execution it is, with stamps."""
        self._stamps_at = self._stamps.room.begin_run()
        one_stay = self._ranges is None
        try:
            return Execution.run(self, launch if one_stay else partial(self._launch, launch), inputs)
        finally:
            self._tracer.keep(self._stamps, one_stay=one_stay)

    def perform(self, launch: Launch, addresses: Sequence[int], values: Values) -> None:
        """As the execution it is, with stamps."""
        self._stamps_at = self._stamps.room.begin_run()
        try:
            super().perform(partial(self._launch, launch), addresses, values)
        finally:
            self._tracer.keep(self._stamps, one_stay=False)

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
