"""Searches as studies of Optuna."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import msgspec
import optuna
import pytest
from optuna.trial import TrialState

from fuseline.errors import FuselineError
from fuseline.tuning.knob import Knob
from fuseline.tuning.study import ABOUT, About, open_study
from fuseline.tuning.study_file import opened
from fuseline.tuning.trial import Interval, TrialOutcome

KNOBS = (Knob("a", "plan", ("join", "apart")), Knob("b", "dedup", ("none", "exact")))
GIVEN = About(
    model="m",
    graph="g",
    target="t",
    machine="k",
    objectives=("time",),
    knobs=tuple((knob.name, knob.choices) for knob in KNOBS),
    seed=3,
    window=2,
)


def outcome(number: int, **fields: Any) -> TrialOutcome:
    given: dict[str, Any] = {"state": "complete", "seconds": 0.5, "ratio": Interval(1.0, 0.5, 2.0), **fields}
    return TrialOutcome(number=number, **given)


def test_what_was_begun_is_there_after_a_kill(tmp_path: Path):
    study, _ = open_study(opened(tmp_path / "s.db"), GIVEN, KNOBS, where="s.db")
    for number, configuration in enumerate([{}, {"a": "apart"}, {"b": "exact"}]):
        study.begin(number, configuration, 0)
    study.arrive(outcome(1))
    study.arrive(outcome(0))
    study.tell(outcome(0), (0.5,))
    again, about = open_study(opened(tmp_path / "s.db"), GIVEN, KNOBS, where="s.db", resume=True)
    assert about == GIVEN and again.name == study.name
    assert [begun.configuration for begun in again.begun.values()] == [{}, {"a": "apart"}, {"b": "exact"}]
    assert [begun.outcome for begun in again.begun.values()] == [outcome(0), outcome(1), None]
    again.tell(outcome(0), (0.5,))  # told before: nothing happens
    again.tell(outcome(1), None)
    again.arrive(outcome(2))
    again.tell(outcome(2), (0.25,))
    states = [
        trial.state for trial in optuna.load_study(study_name=study.name, storage=opened(tmp_path / "s.db")).trials
    ]
    assert states == [TrialState.COMPLETE, TrialState.FAIL, TrialState.COMPLETE]


def test_optuna_has_choices_values_and_states():
    storage = optuna.storages.InMemoryStorage()
    study, _ = open_study(storage, GIVEN, KNOBS, where="m")
    for number, (state, values) in enumerate([("complete", (0.5,)), ("pruned", None), ("wrong", None)]):
        study.begin(number, {"a": "apart"}, 0)
        study.tell(outcome(number, state=state), values)
    trials = optuna.load_study(study_name=study.name, storage=storage).trials
    assert [trial.state.name for trial in trials] == ["COMPLETE", "PRUNED", "FAIL"]
    assert trials[0].params == {"a": "apart", "b": "none"} and trials[0].values == [0.5]


def test_another_search_begins_a_study_beside_the_first():
    storage = optuna.storages.InMemoryStorage()
    first, _ = open_study(storage, GIVEN, KNOBS, where="m")
    second, _ = open_study(storage, GIVEN, KNOBS, where="m")
    assert first.name != second.name
    last, _ = open_study(storage, GIVEN, KNOBS, where="m", resume=True)
    assert last.name == second.name


def test_there_must_be_one_to_resume():
    with pytest.raises(FuselineError, match="E1001.*no study of g t k to resume"):
        open_study(optuna.storages.InMemoryStorage(), GIVEN, KNOBS, where="m", resume=True)


@pytest.mark.parametrize(
    "other", [{"objectives": ("code_bytes",)}, {"knobs": (("a", ("join",)),)}, {"options": {"threads": 1}}]
)
def test_another_search_is_not_resumed(other: dict[str, Any]):
    storage = optuna.storages.InMemoryStorage()
    open_study(storage, GIVEN, KNOBS, where="m")
    with pytest.raises(FuselineError, match=f"E1001.*its {next(iter(other))} differ"):
        open_study(storage, msgspec.structs.replace(GIVEN, **other), KNOBS, where="m", resume=True)


def test_the_seed_and_the_window_of_the_first_hold():
    storage = optuna.storages.InMemoryStorage()
    open_study(storage, GIVEN, KNOBS, where="m")
    _, about = open_study(storage, msgspec.structs.replace(GIVEN, seed=9, window=8), KNOBS, where="m", resume=True)
    assert (about.seed, about.window) == (3, 2)


@pytest.mark.parametrize("given", [None, {"schema": 0}, {"schema": 1, "model": 3}, "text"])
def test_a_study_of_another_version_is_refused(given: object):
    storage = optuna.storages.InMemoryStorage()
    study = optuna.create_study(storage=storage, study_name="g t k")
    if given is not None:
        study.set_user_attr(ABOUT, given)
    with pytest.raises(FuselineError, match="E1001.*cannot be read"):
        open_study(storage, GIVEN, KNOBS, where="m", resume=True)
