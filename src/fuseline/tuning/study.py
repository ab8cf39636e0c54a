"""A search as a study of Optuna: every trial is in it from the moment it is begun, and its outcome as soon as it
arrives, so that a search that was killed goes on where it was.

    begin     RUNNING, with its choices
    arrive    RUNNING, with its outcome: earlier trials are told first
    tell      COMPLETE, PRUNED or FAIL

The choices are Optuna's parameters, so that its dashboard and its importances have them; what else a trial is lies in
its user attributes.
"""

from __future__ import annotations

import warnings
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import msgspec
import optuna
from optuna.distributions import CategoricalDistribution
from optuna.study import StudyDirection
from optuna.trial import FrozenTrial, TrialState, create_trial

from fuseline.errors import FuselineError
from fuseline.tuning.knob import Knob
from fuseline.tuning.trial import TrialOutcome

SCHEMA = 1
"""Of what user attributes hold."""

ABOUT, AGAINST, OUTCOME = "fuseline", "against", "outcome"

_ENDS = {"pruned": TrialState.PRUNED, "failed": TrialState.FAIL, "wrong": TrialState.FAIL}
_MOST_NAMES = 1000


class About(msgspec.Struct, frozen=True, kw_only=True):
    """What a study is of; it goes on only with a search of the same.

    Attributes:
        knobs: with their choices. window: trials that may be under way at a time. options: of every compile.
    """

    model: str
    graph: str
    target: str
    machine: str
    objectives: tuple[str, ...]
    knobs: tuple[tuple[str, tuple[str, ...]], ...]
    options: dict[str, Any] = {}
    seed: int = 0
    window: int = 1
    schema: int = SCHEMA


@dataclass(frozen=True, slots=True)
class Begun:
    """A trial that the study has: its choices, the trial it is compared with, and what came of it, once that is
    known."""

    configuration: dict[str, str]
    against: int
    outcome: TrialOutcome | None


class Study:
    """One study; `begun` are the trials that an earlier process left in it, by number."""

    def __init__(self, study: optuna.Study, storage: optuna.storages.BaseStorage, knobs: Sequence[Knob]) -> None:
        self._study, self._storage, self._knobs = study, storage, tuple(knobs)
        self._study_id = storage.get_study_id_from_name(study.study_name)
        self._space = {knob.name: CategoricalDistribution(knob.choices) for knob in knobs}
        trials = storage.get_all_trials(self._study_id, deepcopy=False)
        self._ids = {
            number: storage.get_trial_id_from_study_id_trial_number(self._study_id, number)
            for number in range(len(trials))
        }
        self._ended = {trial.number for trial in trials if trial.state.is_finished()}
        self.begun = {trial.number: self._begun(trial) for trial in trials}

    @property
    def name(self) -> str:
        """What the storage calls it."""
        return self._study.study_name

    def begin(self, number: int, configuration: Mapping[str, str], against: int) -> None:
        """Trial `number` is about to run."""
        params = {knob.name: configuration.get(knob.name, knob.choices[0]) for knob in self._knobs}
        distributions = dict[str, Any](self._space)
        trial = create_trial(
            state=TrialState.RUNNING, params=params, distributions=distributions, user_attrs={AGAINST: against}
        )
        self._ids[number] = self._storage.create_new_trial(self._study_id, template_trial=trial)

    def arrive(self, outcome: TrialOutcome) -> None:
        """What came of a trial, before it is its turn to be told."""
        self._storage.set_trial_user_attr(self._ids[outcome.number], OUTCOME, msgspec.to_builtins(outcome))

    def tell(self, outcome: TrialOutcome, values: Sequence[float] | None) -> None:
        """The trial is over; `values`: one per objective, None where it does not count."""
        if outcome.number in self._ended:
            return
        if values is None:
            self._study.tell(outcome.number, state=_ENDS.get(outcome.state, TrialState.FAIL))
        else:
            self._study.tell(outcome.number, list(values))
        self._ended.add(outcome.number)

    def _begun(self, trial: FrozenTrial) -> Begun:
        defaults = {knob.name: knob.choices[0] for knob in self._knobs}
        chosen = {name: str(choice) for name, choice in trial.params.items() if choice != defaults.get(name)}
        given = trial.user_attrs.get(OUTCOME)
        outcome = None if given is None else msgspec.convert(given, TrialOutcome)
        return Begun(chosen, int(trial.user_attrs.get(AGAINST, 0)), outcome)


def open_study(
    storage: optuna.storages.BaseStorage, about: About, knobs: Sequence[Knob], *, where: str, resume: bool = False
) -> tuple[Study, About]:
    """The study of a search in `storage`, and what it is of: a new one, or under `resume` the last of the same graph,
    target and machine, whose seed and window hold. `where`: what errors call the storage.

    Raises E1001 where there is none to resume, or it is one of another schema or of another search.
    """
    base = f"{about.graph} {about.target} {about.machine}"
    known = {found.study_name: found for found in storage.get_all_studies()}
    names = [base, *(f"{base} {number}" for number in range(2, _MOST_NAMES))]
    last = next((name for name in reversed(names) if name in known), None)
    if not resume:
        return _created(storage, names[names.index(last) + 1 if last is not None else 0], about, knobs), about
    if last is None:
        hint = "leave --resume out to begin one"
        raise FuselineError("E1001", f"no study of {base} to resume", node=where, hint=hint)
    kept = _about(known[last].user_attrs.get(ABOUT), where)
    _require_same(kept, about, where)
    study = optuna.load_study(study_name=last, storage=storage)
    try:
        return Study(study, storage, knobs), kept
    except (msgspec.ValidationError, ValueError, TypeError) as problem:
        raise _foreign(where, str(problem)) from problem


def _created(storage: optuna.storages.BaseStorage, name: str, about: About, knobs: Sequence[Knob]) -> Study:
    directions = [StudyDirection.MINIMIZE] * len(about.objectives)
    study = optuna.create_study(study_name=name, storage=storage, directions=directions)
    with warnings.catch_warnings():  # supported from Optuna 3.2 on, and called experimental
        warnings.simplefilter("ignore", optuna.exceptions.ExperimentalWarning)
        study.set_metric_names(list(about.objectives))
    study.set_user_attr(ABOUT, msgspec.to_builtins(about))
    return Study(study, storage, knobs)


def _about(given: object, where: str) -> About:
    """What a study says it is of. Raises E1001 where it does not, or in words of another version."""
    schema = given.get("schema") if isinstance(given, dict) else None
    if schema != SCHEMA:
        raise _foreign(where, f"its schema is {schema!r}, this fuseline reads {SCHEMA}")
    try:
        return msgspec.convert(given, About)
    except msgspec.ValidationError as problem:
        raise _foreign(where, str(problem)) from problem


def _require_same(kept: About, about: About, where: str) -> None:
    """Raises E1001 naming the first thing that differs, the seed and the window aside."""
    for name in ("objectives", "knobs", "options"):
        if getattr(kept, name) != getattr(about, name):
            message = f"the study is of another search: its {name} differ"
            hint = "leave --resume out to begin a new one, or search as before: model, options, --space, --objective"
            raise FuselineError("E1001", message, node=where, hint=hint)


def _foreign(where: str, why: str) -> FuselineError:
    hint = "another version of fuseline wrote it: leave --resume out, or give another file: --storage FILE"
    return FuselineError("E1001", f"the study cannot be read: {why}", node=where, hint=hint)
