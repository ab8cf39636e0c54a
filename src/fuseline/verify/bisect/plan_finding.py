"""Which decision of one plan against another makes a program wrong, or slow."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from fuseline.errors import FuselineError
from fuseline.report.bisect_result import BisectResult, Culprit
from fuseline.report.records import decode
from fuseline.verify.bisect.criterion import Fails
from fuseline.verify.bisect.finding import Question
from fuseline.verify.bisect.halving import halved
from fuseline.verify.bisect.plan_changes import GROUPING, plan_changes
from fuseline.verify.bisect.plan_culprits import change_culprit, family_culprit
from fuseline.verify.bisect.plan_sides import PlanSide
from fuseline.verify.bisect.plan_steps import steps_of
from fuseline.verify.bisect.plan_trials import PLAN, PlanTrials
from fuseline.verify.bisect.slow import Clock, costs_time, slow_decision
from fuseline.verify.bisect.trial import Outcome

_SWAP = "{before} shows it and {after} does not: give them the other way round"
_BOTH = "both plans show it: leave --from-plan out, and `fuseline bisect` looks into --plan alone"
_NONE = "give other feeds (--input, --seed), a smaller --tolerance, or look for time (--metric time)"


class PlanBisection:
    """The search between two plans on one model, for the way that `question.options` has beside them; `keeps`: programs
    are kept."""

    def __init__(self, question: Question, before: PlanSide, after: PlanSide, *, keeps: bool = False) -> None:
        self._question, self._before, self._after = question, before, after
        changes = plan_changes(before.state, after.state)
        if not changes:
            message = f"{before.path} and {after.path} decide the same about all {len(before.state.groups)} groups"
            hint = "give two plans that differ (`fuseline diff` shows how); one alone needs no --from-plan"
            raise FuselineError("E0614", message, node=question.name, hint=hint)
        self._trials = PlanTrials(
            question.source,
            question.options,
            before.state,
            changes,
            question.criterion,
            after.record,
            question.tell,
            keeps=keeps,
        )
        self._count, self._more_runs = len(changes), 0

    # wrong ------------------------------------------------------------------------------------------------------------

    def result(self) -> BisectResult:
        """The decision that makes it wrong. Raises E0614 where the first plan shows it, or the second does not."""
        whole = self._wrong_whole()
        first = self._trials({PLAN: 0})
        if first.shown or not whole.shown:
            raise self._no_difference(first, whole)
        right, wrong = _flip(self._trials, 0, self._count)
        trials, (right, wrong), end = self._finer(right, wrong)
        outcome = trials({PLAN: wrong})
        return self._found(
            shown=whole.shown,
            culprits=self._culprits(trials, range(right, wrong), outcome, families=True),
            without=self._without(trials, range(right, end), lambda one: not one.shown),
        )

    def _wrong_whole(self) -> Outcome:
        """The program of the second plan; where compiling fails, its code is what is looked for from then on."""
        whole = self._trials({})
        if whole.shown or whole.compiled:
            return whole
        try:
            self._trials.compile_all()
        except FuselineError as error:
            self._more_runs += self._trials.runs
            self._trials = self._trials.judging(Fails(error.code))
        return self._trials({})

    def _no_difference(self, first: Outcome, whole: Outcome) -> FuselineError:
        names = {"before": str(self._before.path), "after": str(self._after.path)}
        hint = (_BOTH if whole.shown else _SWAP.format(**names)) if first.shown else _NONE
        message = f"{self._before.path}: {_told(first)}; {self._after.path}: {_told(whole)}"
        return FuselineError("E0614", message, node=self._question.name, hint=hint)

    def _finer(self, right: int, wrong: int) -> tuple[PlanTrials, tuple[int, int], int]:
        """The same with the change that was found as single splits and joins, the one of these that does it, and where
        they end: those behind it rest on it."""
        trials, count = self._trials, self._count
        steps = steps_of(trials.changes[right], trials.merges(0), trials.merges(count)) if wrong - right == 1 else []
        if len(steps) < 2:
            return trials, (right, wrong), wrong
        self._count += len(steps) - 1
        finer, end = trials.with_steps(right, steps), right + len(steps)
        return finer, _flip(finer, right, end), end

    # slow -------------------------------------------------------------------------------------------------------------

    def slow_result(self, clock: Clock) -> BisectResult:
        """The decision that costs time. Raises E0614 where none does that can be told from noise."""
        for limits in ({PLAN: 0}, {}):
            if not self._trials(limits).compiled:
                self._trials.compile_all()  # says why
        found = slow_decision(self._trials, clock, (PLAN,))
        if found is None:
            hint = "measure on a machine that does nothing else; `fuseline bench` compares whole programs"
            message = f"no decision of {self._after.path} costs time that noise does not"
            raise FuselineError("E0614", message, node=self._question.name, hint=hint)
        number, (low, high) = found.decision.number, (found.ratio.low, found.ratio.high)
        whole = self._trials({}).artifact

        def gone(without: Outcome) -> bool:
            one = without.artifact
            return one is not None and whole is not None and costs_time(clock, one, whole)

        return self._found(
            shown=f"With it a run takes {found.ratio.value:.3f} times as long [{low:.3f}, {high:.3f}]",
            culprits=self._culprits(
                self._trials, range(number, number + 1), self._trials(found.limits), families=False
            ),
            without=self._without(self._trials, range(number, number + 1), gone),
        )

    # what is told -----------------------------------------------------------------------------------------------------

    def _culprits(self, trials: PlanTrials, numbers: range, outcome: Outcome, *, families: bool) -> list[Culprit]:
        """The changes, behind the kernel families of what they made where plain loop nests make that right."""
        made = [trials.changes[number] for number in numbers]
        record, known = decode(outcome.records) if outcome.records else None, self._after.record
        changes = [change_culprit(change, known, record, number) for change, number in zip(made, numbers, strict=True)]
        grouped = all(change.kind in GROUPING for change in made)
        if not families or record is None or not grouped or not _right_when_plain(trials, numbers.stop):
            return changes
        return [family_culprit(made, record), *changes]

    def _without(self, trials: PlanTrials, numbers: range, gone: Callable[[Outcome], bool]) -> dict[str, Any]:
        """What the second plan shows without what was found alone, as fields of a result."""
        outcome = trials.without(numbers)
        if not outcome.compiled and not outcome.shown:
            return {"alone": "refused", "alone_detail": trials.why_not(numbers)}
        head = f"# {self._after.path.name} without the decision that `fuseline bisect` found guilty.\n"
        plan = trials.plan_without(numbers, head)
        return {"alone": "gone" if gone(outcome) else "there", "alone_detail": outcome.shown, "plan": plan}

    def _found(self, shown: str, culprits: Sequence[Culprit], without: Mapping[str, Any]) -> BisectResult:
        return BisectResult(
            model=self._question.name,
            criterion=self._question.words,
            shown=shown,
            culprits=list(culprits),
            decisions=self._count,
            runs=self._trials.runs + self._more_runs,
            plans=[str(self._before.path), str(self._after.path)],
            **without,
        )


def _flip(trials: PlanTrials, right: int, wrong: int) -> tuple[int, int]:
    def shows(count: int) -> bool | None:
        outcome = trials({PLAN: count})
        return bool(outcome.shown) if outcome.shown or outcome.compiled else None

    return halved(shows, right, wrong)


def _right_when_plain(trials: PlanTrials, count: int) -> bool:
    plain = trials({PLAN: count, "kernel": 0})
    return plain.compiled and not plain.shown


def _told(outcome: Outcome) -> str:
    return outcome.shown or ("right" if outcome.compiled else "no program")
