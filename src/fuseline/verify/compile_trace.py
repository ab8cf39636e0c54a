"""The time line of a compile as a file for Perfetto: phases, passes and kernels, with the processes that made these."""

from __future__ import annotations

from collections.abc import Sequence

from fuseline.report.time_line import TimeSpan, trace_json
from fuseline.timeline import Span


def compile_trace(title: str, spans: Sequence[Span]) -> bytes:
    """The file for the spans of one compile, a track per process and thread. What ended a span that failed is in its
    `args`."""
    places = list(dict.fromkeys((span.pid, span.ident) for span in sorted(spans, key=lambda span: span.begin)))
    tracks = {number: "compiler" if number == 0 else f"process {number}" for number in range(len(places))}
    number_of = {place: number for number, place in enumerate(places)}
    bars = [
        TimeSpan(span.name, span.category, number_of[span.pid, span.ident], span.begin, span.end, _about(span))
        for span in spans
    ]
    return trace_json(f"compile {title}", tracks, bars)


def _about(span: Span) -> dict[str, object]:
    return {**span.details, "error": span.error} if span.error else span.details
