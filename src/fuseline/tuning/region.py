"""Regions: knobs that change the same dispatches, directly or through others. Each is searched by itself, by a sampler
of Optuna that sees the time of its dispatches only; what is best of each is combined."""

from __future__ import annotations

import hashlib
import warnings
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import optuna
from optuna.distributions import CategoricalDistribution
from optuna.study import StudyDirection
from optuna.trial import TrialState, create_trial

from fuseline.tuning.attributed import Places
from fuseline.tuning.knob import Knob

MOST_CHANGES = 3
"""Of one region in one trial: what is proposed stays near what is known to be good."""

_RANDOM_TRIALS = 4
"""Without which the sampler knows too little to propose."""


class Region:
    """Some knobs and what their choices came to."""

    def __init__(self, knobs: Sequence[Knob], objectives: int = 1) -> None:
        self.knobs = tuple(knobs)
        self._space = {knob.name: CategoricalDistribution(knob.choices) for knob in knobs}
        self._study = optuna.create_study(directions=[StudyDirection.MINIMIZE] * objectives)
        self._known = 0

    def add(self, configuration: Mapping[str, str], values: Sequence[float]) -> None:
        """A trial in which the knobs had these choices."""
        self._study.add_trial(
            create_trial(
                state=TrialState.COMPLETE,
                values=list(values),
                params=self.choices(configuration),
                distributions=dict[str, Any](self._space),
            )
        )
        self._known += 1

    def choices(self, configuration: Mapping[str, str]) -> dict[str, str]:
        """The choice of each of its knobs."""
        return {knob.name: configuration.get(knob.name, knob.choices[0]) for knob in self.knobs}

    def proposal(self, near: Mapping[str, str], seed: int) -> dict[str, str]:
        """Changes to the configuration `near`: those that the sampler proposes, `MOST_CHANGES` at the most."""
        self._study.sampler = _sampler(seed)
        trial = self._study.ask(dict[str, Any](self._space))
        self._study.tell(trial, state=TrialState.FAIL)
        now = self.choices(near)
        changes = {name: str(choice) for name, choice in trial.params.items() if choice != now[name]}
        kept = sorted(changes, key=lambda name: digest_number(seed, name))[:MOST_CHANGES]
        return {name: changes[name] for name in changes if name in kept}


def regions(knobs: Iterable[Knob], places: Places) -> list[list[Knob]]:
    """The knobs by the dispatches that they change; those that change all of them in one region, the first."""
    everywhere: list[Knob] = []
    found: list[list[Knob]] = []
    for knob in knobs:
        if places.everywhere(knob.name):
            everywhere.append(knob)
            continue
        touched = [region for region in found if any(places.overlap(knob.name, other.name) for other in region)]
        found = [region for region in found if region not in touched]
        found.append([*(other for region in touched for other in region), knob])
    return [everywhere, *found] if everywhere else found


def digest_number(*values: object) -> int:
    """A number of 32 bits that depends on nothing but `values`."""
    return int.from_bytes(hashlib.blake2b(repr(values).encode(), digest_size=4).digest())


def _sampler(seed: int) -> optuna.samplers.BaseSampler:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", optuna.exceptions.ExperimentalWarning)
        return optuna.samplers.TPESampler(seed=seed, multivariate=True, n_startup_trials=_RANDOM_TRIALS)
