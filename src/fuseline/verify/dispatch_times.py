"""Seconds of every dispatch on its own: a program that launches one command many times, so that one launch is above the clock's grain.

The caches are warm with the dispatch's own data, so that the sum is a little below the whole program's time.
"""

from __future__ import annotations

import time
from collections.abc import Mapping
from typing import Any

import numpy as np

from fuseline.runtime import Artifact, Session
from fuseline.runtime.program import Command

REPEATS = 20
TRIALS = 5


def dispatch_seconds(artifact: Artifact, feeds: Mapping[str, Any], threads: int) -> list[tuple[str, float]]:
    """`(label, median seconds)` of every native command in program order."""
    empty = _seconds(artifact, (), feeds, threads)
    commands = [step for step in artifact.program.steps if isinstance(step, Command)]
    return [(c.label, max(_seconds(artifact, (c._replace(barrier=True),) * REPEATS, feeds, threads) - empty, 0.0) / REPEATS) for c in commands]


def _seconds(artifact: Artifact, steps: tuple[Command, ...], feeds: Mapping[str, Any], threads: int) -> float:
    program = artifact.program._replace(steps=steps, serial_below_ns=0)
    session = Session(artifact._replace(program=program), threads=threads)
    session.run(feeds)
    times: list[float] = []
    for _ in range(TRIALS):
        start = time.perf_counter()
        session.run(feeds)
        times.append(time.perf_counter() - start)
    return float(np.median(times))
