"""Objectives."""

from __future__ import annotations

import pytest

from fuseline.errors import FuselineError
from fuseline.tuning.goal import Goal, parse_goal
from fuseline.tuning.trial import TrialOutcome


def test_values_come_in_the_order_of_the_objectives():
    outcome = TrialOutcome(number=0, state="complete", seconds=9.0, transient_bytes=10, code_bytes=20)
    assert parse_goal("code_bytes, time").values(outcome, 0.5) == (20.0, 0.5)
    assert Goal(("transient_bytes",)).values(outcome, 0.5) == (10.0,)


def test_which_counts_first():
    assert parse_goal("time").of_time and not parse_goal("time").several
    assert parse_goal("code_bytes,time").several and not parse_goal("code_bytes,time").of_time


@pytest.mark.parametrize("text", ["", "speed", "time,time", "time,"])
def test_another_text_is_refused(text: str):
    with pytest.raises(FuselineError, match="E0501.*objective cannot be"):
        parse_goal(text)
