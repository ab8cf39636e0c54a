"""`fuseline bisect --plan B --from-plan A`: the search between two plans, from the words of a command line."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from fuseline.cli.references import differs_from, feeds_without_code, options_of, require_file
from fuseline.errors import FuselineError
from fuseline.report.bisect_result import BisectResult

PLAN_SUFFIXES = (".toml", ".plan")


def require_second_plan(from_plan: Path | None, against: str, options: Mapping[str, Any]) -> None:
    """Raises E0501 for one plan where two are needed, and for a plan as what outputs are held against."""
    if from_plan is not None and options["plan"] is None:
        hint = "give the plan at fault as --plan, and one that is right or fast as --from-plan"
        raise FuselineError("E0501", "--from-plan is where the search begins, --plan where it ends", hint=hint)
    if Path(against).suffix in PLAN_SUFFIXES:
        hint = f"to search between two plans: --plan FILE --from-plan {against}"
        raise FuselineError("E0501", f"--against {against}: a plan is no reference", hint=hint)


def between_plans(
    model: Path,
    from_plan: Path,
    looked_for: tuple[str, str],
    inputs: tuple[str, ...],
    choices: tuple[int, float | None],
    options: Mapping[str, Any],
    tell: Callable[[str, int], object],
) -> BisectResult:
    """What --plan decides otherwise than `from_plan` that shows it; `looked_for` are --against and --metric, `choices`
    the seed and the tolerance. Raises what reading plans and models raises, E0614 where there is nothing to find."""
    from fuseline.verify.bisect import slow
    from fuseline.verify.bisect.criterion import Anything
    from fuseline.verify.bisect.finding import Question
    from fuseline.verify.bisect.plan_finding import PlanBisection
    from fuseline.verify.bisect.plan_sides import plan_sides

    require_file(model)
    made, (against, metric) = options_of(model, options, None), looked_for
    before, after = plan_sides(model, options_of(model, {**options, "plan": from_plan}, None), made)
    if metric == "time":
        clock = slow.clock_of(feeds_without_code(model, made, inputs, choices[0]), None)
        question = Question(str(model), model, made, Anything(), metric, tell)
        return PlanBisection(question, before, after, keeps=True).slow_result(clock)
    criterion: Any = differs_from(model, against, inputs, choices, made)
    return PlanBisection(Question(str(model), model, made, criterion, against, tell), before, after).result()
