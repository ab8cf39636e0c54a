"""Knobs that are an option."""

from __future__ import annotations

from fuseline.compile_options import CHOICES
from fuseline.tuning.spaces.single import dedup_knob, threads_knob


def test_each_level_of_sharing_is_a_choice_once():
    assert sorted(dedup_knob("none").choices) == sorted(CHOICES["dedup"])
    assert dedup_knob("none").choices[0] == "none"


def test_threads_start_from_what_there_are():
    knob = threads_knob(4)
    assert knob is not None and knob.choices == ("4", "2", "1")


def test_one_thread_leaves_no_choice():
    assert threads_knob(1) is None
