"""A diff names what changed, and nothing for equal records."""

from __future__ import annotations

import copy

import msgspec

from fuseline.report.difference import difference, difference_lines
from tests.unit.report.records import RECORD


def test_equal_records_have_no_difference():
    found = difference(RECORD, copy.deepcopy(RECORD))
    assert found.empty
    assert difference_lines(found) == []


def test_seconds_are_no_difference():
    assert difference(RECORD, msgspec.structs.replace(RECORD, phase_seconds={"frontend": 9.0})).empty


def test_a_vanished_dispatch_and_a_flipped_decision_are_named():
    flipped = msgspec.structs.replace(RECORD.decisions[0], verdict="missed", code="scratch")
    after = msgspec.structs.replace(
        RECORD, dispatches=RECORD.dispatches[:1], decisions=[flipped, *RECORD.decisions[1:]], statistics={**RECORD.statistics, "dispatches": 1}
    )
    lines = difference_lines(difference(RECORD, after))
    assert "dispatches: 2 -> 1" in lines
    assert "- dispatch contraction [MatMul_2]" in lines
    assert any(line.startswith("- fused") for line in lines)
    assert any(line.startswith("+ missed") and "scratch" in line for line in lines)


def test_what_was_not_saved_is_not_compared():
    saved = msgspec.structs.replace(RECORD, dispatches=[], decisions=[])
    assert difference(saved, RECORD).empty
    assert difference(RECORD, saved).empty


def test_a_new_statistic_is_shown_from_none():
    after = msgspec.structs.replace(RECORD, statistics={**RECORD.statistics, "edges": {"fused": 1, "missed": {"scratch": 2}}})
    found = difference(RECORD, after).statistics
    assert found == {"edges.missed.consumer-reduces": (1, None), "edges.missed.scratch": (None, 2)}
