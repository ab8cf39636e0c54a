"""`fuseline bisect`: the pass, rule, decision or kernel that makes a program wrong, or slow."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click
import msgspec

from fuseline.cli.console import Progress, emit, note, progress, say
from fuseline.cli.models import require_model
from fuseline.cli.options import compile_options, json_option, model_argument, threads_option
from fuseline.cli.output import deliver, is_stdout, refuse_two_documents
from fuseline.cli.plan_bisection import between_plans, require_second_plan
from fuseline.cli.references import differs_from, feeds_without_code, options_of, require_file
from fuseline.errors import FuselineError
from fuseline.report.bisect_result import BisectResult, verdict

if TYPE_CHECKING:
    from fuseline.verify.bisect.criterion import Criterion

AGAINST = click.option(
    "--against",
    default="onnxruntime",
    show_default=True,
    metavar="WHAT",
    help="onnxruntime, interpreter, or a command that is given the path of an artifact: exit code 0 is right, "
    "125 cannot say.",
)
TOLERANCE_OPTION = click.option(
    "--tolerance",
    type=click.FloatRange(min=0),
    default=None,
    help="Largest difference of outputs, as a part of the largest magnitude (default 1e-4).",
)
INPUTS = click.option(
    "--input", "inputs", multiple=True, metavar="NAME=@FILE.npy", help="A feed; others are generated."
)
SEED = click.option("--seed", type=int, default=0, show_default=True, help="Seed of generated inputs.")


@click.command()
@model_argument
@AGAINST
@click.option(
    "--metric",
    type=click.Choice(["error", "time"]),
    default="error",
    show_default=True,
    help="What is looked for: a difference --against something, or the decision with which a run takes longer.",
)
@click.option(
    "--from-plan",
    type=click.Path(path_type=Path, exists=True, dir_okay=False),
    help="A plan whose program is right, or fast: what --plan decides otherwise is searched.",
)
@click.option(
    "-o",
    "--output",
    type=click.Path(path_type=Path),
    help="Where a plan goes without the guilty merge, or decision, alone; - for standard output.",
)
@INPUTS
@SEED
@TOLERANCE_OPTION
@compile_options
@threads_option
@json_option
def bisect(
    model: Path,
    against: str,
    metric: str,
    from_plan: Path | None,
    output: Path | None,
    inputs: tuple[str, ...],
    seed: int,
    tolerance: float | None,
    as_json: bool,
    **options: Any,
) -> None:
    """Say which pass, rule, decision or kernel makes the program of MODEL wrong, or slow.

    The model is compiled again and again with less and less fuel: so many passes that could be left out, folds, merges,
    choices of kernels. Where it is wrong without any of them, the interpreter tells which pass changes what the program
    means, and which dispatch is code that does. A compile that fails is looked into the same way.

    A merge is confirmed by a plan that forbids it and nothing else. With -o that plan is written, to compile with:
    `fuseline compile MODEL --plan FILE`.

    With --from-plan the search is between two plans: which split or join of groups, or which other choice, of --plan
    makes the program wrong or slow where that of --from-plan is not.
    """
    require_model(model, "bisect")
    refuse_two_documents(output, as_json)
    require_second_plan(from_plan, against, options)
    with progress(f"bisecting {model.name}") as report:
        if from_plan is not None:
            found = between_plans(model, from_plan, (against, metric), inputs, (seed, tolerance), options, told(report))
        elif metric == "time":
            found = _slow(model, inputs, seed, options, report)
        else:
            found = _bisected(model, against, inputs, (seed, tolerance), options, report)
    if as_json:
        emit("bisect", {**msgspec.to_builtins(found), "verdict": verdict(found)})
    else:
        (note if is_stdout(output) else say)(verdict(found))
    if output is not None:
        _write(found, output)


def _write(found: BisectResult, output: Path) -> None:
    """Write the plan. Raises E0615 where it would not help, E0502 for a place that cannot be written."""
    if found.alone != "gone":
        others = "other decisions show it too" if found.plans else "other merges show it too"
        why = (found.alone_detail or others) if found.alone else "what does it is no merge"
        fuel = " ".join(f"--fuel {kind}={number - (kind == found.lacking)}" for kind, number in found.fuel.items())
        hint = f"compile with {fuel} instead" if fuel else "`fuseline reduce` makes a small model for a report"
        raise FuselineError("E0615", why, node=str(output), hint=hint)
    deliver(output, found.plan)
    if not is_stdout(output):
        note(f"wrote {output}: to compile around it, `fuseline compile {found.model} --plan {output}`")


def _slow(model: Path, inputs: tuple[str, ...], seed: int, options: dict[str, Any], report: Progress) -> BisectResult:
    from fuseline.verify.bisect.criterion import Anything
    from fuseline.verify.bisect.finding import Question, slow_result
    from fuseline.verify.bisect.slow import clock_of

    require_file(model)
    made = options_of(model, options, None)
    clock = clock_of(feeds_without_code(model, made, inputs, seed), made.threads)
    return slow_result(Question(str(model), model, made, Anything(), "time", told(report)), clock)


def told(report: Progress) -> Callable[[str, int], object]:
    """Tells of each run what is tried."""
    return lambda what, runs: report(f"run {runs + 1}: {what}", 0, 0)


def _bisected(
    model: Path,
    against: str,
    inputs: tuple[str, ...],
    choices: tuple[int, float | None],
    options: dict[str, Any],
    report: Progress,
) -> BisectResult:
    from fuseline.verify.bisect.finding import Bisection, Question

    require_file(model)
    made = options_of(model, options, None)
    criterion: Criterion = differs_from(model, against, inputs, choices, made)
    return Bisection(Question(str(model), model, made, criterion, against, told(report))).result()
