"""Trials on one scale."""

from __future__ import annotations

from typing import Any

from fuseline.tuning.goal import Goal
from fuseline.tuning.told import TrialsTold
from fuseline.tuning.trial import Interval, TrialOutcome


def outcome(number: int, ratio: float | None = None, *, wide: float = 0.001, **fields: Any) -> TrialOutcome:
    interval = None if ratio is None else Interval(ratio, ratio - wide, ratio + wide)
    given: dict[str, Any] = {"number": number, "state": "complete", "seconds": 1.0, "ratio": interval, **fields}
    return TrialOutcome(**given)


def test_ratios_against_other_trials_multiply():
    trials = TrialsTold(Goal())
    trials.add({}, 0, outcome(0, 1.0, seconds=2.0))
    trials.add({"a": "1"}, 0, outcome(1, 0.5))
    third = trials.add({"a": "1", "b": "1"}, 1, outcome(2, 0.5))
    assert third.relative == 0.25 and third.values == (0.5,)
    assert trials.best is third


def test_what_is_not_surely_faster_is_not_better():
    trials = TrialsTold(Goal())
    first = trials.add({}, 0, outcome(0, 1.0))
    trials.add({"a": "1"}, 0, outcome(1, 0.99, wide=0.02))
    assert trials.best is first


def test_what_was_given_up_or_failed_has_no_values():
    trials = TrialsTold(Goal())
    trials.add({}, 0, outcome(0, 1.0))
    for state in ("pruned", "failed", "wrong"):
        told = trials.add({"a": state}, 0, outcome(len(trials.trials), 0.1, state=state))
        assert not told.complete
    assert trials.best is trials.trials[0] and trials.count("failed", "wrong") == 2


def test_predicted_times_are_compared_as_they_are():
    trials = TrialsTold(Goal())
    trials.add({}, 0, outcome(0, seconds=4.0))
    assert trials.add({"a": "1"}, 0, outcome(1, seconds=3.0)).relative == 0.75


def test_the_front_has_what_no_other_beats():
    trials = TrialsTold(Goal(("time", "transient_bytes")))
    for number, (seconds, memory) in enumerate([(4.0, 4), (3.0, 5), (5.0, 3), (4.0, 5), (3.0, 5)]):
        trials.add({"a": str(number)}, 0, outcome(number, seconds=seconds, transient_bytes=memory))
    assert [told.number for told in trials.front()] == [1, 0, 2]


def test_memory_first_and_time_between_equals():
    trials = TrialsTold(Goal(("transient_bytes", "time")))
    for number, (seconds, memory) in enumerate([(4.0, 4), (5.0, 3), (4.5, 3)]):
        trials.add({}, 0, outcome(number, seconds=seconds, transient_bytes=memory))
    assert trials.best is not None and trials.best.number == 2


def test_of_equals_the_one_that_changes_least_is_kept():
    trials = TrialsTold(Goal())
    trials.add({}, 0, outcome(0, 1.0))
    trials.add({"a": "1"}, 0, outcome(1, 0.8))
    trials.add({"a": "1", "b": "1", "c": "1"}, 1, outcome(2, 0.9985))
    assert trials.best is trials.trials[2] and trials.simplest() is trials.trials[1]
