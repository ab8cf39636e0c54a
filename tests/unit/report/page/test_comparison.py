"""Two sides of a page: what differs, and the time of both."""

from __future__ import annotations

from dataclasses import replace

import fuseline
from fuseline.report.page import Side
from fuseline.report.page.comparison import comparison
from tests.small_models import attention


def test_a_level_of_fusion_against_another() -> None:
    sides = [
        Side(level, fuseline.compile(attention(2, 5), threads=1, fusion=level, cache=False).record)
        for level in ("default", "none")
    ]
    found = comparison(*sides)
    assert found["changed"] or found["appeared"]
    flips = found["flips"]
    assert any(flip["was"] in ("fused by elementwise-epilogue", "fused by root-chain") for flip in flips)
    for flip in flips:
        for before, after in flip["edges"]:
            assert (before >= 0) == (flip["was"] != "no candidate") and (after >= 0) == (flip["now"] != "no candidate")
    assert found["total"]["measured"] is False and all(value > 0 for value in found["total"]["seconds"])
    measured = comparison(replace(sides[0], total_seconds=2.0), replace(sides[1], total_seconds=3.0))["total"]
    assert measured == {"measured": True, "seconds": [2.0, 3.0]}


def test_nothing_differs_from_itself() -> None:
    side = Side("x", fuseline.compile(attention(2, 5), threads=1, cache=False).record)
    found = comparison(side, side)
    assert not (found["changed"] or found["appeared"] or found["vanished"] or found["flips"] or found["statistics"])
