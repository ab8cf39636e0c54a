"""Knobs and configurations."""

from __future__ import annotations

from fuseline.tuning.knob import Knob, without_defaults

KNOBS = (Knob("a", "plan", ("join", "apart")), Knob("b", "dedup", ("none", "exact")))


def test_choices_that_are_no_default_come_in_the_order_of_knobs():
    assert list(without_defaults({"b": "exact", "a": "apart"}, KNOBS).items()) == [("a", "apart"), ("b", "exact")]


def test_defaults_and_what_is_no_knob_are_left_out():
    assert without_defaults({"a": "join", "c": "x"}, KNOBS) == {}
