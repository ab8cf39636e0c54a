"""What choices did by themselves, and which cannot be."""

from __future__ import annotations

import pytest

from fuseline.tuning.attributed import Places
from fuseline.tuning.effects import Effects
from fuseline.tuning.goal import Goal
from fuseline.tuning.told import Told, TrialsTold
from fuseline.tuning.trial import Trial, TrialOutcome
from tests.unit.tuning.landscape import GROUPS, KNOBS, outcome_of

PLACES = Places.of(KNOBS, GROUPS)


def told(*configurations: dict[str, str], attributed: bool = True) -> list[Told]:
    trials = TrialsTold(Goal())
    for number, configuration in enumerate(configurations):
        trial = Trial(number=number, configuration=configuration, incumbent={})
        trials.add(configuration, 0, outcome_of(trial, attributed=attributed))
    return trials.trials


def test_choices_about_different_dispatches_are_told_apart():
    base, trial = told({}, {"plan/1": "apart", "plan/3": "apart"})
    effects = Effects(KNOBS, PLACES)
    effects.add(trial, base, base.outcome.seconds)
    assert effects.gains["plan/1", "apart"] == pytest.approx(0.3 / 6)
    assert effects.gains["plan/3", "apart"] == pytest.approx(-0.4 / 6)


def test_choices_about_the_same_dispatches_are_not():
    base, trial = told({}, {"plan/1": "apart", "kernel/k": "y"})
    effects = Effects(KNOBS, PLACES)
    effects.add(trial, base, base.outcome.seconds)
    assert effects.gains == {}


def test_a_choice_alone_is_known_by_the_whole_run():
    base, trial = told({}, {"dedup": "none"}, attributed=False)
    effects = Effects(KNOBS, PLACES)
    effects.add(trial, base, base.outcome.seconds)
    assert effects.gains["dedup", "none"] == pytest.approx(0.05)


def test_a_choice_that_is_taken_back_is_a_choice():
    first, second = told({"plan/3": "apart"}, {})
    effects = Effects(KNOBS, PLACES)
    assert effects.differences(second, first) == {"plan/3": "join"}


def test_the_combination_takes_the_best_of_what_clashes():
    effects = Effects(KNOBS, PLACES)
    effects.gains = {
        ("plan/1", "apart"): 0.02,
        ("kernel/k", "y"): 0.05,
        ("plan/4", "apart"): 0.01,
        ("dedup", "none"): 0.1,
    }
    assert effects.combination() == {"dedup": "none", "kernel/k": "y", "plan/4": "apart"}


def test_what_is_impossible_or_loses_is_not_combined():
    effects = Effects(KNOBS, PLACES)
    effects.gains = {("plan/1", "apart"): 0.02, ("plan/3", "apart"): -0.1}
    effects.impossible = {("plan/1", "apart")}
    assert effects.combination() == {}


def failed(node: str, *names: str) -> tuple[Told, Told]:
    error = {"code": "E0703", "message": "no", "node": node}
    outcome = TrialOutcome(number=1, state="failed", error=error)
    configuration = dict.fromkeys(names, "apart")
    base = Told(0, {}, 0, TrialOutcome(number=0, state="complete", seconds=1.0), 1.0, (1.0,))
    return Told(1, configuration, 0, outcome, None, None), base


def test_one_choice_that_fails_is_impossible():
    effects = Effects(KNOBS, PLACES)
    assert effects.blame(*failed("elsewhere", "plan/2")) == []
    assert effects.impossible == {("plan/2", "apart")}


def test_the_nodes_of_the_error_say_which_of_several_it_was():
    effects = Effects(KNOBS, PLACES)
    rest = effects.blame(*failed("n2, n7", "plan/1", "plan/2", "plan/3"))
    assert effects.impossible == {("plan/2", "apart")}
    assert rest == [{"plan/1": "apart", "plan/3": "apart"}]


def test_without_a_trace_halves_are_tried():
    effects = Effects(KNOBS, PLACES)
    rest = effects.blame(*failed("", "plan/1", "plan/2", "plan/3"))
    assert effects.impossible == set()
    assert rest == [{"plan/1": "apart"}, {"plan/2": "apart", "plan/3": "apart"}]
