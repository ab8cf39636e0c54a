"""A whole run of `fuseline tune`: the space, the search, the final plan confirmed, and the report."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from contextlib import ExitStack, suppress
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, TypeAlias

import msgspec
import optuna

from fuseline.errors import FuselineError
from fuseline.passes.fusion.plan import parse_plan
from fuseline.report.tuning_records import Confirmed, TrialRow, TuningReport
from fuseline.tuning.attributed import Places
from fuseline.tuning.budget import Budget
from fuseline.tuning.extra import quiet
from fuseline.tuning.goal import Goal
from fuseline.tuning.importance import importance
from fuseline.tuning.knob import SPACES
from fuseline.tuning.machine_kind import machine_kind
from fuseline.tuning.predicted_evaluator import PredictedEvaluator
from fuseline.tuning.recorded import RecordedEvaluator, TrialLog
from fuseline.tuning.search import Search, SearchResult, Watch, default_window
from fuseline.tuning.setting import SearchSetting
from fuseline.tuning.space import Space, has_code, search_space
from fuseline.tuning.study import About, Study, open_study
from fuseline.tuning.study_file import default_file, kept, opened
from fuseline.tuning.told import Told
from fuseline.tuning.trial import Evaluator
from fuseline.tuning.tuned_plan import changes_of, tuned_plan, worth_keeping

LONGEST_SECONDS = 10.0
"""That a trial is measured."""

NO_MACHINE = "none"
"""Where predicted times hold."""

Progress: TypeAlias = Callable[[str, int, int], None]
Evaluate: TypeAlias = Callable[[SearchSetting], Evaluator]
Confirm: TypeAlias = Callable[[SearchSetting, Mapping[str, str]], Confirmed]
"""Measures a configuration against the default afresh."""


@dataclass(frozen=True, kw_only=True)
class Wishes:
    """What a user asks of a search: see `cli/tune.py`. `options`: arguments of `fuseline.compile`; `seed` None: 0, or
    that of the search that is resumed."""

    model: Path
    options: Mapping[str, Any] = field(default_factory=dict[str, Any])
    spaces: Sequence[str] = SPACES
    goal: Goal = field(default_factory=Goal)
    budget: Budget = field(default_factory=Budget)
    seed: int | None = None
    rounds: int = 60
    storage: Path | None = None
    resume: bool = False
    record: Path | None = None
    replay: Path | None = None


@dataclass(frozen=True)
class Tuned:
    """What came of it: the text of the plan, and the report."""

    plan: str
    report: TuningReport

    @property
    def interrupted(self) -> bool:
        """Whether the search was stopped before its budget was spent."""
        return self.report.ended == "interrupted"


class TuningRun:
    """One run. `evaluate` makes what runs trials on a target with code, `confirm` measures the final plan; `watch` is
    told of the search, `progress` of what comes before and after."""

    def __init__(
        self,
        wishes: Wishes,
        evaluate: Evaluate,
        confirm: Confirm,
        *,
        watch: Callable[[Watch], object] = lambda watch: None,
        progress: Progress = lambda phase, done, total: None,
    ) -> None:
        self.wishes, self._evaluate, self._confirm, self._watch, self._progress = (
            wishes,
            evaluate,
            confirm,
            watch,
            progress,
        )

    def run(self) -> Tuned:
        """Raises FuselineError: E0501, E0502, E1001 and E1002 for what was asked, and what the default compile and the
        evaluator raise."""
        quiet()
        wishes = self.wishes
        space = search_space(
            wishes.model,
            wishes.options,
            wishes.spaces,
            seed=wishes.seed or 0,
            rounds=wishes.rounds,
            progress=self._progress,
        )
        with ExitStack() as stack:
            evaluator = self._evaluator(space)
            stack.callback(evaluator.close)
            study, about, where = self._study(space, evaluator, stack)
            search = self._search(space, evaluator, study, about, stack)
            result = search.run()
        return self._finished(space, search, result, about, (where, study.name))

    # what a search is made of -----------------------------------------------------------------------------------------

    def _evaluator(self, space: Space) -> Evaluator:
        if self.wishes.replay is not None:
            return RecordedEvaluator(self.wishes.replay)
        return self._evaluate(space.setting) if has_code(space.default) else PredictedEvaluator(space.setting)

    def _study(self, space: Space, evaluator: Evaluator, stack: ExitStack) -> tuple[Study, About, str]:
        wishes, record = self.wishes, space.default.record
        about = About(
            model=str(wishes.model),
            graph=record.fingerprint,
            target=record.target,
            machine=_machine(evaluator) if has_code(space.default) else NO_MACHINE,
            objectives=wishes.goal.objectives,
            knobs=tuple((knob.name, knob.choices) for knob in space.setting.knobs),
            options=plain_options(wishes.options),
            seed=wishes.seed or 0,
            window=default_window(evaluator.capacity),
        )
        if isinstance(evaluator, RecordedEvaluator):
            about = msgspec.structs.replace(about, seed=evaluator.about.seed, window=evaluator.about.window)
            storage: optuna.storages.BaseStorage = optuna.storages.InMemoryStorage()
            return *open_study(storage, about, space.setting.knobs, where="memory"), ""
        place = wishes.storage or default_file(about.graph, about.target, about.machine)
        storage = opened(place)
        stack.enter_context(kept(place))
        return *open_study(storage, about, space.setting.knobs, where=str(place), resume=wishes.resume), str(place)

    def _search(self, space: Space, evaluator: Evaluator, study: Study, about: About, stack: ExitStack) -> Search:
        wishes, knobs = self.wishes, space.setting.knobs
        log = stack.enter_context(TrialLog(wishes.record, about)) if wishes.record is not None else None
        recorded = isinstance(evaluator, RecordedEvaluator)
        return Search(
            knobs,
            Places.of(knobs, parse_plan(space.setting.plan).groups),
            evaluator,
            study,
            goal=wishes.goal,
            budget=Budget(trials=evaluator.trials) if recorded else wishes.budget,
            seed=about.seed,
            window=about.window,
            trial_seconds=trial_seconds(wishes.budget),
            watch=self._watch,
            record=log.add if log is not None else lambda configuration, outcome: None,
        )

    # what comes of it -------------------------------------------------------------------------------------------------

    def _finished(
        self, space: Space, search: Search, result: SearchResult, about: About, place: tuple[str, str]
    ) -> Tuned:
        best = result.trials.simplest()
        chosen = dict(best.configuration) if best is not None else {}
        gains = search.proposer.effects.gains
        try:
            chosen, confirmed = self._confirmed(space, chosen, worth_keeping(chosen, gains), result)
        except KeyboardInterrupt:
            confirmed, result = None, replace(result, ended="interrupted")
        stays = confirmed is not None and not confirmed.faster and search.trials.goal.objectives == ("time",)
        if stays:
            chosen = {}
        default_seconds = result.trials.default_seconds()
        changes = changes_of(space.setting.knobs, chosen, gains, default_seconds)
        report = self._report(space, result, about, confirmed)
        report.changes, (report.storage, report.study) = changes, place
        report.kept, report.best = "tuned" if chosen else "default", best.number if best is not None else 0
        return Tuned(tuned_plan(space.setting, chosen, changes, measured_facts(report)), report)

    def _confirmed(
        self, space: Space, chosen: dict[str, str], lean: dict[str, str], result: SearchResult
    ) -> tuple[dict[str, str], Confirmed | None]:
        """What is kept of `chosen`, and its comparison with the default: `lean`, which is less, where that compiles."""
        if not chosen or result.ended == "interrupted" or not has_code(space.default) or self.wishes.replay is not None:
            return chosen, None
        self._progress("confirming", 0, 1)
        if lean and lean != chosen:
            with suppress(FuselineError):  # some of it stands only beside what was left out
                return lean, self._confirm(space.setting, lean)
        return chosen, self._confirm(space.setting, chosen)

    def _report(self, space: Space, result: SearchResult, about: About, confirmed: Confirmed | None) -> TuningReport:
        trials = result.trials
        codes = Counter(told.outcome.error["code"] for told in trials.trials if told.outcome.error)
        return TuningReport(
            model=str(self.wishes.model),
            target=about.target,
            graph=about.graph,
            machine=about.machine,
            objectives=about.objectives,
            seed=about.seed,
            ended=result.ended,
            seconds=round(result.seconds, 3),
            default_seconds=trials.default_seconds(),
            best=0,
            knobs=dict(Counter(knob.space for knob in space.setting.knobs)),
            trials=trial_rows(trials.trials),
            failures=dict(codes),
            front=[told.number for told in trials.front()] if trials.goal.several else [],
            importance=importance(space.setting.knobs, trials.trials),
            confirmed=confirmed,
        )


def _machine(evaluator: Evaluator) -> str:
    """The kind of machine that an evaluator measures on: the workers', where they are elsewhere."""
    if isinstance(evaluator, RecordedEvaluator):
        return evaluator.about.machine
    return getattr(evaluator, "kind", "") or machine_kind()


