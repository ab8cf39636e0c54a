"""`fuseline check`: every dispatch of a program against the interpreter, its kernels' accesses proved, its outputs
against another runtime."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import click
import msgspec

from fuseline.cli.console import emit, note, progress, say
from fuseline.cli.model_files import is_one_file, model_files
from fuseline.cli.model_rows import Outcome, Workers, outcomes
from fuseline.cli.models import is_artifact, refuse_compile_options
from fuseline.cli.options import compile_options, json_option, scheduler_options, threads_option
from fuseline.cli.references import asked_of, options_of
from fuseline.errors import FuselineError
from fuseline.report.check_results import Finding, ModelCheck, dispatch_table, model_table, output_lines

_SHOWN = 20


@click.command()
@click.argument("models", nargs=-1, required=True, type=click.Path(path_type=Path))
@click.option(
    "--against",
    type=click.Path(path_type=Path, exists=True, dir_okay=False),
    help="Compare outputs with those of this artifact or model; else with onnxruntime, where it is installed.",
)
@click.option("--input", "inputs", multiple=True, metavar="NAME=@FILE.npy", help="A feed; others are generated.")
@click.option("--seed", type=int, default=0, show_default=True, help="Seed of generated inputs.")
@click.option(
    "--tolerance",
    type=click.FloatRange(min=0),
    default=None,
    help="Largest difference of outputs, as a part of the largest magnitude (default 1e-4).",
)
@click.option("--all", "with_all", is_flag=True, help="Print every dispatch, not the twenty worst.")
@compile_options
@threads_option
@scheduler_options
@json_option
def check(
    models: tuple[Path, ...],
    against: Path | None,
    inputs: tuple[str, ...],
    seed: int,
    tolerance: float | None,
    with_all: bool,
    scheduler: str | None,
    kind: str | None,
    as_json: bool,
    **options: Any,
) -> None:
    """Check MODELS (ONNX files, MLIR text or .fuse artifacts) on one run with real or generated inputs.

    Every dispatch is run on the program's own intermediate values and compared with the interpreter in float64, the
    accesses of its kernel are proved to stay inside of their buffers, repeated runs are compared to the bit, and the
    outputs with onnxruntime. Of an artifact alone: digests, runs, and outputs --against another program. Exit code 1
    where anything is wrong. Several models, a folder or a quoted glob are a table with a row per model.
    """
    if is_one_file(models) and scheduler is None:
        found = _check(models[0], str(models[0]), against, inputs, (seed, tolerance), options)
        _show(found, with_all, as_json)
        _end([found], as_json)
        return
    if against is not None or inputs:
        given = "--against" if against is not None else "--input"
        raise FuselineError("E0501", f"{given} is for one model", hint="give one model, checked here")
    workers, choices = Workers(scheduler, kind), (seed, tolerance)
    rows = [_row(one) for one in outcomes(model_files(models), options, checked_model, "check", workers, choices)]
    if as_json:
        emit("check", {"models": [_document(row) for row in rows]})
    else:
        say(model_table(rows))
    _end(rows, as_json, told=True)


def _row(outcome: Outcome[ModelCheck]) -> ModelCheck:
    if outcome.result is None:
        return ModelCheck(model=outcome.name, error=None if outcome.error is None else outcome.error.to_json())
    return msgspec.structs.replace(outcome.result, model=outcome.name)


def checked_model(path: Path, options: Mapping[str, Any], seed: int, tolerance: float | None) -> ModelCheck:
    """What is found about one of several models; called on workers, too."""
    found = _check(path, path.name, None, (), (seed, tolerance), options)
    for finding in found.findings[:3]:
        note(f"  {finding.code} [{finding.node}]: {finding.message}")
    return found


def _check(
    path: Path,
    name: str,
    against: Path | None,
    inputs: tuple[str, ...],
    choices: tuple[int, float | None],
    options: Mapping[str, Any],
) -> ModelCheck:
    with progress(f"checking {path.name}") as report:
        asked = asked_of(path, against, inputs, choices, report, options.get("threads"))
        if is_artifact(path):
            from fuseline.runtime import load
            from fuseline.verify.check.artifact import check_artifact

            refuse_compile_options(options)
            return check_artifact(name, load(path, threads=options.get("threads"), verify=True), asked)
        from fuseline.verify.check.model import check_model

        return check_model(name, path, options_of(path, options, report), asked)


def _show(found: ModelCheck, with_all: bool, as_json: bool) -> None:
    if as_json:
        emit("check", _document(found))
        return
    if found.dispatches:
        say(dispatch_table(found, None if with_all else _SHOWN))
        left = len(found.dispatches) - _SHOWN
        say(f"and {left} that are less far off (--all)" if left > 0 and not with_all else "")
    say([*_counted(found), *output_lines(found)])


def _counted(found: ModelCheck) -> list[str]:
    """How many dispatches were looked at, in one line; none for an artifact alone."""
    if not found.dispatches:
        return []
    dispatches = [row for row in found.dispatches if row.kind == "dispatch"]
    proved = sum(row.proved for row in dispatches)
    guarded = sum(bool(row.unproved) and not row.left for row in dispatches)
    states = {word: sum(row.status == word for row in found.dispatches) for word in ("ok", "rounding", "wrong")}
    told = ", ".join(f"{count} {word}" for word, count in states.items() if count)
    return [
        f"{len(found.dispatches)} steps: {told}; kernels of {proved} of {len(dispatches)} dispatches proved inside"
        + (f", {guarded} stayed inside between guarded pages" if guarded else "")
    ]


def _document(found: ModelCheck) -> dict[str, Any]:
    return {**msgspec.to_builtins(found), "failed": found.failed}


def _end(rows: list[ModelCheck], as_json: bool, *, told: bool = False) -> None:
    """Exit code 1 where anything is wrong; the worst finding is the error, unless the document or the rows say it."""
    failed = [row for row in rows if row.failed]
    if not failed:
        return
    if as_json or told:
        raise click.exceptions.Exit(1)
    raise _error(failed[0].findings)


def _error(findings: list[Finding]) -> FuselineError:
    first, more = findings[0], len(findings) - 1
    message = first.message + (f" (and {more} more findings)" if more else "")
    hint = "`fuseline bisect` says which pass, rule or kernel does it; docs/checking.md explains the table"
    return FuselineError(first.code, message, node=first.node or None, hint=hint)
