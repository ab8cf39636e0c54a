"""Measured seconds of each dispatch of a record, and of whole runs of several programs in turn."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np

from fuseline.report.launches import dispatches_launched
from fuseline.report.records import CompileRecord
from fuseline.runtime import Session
from fuseline.verify.dispatch_times import dispatch_seconds, program_run
from fuseline.verify.measure import interleaved


def record_seconds(session: Session, record: CompileRecord, feeds: Mapping[str, Any]) -> list[float]:
    """The median seconds of each dispatch, in the order of the record; 0 for one that these feeds do not run."""
    artifact = program_run(session.artifact, feeds, session.threads)
    times = dispatch_seconds(artifact, feeds, session.threads)
    ordinary = artifact is not session.artifact.fallback
    launched = dispatches_launched(record.dispatches if ordinary else (), [label for label, _ in times])
    taken = {
        dispatch.name: seconds for dispatch, (_, seconds) in zip(launched, times, strict=True) if dispatch is not None
    }
    return [taken.get(dispatch.name, 0.0) for dispatch in record.dispatches]


def run_seconds(runs: Sequence[Callable[[], object]], rounds: int = 9) -> list[float]:
    """The median seconds of each of several calls, timed in turns."""
    times = interleaved({str(number): run for number, run in enumerate(runs)}, rounds=rounds)
    return [float(np.median(times[str(number)])) for number in range(len(runs))]
