"""The final configuration against the default once more: in fresh processes, on inputs that no trial had.

A process has its own luck: where code and memory lie makes two copies of one program differ, all the time that both
run. So a process is to this comparison what a round is to a trial: one ratio, the median of its own rounds; and the
interval of 95 % is that of a sign test over processes (`sign_bounds`).

    process 1  2  3  4  5  6
    ratio   .96 .95 .97 .96 .94 .96      all below 1: faster, after six
            .99 1.01 .98 1.00 ..         up to `PROCESSES`, then no difference

Only what is faster here is kept; so the plan that a search writes is slower than the default in at most 2.5 of 100
searches that would have had nothing to find.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Mapping

import msgspec
import numpy as np

from fuseline.errors import FuselineError
from fuseline.report.tuning_records import Confirmed, RegionRow
from fuseline.tuning.attribution import DispatchTimes, of_several, region_gains
from fuseline.tuning.sequential_ratio import SequentialRatio
from fuseline.tuning.setting import SearchSetting
from fuseline.tuning.sign_bounds import LEAST_ROUNDS
from fuseline.tuning.trial import Evaluator, Trial, TrialOutcome

PROCESSES = 10
"""At the most; six where they agree."""

BUDGET_SECONDS = 5.0
"""Of measuring, in each."""

LIMIT_SECONDS = 240.0
"""After which no further process is begun, but for the first six."""

FRESH_SEEDS = 1_000_003
"""How far the seeds of inputs lie from those of trials."""

Evaluate = Callable[[SearchSetting], Evaluator]


def confirmation(
    setting: SearchSetting,
    configuration: Mapping[str, str],
    evaluate: Evaluate,
    *,
    progress: Callable[[int, int], object] = lambda done, total: None,
    clock: Callable[[], float] = time.monotonic,
) -> Confirmed:
    """What fresh processes say of `configuration` against the default. `evaluate` makes an evaluator that has a new
    one. Raises the error of a trial that fails or is wrong."""
    found, outcomes, end = SequentialRatio(PROCESSES, margin=0.0), list[TrialOutcome](), clock() + LIMIT_SECONDS
    for outcome in _outcomes(setting, configuration, evaluate):
        outcomes.append(outcome)
        if outcome.ratio is None or outcome.ratio.low == outcome.ratio.high:
            break  # the same program, or a target without code
        found.add(outcome.ratio.value, 1.0)
        progress(found.rounds, found.planned)
        if found.done or (found.rounds >= LEAST_ROUNDS and clock() > end):
            break
    found.end()
    return _confirmed(found, outcomes)


def _outcomes(setting: SearchSetting, configuration: Mapping[str, str], evaluate: Evaluate) -> Iterator[TrialOutcome]:
    """One of each process, as long as they are asked for."""
    for number in range(PROCESSES):
        fresh = msgspec.structs.replace(setting, seed=setting.seed + FRESH_SEEDS * (number + 1))
        evaluator = evaluate(fresh)
        try:
            trial = Trial(number=number, configuration=dict(configuration), incumbent={}, budget_seconds=BUDGET_SECONDS)
            evaluator.submit(trial)
            yield _waited(evaluator)
        finally:
            evaluator.close()


def _waited(evaluator: Evaluator) -> TrialOutcome:
    outcome: TrialOutcome | None = None
    while outcome is None:
        outcome = evaluator.outcome(1.0)
    if outcome.error is not None:
        told = outcome.error
        raise FuselineError(
            told["code"], told["message"], node=told.get("node"), hint=told.get("hint"), phase="confirmation"
        )
    return outcome


def _confirmed(found: SequentialRatio, outcomes: list[TrialOutcome]) -> Confirmed:
    interval = found.interval
    seconds = float(np.median([outcome.seconds for outcome in outcomes]))
    verdict = {"faster": "faster", "slower": "slower"}.get(found.verdict, "no difference")
    same = found.rounds == 0
    return Confirmed(
        ratio=1.0 if same else interval.value,
        low=1.0 if same else interval.low,
        high=1.0 if same else interval.high,
        seconds=seconds,
        default_seconds=seconds / interval.value if interval.value else 0.0,
        faster=not same and verdict == "faster",
        verdict=verdict,
        processes=len(outcomes),
        regions=_regions(outcomes),
    )


def _regions(outcomes: list[TrialOutcome]) -> tuple[RegionRow, ...]:
    """What each region gained, by the dispatches that all processes timed."""
    times = of_several([DispatchTimes.of(outcome) for outcome in outcomes])
    return tuple(
        RegionRow(
            default=gain.incumbent,
            tuned=gain.trial,
            gain_seconds=gain.gain_seconds,
            error_seconds=gain.error_seconds,
            layers=gain.layers,
        )
        for gain in region_gains(times)
    )
