"""Time lines in the Trace Event Format, which Perfetto (ui.perfetto.dev) and chrome://tracing open.

Source: "Trace Event Format", the Chromium project; complete events (`ph` X), names of tracks (M), moments (i). Process
and thread 0 are the idle thread to Perfetto, which showed thread 0 as thread 1 before 2025-09 (google/perfetto#2278):
numbers begin with 1.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any, NamedTuple

import msgspec

PROCESS = 1
FIRST_THREAD = 1


class TimeSpan(NamedTuple):
    """A bar of a time line: from `begin` to `end` nanoseconds, on a `track`. Spans of one track lie apart, or one
    inside the other. `details` are shown where it is selected."""

    name: str
    category: str
    track: int
    begin: int
    end: int
    details: Mapping[str, Any]


class Moment(NamedTuple):
    """Something that has no length: why a run ended, say."""

    name: str
    track: int
    at: int
    details: Mapping[str, Any]


def trace_json(
    title: str, tracks: Mapping[int, str], spans: Iterable[TimeSpan], moments: Iterable[Moment] = ()
) -> bytes:
    """The document: `title` names the process, `tracks` each track by number, in that order. Time begins with the first
    span."""
    spans, moments = list(spans), list(moments)
    start = min([*(span.begin for span in spans), *(moment.at for moment in moments)], default=0)
    names = [_named("process_name", min(tracks, default=0), title), *_track_names(tracks)]
    bars = [_complete(span, start) for span in sorted(spans, key=lambda span: (span.begin, -span.end))]
    points = [_instant(moment, start) for moment in moments]
    return msgspec.json.encode({"displayTimeUnit": "ns", "traceEvents": [*names, *bars, *points]})


def _track_names(tracks: Mapping[int, str]) -> Iterable[dict[str, Any]]:
    for position, (track, name) in enumerate(tracks.items()):
        yield _named("thread_name", track, name)
        yield {"ph": "M", **_at(track), "name": "thread_sort_index", "args": {"sort_index": position}}


def _named(what: str, track: int, name: str) -> dict[str, Any]:
    return {"ph": "M", **_at(track), "name": what, "args": {"name": name}}


def _at(track: int) -> dict[str, int]:
    return {"pid": PROCESS, "tid": track + FIRST_THREAD}


def _complete(span: TimeSpan, start: int) -> dict[str, Any]:
    return {
        "ph": "X",
        **_at(span.track),
        "name": span.name,
        "cat": span.category,
        "ts": (span.begin - start) / 1e3,
        "dur": (span.end - span.begin) / 1e3,
        "args": dict(span.details),
    }


def _instant(moment: Moment, start: int) -> dict[str, Any]:
    at = (moment.at - start) / 1e3
    place = {"ph": "i", "s": "p", **_at(moment.track)}
    return {**place, "name": moment.name, "cat": "moment", "ts": at, "args": dict(moment.details)}
