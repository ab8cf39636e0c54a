"""How much of what trials came to each knob explains."""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from typing import Any

import optuna
from optuna.distributions import CategoricalDistribution
from optuna.importance import PedAnovaImportanceEvaluator
from optuna.trial import create_trial

from fuseline.tuning.knob import Knob
from fuseline.tuning.told import Told

_LEAST_TRIALS = 4


def importance(knobs: Sequence[Knob], trials: Sequence[Told]) -> dict[str, float]:
    """Shares of the first objective by knob, the most important first; nothing where too little is known (PED-ANOVA:
    Watanabe, Bansal and Hutter, 2023)."""
    counted = [told for told in trials if told.values is not None]
    tried = [knob for knob in knobs if len({told.configuration.get(knob.name) for told in counted}) > 1]
    if len(counted) < _LEAST_TRIALS or not tried:
        return {}
    space: dict[str, Any] = {knob.name: CategoricalDistribution(knob.choices) for knob in tried}
    study = optuna.create_study()
    for told in counted:
        params = {knob.name: told.configuration.get(knob.name, knob.choices[0]) for knob in tried}
        assert told.values is not None
        study.add_trial(create_trial(value=told.values[0], params=params, distributions=space))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        found = optuna.importance.get_param_importances(study, evaluator=PedAnovaImportanceEvaluator())
    return {name: float(share) for name, share in found.items() if share > 0}
