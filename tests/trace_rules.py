"""What a file in the Trace Event Format must be like, as strictly as any of its readers has it.

Sources: "Trace Event Format" (the Chromium project); Perfetto's FAQ (bars of a thread nest or lie apart, others are
dropped); google/perfetto#394 and thoren-d/tracing-chrome#32 (process and thread 0 are the idle thread to readers).
"""

from __future__ import annotations

import json
from collections import defaultdict
from collections.abc import Iterator, Sequence
from typing import Any

Event = dict[str, Any]

_NAMES = {"process_name": ("name", str), "thread_name": ("name", str), "thread_sort_index": ("sort_index", int)}


def trace_problems(data: bytes) -> list[str]:
    """What is wrong with a file: empty where nothing is."""
    document = json.loads(data.decode("utf-8"), object_pairs_hook=_once, parse_constant=_no_number)
    if not isinstance(document, dict) or document.get("displayTimeUnit") not in ("ms", "ns"):
        return ["no object with a displayTimeUnit of ms or ns"]
    events: list[Event] = document["traceEvents"]
    wrong = [f"event {number}: {why}" for number, event in enumerate(events) for why in _of_event(event)]
    return wrong or [*_of_names(events), *_of_order(events), *_of_nesting(events)]


def _once(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    found = dict(pairs)
    assert len(found) == len(pairs), f"a key twice: {[name for name, _ in pairs]}"
    return found


def _no_number(text: str) -> Any:
    raise AssertionError(f"{text} is no JSON")


def _of_event(event: Event) -> Iterator[str]:
    for name, kind in (("name", str), ("ph", str), ("pid", int), ("tid", int), ("args", dict)):
        if type(event.get(name)) is not kind:
            yield f"{name} is {event.get(name)!r}"
            return
    if event["pid"] < 1 or event["tid"] < 1:
        yield "process or thread 0"
    if event["ph"] == "M":
        yield from _of_metadata(event)
    elif event["ph"] in ("X", "i"):
        yield from _of_time(event)
    else:
        yield f"phase {event['ph']!r} is none that is written here"


def _of_metadata(event: Event) -> Iterator[str]:
    field, kind = _NAMES.get(event["name"], ("", object))
    if type(event["args"].get(field)) is not kind:
        yield f"{event['name']} with {event['args']}"


def _of_time(event: Event) -> Iterator[str]:
    if type(event.get("cat")) is not str or not event["cat"]:
        yield "no category"
    for name in ("ts", "dur") if event["ph"] == "X" else ("ts",):
        value = event.get(name)
        if not isinstance(value, int | float) or isinstance(value, bool) or value < 0:
            yield f"{name} is {value!r}"
        elif abs(value * 1e3 - round(value * 1e3)) > 1e-3:
            yield f"{name} is {value!r}, no whole nanoseconds"
    if event["ph"] == "i" and event.get("s") not in ("g", "p", "t"):
        yield f"scope {event.get('s')!r}"


def _of_names(events: Sequence[Event]) -> Iterator[str]:
    """Each process and thread has one name, before it does anything."""
    named: set[tuple[Any, ...]] = set()
    for event in events:
        place, process = (event["pid"], event["tid"]), ("process_name", event["pid"])
        if event["ph"] == "M":
            what = process if event["name"] == "process_name" else (event["name"], *place)
            if what in named:
                yield f"{what} twice"
            named.add(what)
        elif process not in named or ("thread_name", *place) not in named:
            yield f"{event['name']} on {place}, which has no name yet"


def _of_order(events: Sequence[Event]) -> Iterator[str]:
    """Time does not run back in the bars, as whoever reads them in one go wants it."""
    times = [event["ts"] for event in events if event["ph"] == "X"]
    if times != sorted(times):
        yield "bars are not in the order of time"


def _of_nesting(events: Sequence[Event]) -> Iterator[str]:
    """Bars of a thread lie apart, or one inside the other that stands before it."""
    tracks: dict[tuple[int, int], list[Event]] = defaultdict(list)
    for event in events:
        if event["ph"] == "X":
            tracks[event["pid"], event["tid"]].append(event)
    for place, bars in tracks.items():
        open_until: list[int] = []
        for bar in bars:
            begin, length = round(bar["ts"] * 1e3), round(bar["dur"] * 1e3)
            while open_until and open_until[-1] <= begin:
                open_until.pop()
            if open_until and begin + length > open_until[-1]:
                yield f"{bar['name']} on {place} ends after the bar that it begins in"
            open_until.append(begin + length)
