"""The time line of a run as a file for Perfetto: what each thread did, by the dispatches of the record."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from fuseline.border import coded
from fuseline.report.dispatches import member_nodes
from fuseline.report.launches import dispatches_launched
from fuseline.report.records import CompileRecord, DispatchRecord
from fuseline.report.time_line import Moment, TimeSpan, trace_json
from fuseline.runtime import Session
from fuseline.runtime.tracing import Event, RunTracer

WAIT = "wait"

OVERHEAD = 0.03
"""What recording many runs adds to their time, at most, as a part of it."""


class FailedRunError(Exception):
    """A run that failed; `trace` is the time line up to there, the cause is the failure."""

    def __init__(self, trace: bytes) -> None:
        super().__init__("the run failed")
        self.trace = trace


def run_trace(session: Session, record: CompileRecord, feeds: Mapping[str, Any], runs: int = 1) -> bytes:
    """Run once to warm up, then `runs` times with a time line, which is the answer: one track per thread, the caller's
    first; bars are runs, dispatches (`args`: source nodes, executable, family, what was predicted), operators of the
    host, and waiting at barriers. Of many short runs one in several is recorded, so that recording takes less than
    `OVERHEAD` of their time; the title says how many.

    Raises FailedRunError from the FuselineError of a run, with the time line up to there; else as `RunTracer` does.
    """
    problem: Exception | None = None
    with RunTracer(session, OVERHEAD if runs > 1 else None) as tracer:
        try:
            tracer.run(feeds)
            tracer.forget()
            for _ in range(runs):
                tracer.run(feeds)
        except Exception as error:  # noqa: BLE001 - it is raised below, with what led to it
            problem = error
    tracks = {0: "caller", **{number: f"worker {number}" for number in range(1, tracer.threads)}}
    spans = list(_spans(tracer.events, record))
    failure = [] if problem is None else [_failure(problem, tracer.events)]
    sampled = f", one run in {tracer.every} recorded" if tracer.every > 1 else ""
    trace = trace_json(f"run {record.model}{sampled}", tracks, spans, failure)
    if problem is not None:
        raise FailedRunError(trace) from problem
    return trace


def _failure(problem: Exception, events: list[Event]) -> Moment:
    error = coded(problem, "run")
    return Moment(f"error {error.code}", 0, max((event.end for event in events), default=0), {"why": error.message})


def _spans(events: list[Event], record: CompileRecord) -> Iterator[TimeSpan]:
    labels = {event.number: event.label for event in events if event.number >= 0}
    ordered = [labels.get(number, "") for number in range(max(labels, default=-1) + 1)]
    known = dispatches_launched(record.dispatches, ordered)
    for event in events:
        dispatch = known[event.number] if event.number >= 0 else None
        yield TimeSpan(
            _name(event, dispatch), event.kind, event.thread, event.begin, event.end, _about(event, dispatch)
        )


def _name(event: Event, dispatch: DispatchRecord | None) -> str:
    if event.kind == WAIT:
        return WAIT
    return event.label if dispatch is None else dispatch.label


def _about(event: Event, dispatch: DispatchRecord | None) -> dict[str, Any]:
    if dispatch is None:
        return {}
    if event.kind == WAIT:
        return {"before": dispatch.label}
    return {
        "nodes": list(member_nodes(dispatch)),
        "executable": dispatch.executable,
        "family": dispatch.family,
        "predicted_us": dispatch.predicted_ns / 1e3,
        "flops": dispatch.flops,
        "bytes": dispatch.bytes_read + dispatch.bytes_written,
        "iteration": event.trip,
    }