def trial_seconds(budget: Budget) -> float:
    """The most that one trial is measured: of a short budget a hundredth, so that many are.

    >>> trial_seconds(Budget(seconds=600)), trial_seconds(Budget(seconds=60)), trial_seconds(Budget(trials=20))
    (6.0, 2.0, 10.0)
    """
    return LONGEST_SECONDS if budget.seconds is None else min(max(budget.seconds / 100, 2.0), LONGEST_SECONDS)


def trial_rows(trials: Sequence[Told]) -> list[TrialRow]:
    """The trials as the report has them; `best` is each that beat all before it."""
    rows: list[TrialRow] = []
    lowest: tuple[float, ...] | None = None
    for told in trials:
        better = told.values is not None and (lowest is None or told.values < lowest)
        lowest = told.values if better else lowest
        rows.append(_row(told, best=better))
    return rows


def _row(told: Told, *, best: bool) -> TrialRow:
    outcome, error = told.outcome, told.outcome.error or {}
    return TrialRow(
        number=told.number,
        state=outcome.state,
        values=told.values or (),
        relative=told.relative or 0.0,
        best=best,
        changes=dict(told.configuration),
        seconds=outcome.seconds,
        transient_bytes=outcome.transient_bytes,
        code_bytes=outcome.code_bytes,
        dispatches=outcome.dispatches,
        code=error.get("code", ""),
        message=error.get("message", ""),
    )


