"""What makes one model's program wrong: optional decisions by fuel first, then what no fuel turns off."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from typing import Any

from fuseline.compile_options import CompileOptions
from fuseline.errors import FuselineError
from fuseline.ir.fuel import Decision, Fuel
from fuseline.pipeline import OPTIONAL
from fuseline.report.bisect_result import BisectResult, Culprit
from fuseline.report.check_results import WRONG
from fuseline.verify.bisect.criterion import Criterion, Differs, Fails
from fuseline.verify.bisect.forbidden_merge import WithoutMerge, without_merge
from fuseline.verify.bisect.frontend import first_node
from fuseline.verify.bisect.isolated import isolated
from fuseline.verify.bisect.prefix import broken_op
from fuseline.verify.bisect.search import ORDER, Guilty, first_of, guilty
from fuseline.verify.bisect.slow import Clock, Slow, costs_time, slow_decision
from fuseline.verify.bisect.stages import Stage, Stages, first_wrong
from fuseline.verify.bisect.trial import Outcome, Trials
from fuseline.verify.check.dispatches import DispatchChecks
from fuseline.verify.check.programs import checked_programs

Tell = Callable[[str, int], object]


@dataclass(frozen=True)
class Question:
    """A model, how it is compiled, and what is looked for; `name` is what reports call the model."""

    name: str
    source: Any
    options: CompileOptions
    criterion: Criterion
    words: str
    tell: Tell = lambda what, runs: None


def slow_result(question: Question, clock: Clock) -> BisectResult:
    """The decision that costs time. Raises E0614 where none does that can be told from noise."""
    trials = Trials(question.source, question.options, question.criterion, question.tell, keeps=True)
    if not trials({}).compiled:
        trials.compile_once(Fuel())  # says why
    found = slow_decision(trials, clock)
    if found is None:
        hint = "measure on a machine that does nothing else; `fuseline whatif` ranks what merges are expected to save"
        raise FuselineError("E0614", "no decision costs time that noise does not", node=question.name, hint=hint)
    low, high = found.ratio.low, found.ratio.high
    alone, more = _slow_alone(trials, found, clock)
    return BisectResult(
        model=question.name,
        criterion=question.words,
        shown=f"With it a run takes {found.ratio.value:.3f} times as long [{low:.3f}, {high:.3f}]",
        culprits=[_culprit(found.decision)],
        decisions=len(trials({}).decisions),
        runs=trials.runs + more,
        fuel=dict(found.limits),
        lacking=found.decision.kind,
        **alone,
    )


def _slow_alone(trials: Trials, found: Slow, clock: Clock) -> tuple[dict[str, Any], int]:
    """What a run takes without the merge alone, as fields of a result, and how many programs that took."""
    if found.decision.kind != "fusion":
        return {}, 0
    without = without_merge(trials, found.decision, trials(found.limits).decisions)
    whole, other = trials({}).artifact, without.outcome.artifact
    gone = whole is not None and other is not None and costs_time(clock, other, whole)
    return _alone(without, gone), 1


def _alone(without: WithoutMerge, gone: bool) -> dict[str, Any]:
    alone = "refused" if without.refused else "gone" if gone else "there"
    detail = without.refused or without.outcome.shown
    return {"alone": alone, "alone_detail": detail, "plan": without.plan}


class Bisection:
    """The search for one model; `runs` counts compiles, interpreted stages and prefixes alike."""

    def __init__(self, question: Question) -> None:
        self._question, self._more_runs = question, 0
        self._trials = Trials(question.source, question.options, question.criterion, question.tell)

    @property
    def runs(self) -> int:
        """How many programs were tried."""
        return self._trials.runs + self._more_runs

    def result(self) -> BisectResult:
        """What was found. Raises E0614 where the program shows nothing."""
        whole = self._whole()
        if not whole.shown:
            hint = "give other feeds (--input, --seed), a smaller --tolerance, or the options under which it was seen"
            raise FuselineError("E0614", "the program shows no difference", node=self._question.name, hint=hint)
        found = guilty(self._trials)
        culprits = self._without_fuel() if found is None else self._culprits(found)
        alone: dict[str, Any] = {} if found is None else self._without_merge(found)
        return BisectResult(
            model=self._question.name,
            criterion=self._question.words,
            shown=whole.shown,
            culprits=culprits,
            decisions=len(whole.decisions),
            runs=self.runs,
            fuel=dict(found.limits) if found is not None else {},
            lacking=found.decision.kind if found is not None else "",
            **alone,
        )

    def _whole(self) -> Outcome:
        """The program with all decisions; where compiling fails, its code is what is looked for from then on."""
        whole = self._trials({})
        if whole.shown or whole.compiled:
            return whole
        try:
            self._trials.compile_once(Fuel())
        except FuselineError as error:
            failing = replace(self._question, criterion=Fails(error.code), words=error.code)
            self._question = failing
            self._trials = Trials(failing.source, failing.options, failing.criterion, failing.tell)
        return self._trials({})

    # what fuel turns off ----------------------------------------------------------------------------------------------

    def _culprits(self, found: Guilty) -> list[Culprit]:
        if found.decision.kind == "fusion":
            return self._of_merge(found)
        if found.decision.kind == "pass":
            return [self._of_pass(found)]
        return [_culprit(found.decision)]

    def _of_merge(self, found: Guilty) -> list[Culprit]:
        """The merge, behind the kernel of what it made where the plain loop nest makes that right."""
        merge = _culprit(found.decision)
        if self._trials({**found.limits, "kernel": 0}).shown:
            return [merge]
        kernel = first_of(self._trials, "kernel", found.limits)
        return [_culprit(kernel.decision), merge]

    def _without_merge(self, found: Guilty) -> dict[str, Any]:
        """What the program shows without this merge alone, as fields of a result."""
        if found.decision.kind != "fusion":
            return {}
        self._more_runs += 1
        without = without_merge(self._trials, found.decision, self._trials(found.limits).decisions)
        return _alone(without, not without.outcome.shown)

    def _of_pass(self, found: Guilty) -> Culprit:
        """The pass, and the op that it breaks where the interpreter shows that."""
        culprit = _culprit(found.decision)
        criterion = self._question.criterion
        if not isinstance(criterion, Differs):
            return culprit
        stages = Stages(self._question.source, self._question.options, found.limits)
        return self._with_op(culprit, stages, _place_of(stages, found.decision.number), criterion.feeds)

    def _with_op(self, culprit: Culprit, stages: Stages, number: int, feeds: Mapping[str, Any]) -> Culprit:
        broken = broken_op(stages, number, feeds)
        if broken is None:
            return culprit
        self._more_runs += broken.runs
        read = f"which reads {', '.join(broken.read)}" if broken.read else ""
        return Culprit(
            kind=culprit.kind,
            what=culprit.what,
            number=culprit.number,
            ops=[broken.op],
            nodes=list(broken.nodes),
            detail=read,
        )

    # what it does not -------------------------------------------------------------------------------------------------

    def _without_fuel(self) -> list[Culprit]:
        """The model as it was read, a pass that is needed, the plain kernel of a dispatch, or what is left."""
        criterion = self._question.criterion
        if not isinstance(criterion, Differs):
            what = "no decision that could be left out; --against onnxruntime or interpreter looks further"
            return [Culprit(kind="needed-pass", what=what)]
        off: dict[str, int] = dict.fromkeys(ORDER, 0)
        stages = Stages(self._question.source, self._question.options, off)

        def shows(stage: Stage) -> str:
            self._more_runs += 1
            outputs = stage.outputs(criterion.feeds)
            return criterion.of_outputs(_as_expected(outputs, criterion.expected))

        if shows(stages.behind(0)):
            return [self._of_frontend(criterion)]
        if shows(stages.behind(len(stages.steps))):
            number = first_wrong(stages, shows)
            culprit = Culprit(kind="needed-pass", what=stages.steps[number][1].name, number=number)
            return [self._with_op(culprit, stages, number, criterion.feeds)]
        return self._of_dispatches(criterion, off)

    def _of_frontend(self, criterion: Differs) -> Culprit:
        self._more_runs += 2
        node = first_node(self._question.source, self._question.options, criterion.feeds)
        if node is None:
            return Culprit(kind="frontend", what="the interpreter in float64 differs before any pass")
        return Culprit(kind="frontend", what=node.op_type, nodes=[node.name or node.output[0]])

    def _of_dispatches(self, criterion: Differs, off: Mapping[str, int]) -> list[Culprit]:
        options = replace(self._question.options, fuel=Fuel(dict(off)), cache=False, progress=None)
        self._more_runs += 1
        main = checked_programs(self._question.source, options)[0]
        ended = isolated(lambda: DispatchChecks(main).run(criterion.feeds).rows)
        wrong = [row for row in ended.answer or () if row.status == WRONG]
        if not wrong:
            told = f"its steps end with {ended.signal}" if ended.signal else "every dispatch by itself is right"
            return [Culprit(kind="schedule", what=told)]
        return [
            Culprit(kind="plain-kernel", what=row.dispatch, ops=[row.family], nodes=row.nodes, detail=row.detail)
            for row in wrong[:1]
        ]


def _culprit(decision: Decision) -> Culprit:
    return Culprit(
        kind=decision.kind,
        what=decision.what,
        number=decision.number,
        ops=list(decision.ops),
        nodes=list(decision.nodes),
    )


def _place_of(stages: Stages, number: int) -> int:
    """The place among all passes of the one that was number `number` among those that need fuel."""
    places = [i for i, (_, step) in enumerate(stages.steps) if step.name in OPTIONAL]
    return places[number]


def _as_expected(outputs: Mapping[str, Any], expected: Mapping[str, Any]) -> dict[str, Any]:
    """Outputs in float64 in the types that the reference has."""
    return {
        name: value.astype(expected[name].dtype)
        if hasattr(value, "astype") and hasattr(expected.get(name), "dtype")
        else value
        for name, value in outputs.items()
    }
