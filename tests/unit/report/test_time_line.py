"""Time lines in the format that Perfetto reads."""

from __future__ import annotations

import json

from fuseline.report.time_line import Moment, TimeSpan, trace_json

SPANS = [
    TimeSpan("inner", "pass", 1, 2_000, 3_500, {"why": "</script>\u2028\"'"}),
    TimeSpan("outer", "phase", 1, 1_000, 9_000, {}),
]


def test_bars_begin_with_the_first_and_outer_ones_come_before_inner() -> None:
    found = json.loads(trace_json("a model", {1: "caller"}, SPANS))
    bars = [event for event in found["traceEvents"] if event["ph"] == "X"]
    assert [(bar["name"], bar["ts"], bar["dur"], bar["tid"]) for bar in bars] == [
        ("outer", 0.0, 8.0, 2),
        ("inner", 1.0, 1.5, 2),
    ]
    assert bars[1]["args"] == SPANS[0].details and bars[1]["cat"] == "pass"


def test_tracks_keep_their_order() -> None:
    found = json.loads(trace_json("a model", {4: "caller", 2: "worker"}, SPANS))["traceEvents"]
    orders = {event["tid"]: event["args"] for event in found if event["name"] == "thread_sort_index"}
    names = {event["tid"]: event["args"]["name"] for event in found if event["name"] == "thread_name"}
    assert orders == {5: {"sort_index": 0}, 3: {"sort_index": 1}} and names == {5: "caller", 3: "worker"}
    assert [event["args"]["name"] for event in found if event["name"] == "process_name"] == ["a model"]


def test_a_moment_without_spans_is_a_document() -> None:
    found = json.loads(trace_json("", {}, [], [Moment("error E0106", 0, 5_000, {"why": "x"})]))
    last = found["traceEvents"][-1]
    assert (last["ph"], last["ts"]) == ("i", 0.0)
