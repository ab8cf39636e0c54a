"""Seconds of every dispatch on its own: a program that launches one command many times, so that one launch is above the
clock's grain.

The whole program runs first: memory that nothing was written to would be read from one page of zeros, faster or slower
than data. The caches are warm with the dispatch's own data, so that the sum is a little below the whole program's time.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Mapping
from typing import Any

import numpy as np

from fuseline.errors import UnequalSizesError
from fuseline.runtime import Artifact, Session
from fuseline.runtime.feeds import admit, bind_sizes
from fuseline.runtime.program import Command, Loop, Step
from fuseline.runtime.sizes import Size, SizeEvaluator
from fuseline.runtime.staged import split_stages
from fuseline.runtime.tracing import Event, RunTracer

REPEATS = 20
TRIALS = 5


def program_run(artifact: Artifact, feeds: Mapping[str, Any], threads: int) -> Artifact:
    """The program that runs these feeds, alone: that of the artifact, or its fallback."""
    alone = artifact._replace(fallback=None)
    try:
        Session(alone, threads=threads).run(feeds)
    except UnequalSizesError:
        if artifact.fallback is None:
            raise
        return artifact.fallback
    return alone


def dispatch_seconds(artifact: Artifact, feeds: Mapping[str, Any], threads: int) -> list[tuple[str, float]]:
    """`(label, median seconds)` of every native command of the artifact's own program, in order; one in a loop counts
    as often as the loop runs it. Where only the run tells sizes, commands cannot run alone: theirs are read off the
    time line of whole runs, from the first thread's beginning to the last one's end."""
    if len(split_stages(artifact.program)) > 1 or artifact.program.slots:
        return _seconds_in_runs(artifact, feeds, threads)
    timer = DispatchTimer(artifact, feeds, threads)
    return [
        (label, float(np.median([timer.sample(index, REPEATS) for _ in range(TRIALS)])))
        for index, label in enumerate(timer.labels)
    ]


class DispatchTimer:
    """Times the native commands of a program one by one, by `clock`.

    Attributes:
        labels: of the commands, in order; a launch is meant by its index. trips: how often a run launches each.
    """

    def __init__(
        self,
        artifact: Artifact,
        feeds: Mapping[str, Any],
        threads: int,
        clock: Callable[[], float] = time.perf_counter,
    ) -> None:
        self._whole, self._feeds, self._clock = Session(artifact, threads=threads), feeds, clock
        self._whole.run(feeds)
        program = artifact.program
        evaluate = SizeEvaluator(bind_sizes(program, [array.shape for array in admit(program.inputs, feeds)]))
        launches = [launch for step in program.steps for launch in _alone(step)]
        self.labels = [label for _, label, _ in launches]
        self.trips = [int(evaluate(trips)) for _, _, trips in launches]
        self._launches = [(step, trips) for (step, _, _), trips in zip(launches, self.trips, strict=True)]
        self._sessions: dict[tuple[int, int], Session] = {}
        empty = self._whole.part(program._replace(steps=(), serial_below_ns=0))
        empty.run(feeds)
        self._empty = float(np.median([self._seconds(empty) for _ in range(TRIALS)]))

    def sample(self, index: int, repeats: int = 1) -> float:
        """Seconds that a run spends in a command, by one timing of `repeats` launches; one in a loop counts as often as
        the loop runs it."""
        step, trips = self._launches[index]
        session = self._sessions.get((index, repeats))
        if session is None:
            program = self._whole.artifact.program._replace(steps=(step,) * repeats, serial_below_ns=0)
            session = self._sessions[index, repeats] = self._whole.part(program)
            session.run(self._feeds)
        return trips * max(self._seconds(session) - self._empty, 0.0) / repeats

    def _seconds(self, session: Session) -> float:
        start = self._clock()
        session.run(self._feeds)
        return self._clock() - start


def _seconds_in_runs(artifact: Artifact, feeds: Mapping[str, Any], threads: int) -> list[tuple[str, float]]:
    """`(label, median seconds)` of every native command, in order, from traced runs."""
    session = Session(artifact, threads=threads)
    runs = [_traced(session, feeds) for _ in range(TRIALS)]
    labels = {number: label for run in runs for number, (label, _) in run.items()}
    return [
        (labels[number], float(np.median([run[number][1] for run in runs if number in run])))
        for number in sorted(labels)
    ]


def _traced(session: Session, feeds: Mapping[str, Any]) -> dict[int, tuple[str, float]]:
    """Label and seconds of each command, by number, in one run behind another."""
    with RunTracer(session) as tracer:
        tracer.run(feeds)
        tracer.forget()
        tracer.run(feeds)
    launches: dict[tuple[int, int], list[Event]] = {}
    for event in tracer.events:
        if event.kind == "command":
            launches.setdefault((event.number, event.trip), []).append(event)
    found: dict[int, tuple[str, float]] = {}
    for (number, _), timed in launches.items():
        taken = max(launch.end for launch in timed) - min(launch.begin for launch in timed)
        found[number] = timed[0].label, found.get(number, ("", 0.0))[1] + taken * 1e-9
    return found


def _alone(step: Step) -> Iterator[tuple[Step, str, Size]]:
    """Each command of a step as a step of its own, its label, and how often a run launches it. Inside a loop it keeps
    its trips."""
    if isinstance(step, Loop):
        for command in step.commands:
            yield Loop(1, (command,), barrier=True), command.label, step.trips
    elif isinstance(step, Command):
        yield step._replace(barrier=True), step.label, 1
