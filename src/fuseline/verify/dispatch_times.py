"""Seconds of every dispatch on its own: a program that launches one command many times, so that one launch is above the
clock's grain.

The whole program runs first: memory that nothing was written to would be read from one page of zeros, faster or slower
than data. The caches are warm with the dispatch's own data, so that the sum is a little below the whole program's time.
"""

from __future__ import annotations

import time
from collections.abc import Iterator, Mapping
from typing import Any

import numpy as np

from fuseline.errors import UnequalSizesError
from fuseline.runtime import Artifact, Session
from fuseline.runtime.feeds import admit, bind_sizes
from fuseline.runtime.program import Command, Loop, Step
from fuseline.runtime.sizes import Size, SizeEvaluator

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
    as often as the loop runs it."""
    whole, program = Session(artifact, threads=threads), artifact.program
    whole.run(feeds)
    empty = _seconds(whole, (), feeds)
    arrays = admit(program.inputs, feeds)
    evaluate = SizeEvaluator(bind_sizes(program, [array.shape for array in arrays]))
    found: list[tuple[str, float]] = []
    for step in program.steps:
        for alone, label, trips in _alone(step):
            taken = _seconds(whole, (alone,) * REPEATS, feeds) - empty
            found.append((label, evaluate(trips) * max(taken, 0.0) / REPEATS))
    return found


def _alone(step: Step) -> Iterator[tuple[Step, str, Size]]:
    """Each command of a step as a step of its own, its label, and how often a run launches it. Inside a loop it keeps
    its walks."""
    if isinstance(step, Loop):
        for command in step.commands:
            yield Loop(1, (command,), barrier=True), command.label, step.trips
    elif isinstance(step, Command):
        yield step._replace(barrier=True), step.label, 1


def _seconds(whole: Session, steps: tuple[Step, ...], feeds: Mapping[str, Any]) -> float:
    session = whole.part(whole.artifact.program._replace(steps=steps, serial_below_ns=0))
    session.run(feeds)
    times: list[float] = []
    for _ in range(TRIALS):
        start = time.perf_counter()
        session.run(feeds)
        times.append(time.perf_counter() - start)
    return float(np.median(times))