def measured_facts(report: TuningReport) -> dict[str, Any]:
    """What a plan says of how it was found."""
    best = report.trials[report.best] if report.trials else None
    facts: dict[str, Any] = {
        "machine": report.machine,
        "seed": report.seed,
        "trials": len(report.trials),
        "confirmed": report.confirmed is not None and report.confirmed.faster,
        "default_seconds": report.default_seconds,
    }
    if best is not None and report.kept == "tuned":
        facts["relative"] = round(best.relative, 6)
    if report.confirmed is not None:
        facts["ratio"] = [round(x, 6) for x in (report.confirmed.ratio, report.confirmed.low, report.confirmed.high)]
    return facts


def plain_options(options: Mapping[str, Any]) -> dict[str, Any]:
    """Arguments of a compile as JSON has them, those that are not given aside."""
    return {name: _plain(value) for name, value in sorted(options.items()) if value not in (None, (), [], {}, False)}


def _plain(value: Any) -> Any:
    if isinstance(value, Mapping):
        return {str(name): _plain(inner) for name, inner in value.items()}  # pyright: ignore[reportUnknownVariableType, reportUnknownArgumentType]
    if isinstance(value, list | tuple):
        return [_plain(item) for item in value]  # pyright: ignore[reportUnknownVariableType]
    return value if isinstance(value, str | int | float | bool) else str(value)
