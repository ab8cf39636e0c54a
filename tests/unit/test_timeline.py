"""Spans are kept while somebody records them, also those of forks."""

from __future__ import annotations

import os

import pytest

from fuseline import timeline
from fuseline.targets.cpu.link.workers import shared


def test_nothing_is_kept_that_nobody_records() -> None:
    with timeline.span("pass", "a"):
        pass
    assert timeline.taken() == []


def test_spans_come_in_the_order_of_their_ends_with_what_ended_them() -> None:
    with timeline.recording() as found, pytest.raises(KeyError), timeline.span("phase", "outer", size=3):
        with timeline.span("pass", "inner"):
            pass
        raise KeyError("x")
    inner, outer = found.spans
    assert (inner.name, inner.error) == ("inner", "") and (outer.name, outer.details) == ("outer", {"size": 3})
    assert outer.begin <= inner.begin <= inner.end <= outer.end and outer.error == "KeyError: 'x'"
    with timeline.recording() as other:
        pass
    assert other.spans == []


def test_spans_of_forks_come_back_once() -> None:
    def work(number: int) -> int:
        with timeline.span("kernel", str(number)):
            return number * number

    with timeline.recording() as found:
        with timeline.span("phase", "before"):
            pass
        assert shared(work, 9, 3) == [number * number for number in range(9)]
    names = sorted(span.name for span in found.spans)
    assert names == sorted([*map(str, range(9)), "before"])
    assert {span.pid for span in found.spans if span.name == "before"} == {os.getpid()}
