"""`fuseline tune`: searches for what a compile of a model does best on this machine, end to end."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click
import msgspec
from rich.table import Table

from fuseline.cli.console import emit, note, say
from fuseline.cli.evaluators import evaluators
from fuseline.cli.models import require_model
from fuseline.cli.options import (
    compile_options,
    given_options,
    json_option,
    model_argument,
    scheduler_options,
    threads_option,
)
from fuseline.cli.output import deliver, is_stdout, refuse_two_documents
from fuseline.cli.tune_fit import FLAG, OrFit
from fuseline.cli.tune_regions import region_table
from fuseline.errors import FuselineError
from fuseline.report.quantities import plural, seconds
from fuseline.tuning.budget import Budget, parse_budget
from fuseline.tuning.extra import require_optuna
from fuseline.tuning.goal import Goal, parse_goal
from fuseline.tuning.knob import SPACES

if TYPE_CHECKING:
    from fuseline.report.tuning_records import TuningReport
    from fuseline.tuning.setting import SearchSetting
    from fuseline.tuning.trial import Evaluator
    from fuseline.tuning.tuning_run import Tuned

PLAN_SUFFIX = ".tuned.plan"
INTERRUPTED = 130


def _budget(context: click.Context, parameter: click.Parameter, value: str) -> Budget:
    del context, parameter
    return parse_budget(value)


def _goal(context: click.Context, parameter: click.Parameter, value: str) -> Goal:
    del context, parameter
    return parse_goal(value)


def _spaces(context: click.Context, parameter: click.Parameter, value: str) -> list[str]:
    del context, parameter
    return [word.strip() for word in value.split(",") if word.strip()]


@click.command(cls=OrFit)
@model_argument
@click.option(
    FLAG,
    is_flag=True,
    expose_value=False,
    help="Fit what dispatches are predicted with, in place of a search: `fuseline tune --fit --help`.",
)
@click.option(
    "--budget",
    default="10m",
    show_default=True,
    callback=_budget,
    metavar="TIME|N trials",
    help="10m, 90s, 200 trials.",
)
@click.option(
    "--space", "spaces", default=",".join(SPACES), show_default=True, callback=_spaces, help="What may be otherwise."
)
@click.option(
    "-o",
    "--output",
    type=click.Path(path_type=Path),
    help=f"Where the plan goes (default: MODEL with {PLAN_SUFFIX}); - for standard output.",
)
@click.option(
    "--objective",
    "goal",
    default="time",
    show_default=True,
    callback=_goal,
    help="time, transient_bytes, code_bytes; several with commas for a front, the first of which counts for the plan.",
)
@click.option("--seed", type=click.IntRange(min=0), help="Of inputs and of all that is drawn (default: 0).")
@click.option(
    "--storage",
    type=click.Path(path_type=Path, dir_okay=False),
    metavar="FILE",
    help="SQLite file of the study, for optuna-dashboard, too (default: in the cache).",
)
@click.option("--resume", is_flag=True, help="Go on with the last search of this model: nothing is measured twice.")
@click.option(
    "--report",
    "page",
    type=click.Path(path_type=Path, dir_okay=False),
    metavar="FILE.html",
    help="Write an offline page with plots, too.",
)
@click.option(
    "--record",
    type=click.Path(path_type=Path, dir_okay=False),
    metavar="FILE",
    help="Write every trial with its outcome to a new file, as lines of JSON.",
)
@click.option(
    "--replay",
    type=click.Path(path_type=Path, exists=True, dir_okay=False),
    metavar="FILE",
    help="Measure nothing: take outcomes from a file that --record wrote.",
)
@click.option(
    "--rounds",
    type=click.IntRange(min=3),
    default=60,
    show_default=True,
    help="The most rounds in which a trial is timed against the best so far.",
)
@compile_options
@threads_option
@scheduler_options
@json_option
def tune(
    model: Path,
    budget: Budget,
    spaces: list[str],
    output: Path | None,
    goal: Goal,
    seed: int | None,
    storage: Path | None,
    resume: bool,
    page: Path | None,
    record: Path | None,
    replay: Path | None,
    rounds: int,
    scheduler: str | None,
    kind: str | None,
    as_json: bool,
    **options: Any,
) -> None:
    """Search for the fastest program for MODEL on this machine: which ops run together, variants of the pipeline,
    shared code, kernels and threads, each trial checked and timed end to end against the best so far.

    With --scheduler trials run on the workers of a cluster, each on cores of its own (--threads, or one).
    The plan that is written reproduces what was measured: `fuseline compile MODEL --plan PLAN`. Ctrl-C keeps the best.
    """
    require_model(model, "tune")
    refuse_two_documents(output, as_json)
    _refuse_both(resume, replay)
    require_optuna()
    from fuseline.tuning.tuning_run import Wishes

    wishes = Wishes(
        model=model,
        options=_said(options) if scheduler is None else {"threads": 1, **_said(options)},
        spaces=spaces,
        goal=goal,
        budget=budget,
        seed=seed,
        rounds=rounds,
        storage=storage,
        resume=resume,
        record=record,
        replay=replay,
    )
    target = output or model.with_suffix(PLAN_SUFFIX)
    with evaluators(scheduler, kind, wishes.options["threads"] if scheduler else 1) as evaluate:
        tuned = _searched(wishes, evaluate)
    if seed not in (None, tuned.report.seed):
        note(f"--seed {seed} is not used: the search that goes on has the seed {tuned.report.seed}")
    deliver(target, tuned.plan)
    _remember(tuned.report, wishes.options)
    if page is not None:
        from fuseline.report.tuning_page import render_tuning_page

        deliver(page, render_tuning_page(tuned.report))
    if as_json:
        emit("tune", {**msgspec.to_builtins(tuned.report), "output": str(target)})
    elif not is_stdout(target):
        show_result(tuned.report, target)
    if tuned.interrupted:
        raise click.exceptions.Exit(INTERRUPTED)


def _remember(report: TuningReport, options: Mapping[str, Any]) -> None:
    """Keep what was found of kernels for other models; that it cannot be kept is no failure of the search."""
    from fuseline.tuning.remembering import remember_search

    try:
        count = remember_search(report, options)
    except FuselineError as problem:
        note(str(problem))
        return
    if count:
        note(f"{plural(count, 'record')} of kernels kept for compiles with --tuned")


def _said(options: Mapping[str, Any]) -> dict[str, Any]:
    """The options that the command line gives: what it leaves out may be searched."""
    given = given_options(options)
    return {name: value for name, value in options.items() if name in given or name == "target"}


def _refuse_both(resume: bool, replay: Path | None) -> None:
    if resume and replay is not None:
        raise FuselineError("E0501", "--replay measures nothing, and leaves nothing to --resume", hint="give one")


def _searched(wishes: Any, evaluate: Callable[[SearchSetting], Evaluator]) -> Tuned:
    from fuseline.cli.tune_progress import search_progress
    from fuseline.tuning.confirmation import confirmation
    from fuseline.tuning.tuning_run import TuningRun

    with search_progress(f"tuning {wishes.model.name}") as shown:
        run = TuningRun(
            wishes,
            evaluate,
            lambda setting, configuration: confirmation(setting, configuration, evaluate),
            watch=shown.watch,
            progress=shown.phase,
        )
        return run.run()


# what is shown --------------------------------------------------------------------------------------------------------


def show_result(report: TuningReport, target: Path) -> None:
    """What was found, what each change gained, and how it was confirmed."""
    failed = sum(report.failures.values())
    codes = ", ".join(f"{count} {code}" for code, count in report.failures.items())
    failures = f", {failed} failed ({codes})" if failed else ""
    say(f"{plural(len(report.trials), 'trial')} in {seconds(report.seconds)}{failures}; {_ending(report)}")
    if report.changes:
        say(_changes_table(report))
    for line in _verdict(report):
        say(line)
    if report.kept == "tuned" and report.confirmed is not None and (table := region_table(report.confirmed)):
        say(table)
    if report.front:
        say(_front_table(report))
    if report.storage:
        note(f"study: {report.storage}")
    say(f"{target}: {plural(len(report.changes), 'change')}")


def _ending(report: TuningReport) -> str:
    words = {"searched": "nothing new was left to try", "interrupted": "interrupted: the best so far is kept"}
    return words.get(report.ended, "the budget is spent")


def _verdict(report: TuningReport) -> list[str]:
    best = report.trials[report.best]
    lines = [f"default {seconds(report.default_seconds)}, best {100 * best.relative:.1f} % of it (trial {best.number})"]
    if (confirmed := report.confirmed) is not None:
        interval = f"{confirmed.ratio:.4f} of the default ({confirmed.low:.4f} to {confirmed.high:.4f})"
        stays = "" if report.kept == "tuned" else "; it is not surely faster, so the default stays"
        lines.append(f"measured afresh: {interval}{stays}")
    elif report.kept == "default":
        lines.append("nothing was faster than the default, which stays")
    return lines


def _changes_table(report: TuningReport) -> Table:
    table = Table("knob", "choice", "gained by itself", "what it is")
    for change in report.changes:
        gained = f"{100 * change.gain:.2f} %, {seconds(change.seconds)}" if change.gain else ""
        table.add_row(change.knob, change.choice, gained, change.detail)
    return table


def _front_table(report: TuningReport) -> Table:
    table = Table("trial", *report.objectives, "choices")
    for number in report.front:
        row = report.trials[number]
        names = ", ".join(f"{name}={choice}" for name, choice in row.changes.items()) or "the default"
        table.add_row(str(number), *(f"{value:.6g}" for value in row.values), names)
    return table
