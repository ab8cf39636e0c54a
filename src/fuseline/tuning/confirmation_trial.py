"""The final plan against the default once more, in a process of its own, with more rounds than a trial has."""

from __future__ import annotations

from collections.abc import Callable, Mapping

import msgspec

from fuseline.errors import FuselineError
from fuseline.report.tuning_records import Confirmed
from fuseline.tuning.setting import SearchSetting
from fuseline.tuning.trial import Evaluator, Interval, Trial, TrialOutcome

ROUNDS = 40
SECONDS = 60.0
"""At the most."""


def confirmation(
    setting: SearchSetting, configuration: Mapping[str, str], evaluate: Callable[[SearchSetting], Evaluator]
) -> Confirmed:
    """What a fresh evaluator says of `configuration` against the default. Raises the error of a trial that fails."""
    evaluator = evaluate(msgspec.structs.replace(setting, rounds=max(ROUNDS, setting.rounds)))
    try:
        evaluator.submit(Trial(number=0, configuration=dict(configuration), incumbent={}, budget_seconds=SECONDS))
        outcome: TrialOutcome | None = None
        while outcome is None:
            outcome = evaluator.outcome()
    finally:
        evaluator.close()
    if outcome.error is not None:
        raise FuselineError(outcome.error["code"], outcome.error["message"], node=outcome.error.get("node"))
    ratio = outcome.ratio or Interval(1.0, 1.0, 1.0)
    return Confirmed(
        ratio=ratio.value,
        low=ratio.low,
        high=ratio.high,
        seconds=outcome.seconds,
        default_seconds=outcome.seconds / ratio.value if ratio.value else 0.0,
        faster=ratio.high < 1,
    )
