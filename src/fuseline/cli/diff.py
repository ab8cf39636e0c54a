"""`fuseline diff`: two models, artifacts, plans or saved statistics side by side, or two tables of models."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import click
import msgspec

from fuseline.cli.console import emit, err, say
from fuseline.cli.models import is_model, refuse_compile_options
from fuseline.cli.options import compile_options, json_option, markdown_option, threads_option
from fuseline.cli.saved import any_record, any_rows
from fuseline.errors import FuselineError
from fuseline.report.difference import Difference, difference, difference_lines
from fuseline.report.model_table import ModelRow
from fuseline.report.records import CompileRecord
from fuseline.report.regressions import Condition, condition, regression
from fuseline.report.table_difference import change_lines, change_markdown, paired, row_changes, table_failures


def _conditions(context: click.Context, parameter: click.Parameter, values: tuple[str, ...]) -> tuple[Condition, ...]:
    del context, parameter
    return tuple(condition(value) for value in values)


@click.command()
@click.argument("before", type=click.Path(path_type=Path))
@click.argument("after", type=click.Path(path_type=Path))
@click.option(
    "--fail-if",
    "conditions",
    multiple=True,
    callback=_conditions,
    metavar="CONDITION",
    help="Exit 1 on this: any, more-dispatches, more-copies, .., or a threshold: 'dispatches>2', 'transient-bytes>2%'.",
)
@markdown_option
@compile_options
@threads_option
@json_option
def diff(
    before: Path,
    after: Path,
    conditions: tuple[Condition, ...],
    as_markdown: bool,
    as_json: bool,
    **options: Any,
) -> None:
    """Show what changed from BEFORE to AFTER: dispatches that appeared, vanished or changed, and the decisions that did
    it.

    Each is an ONNX file, a .fuse artifact, a plan (.toml, .plan), or the saved output of `stats --dispatches
    --decisions --json` (.json). Two folders, or two saved tables of `stats MODELS --json`, are compared row by row.
    """
    if as_json and as_markdown:
        raise FuselineError("E0501", "--json and --markdown are two forms of the output", hint="leave one of them out")
    if not any(is_model(path) for path in (before, after)):
        refuse_compile_options(options)
    old, new = (any_rows(path, options) for path in (before, after))
    if old is not None and new is not None:
        _tables(before, after, (old, new), conditions, (as_markdown, as_json))
    elif old is not None or new is not None:
        hint = "give two folders, two tables of `stats MODELS --json`, or one of each"
        raise FuselineError("E0501", "one side is a table of models, the other is not", node=str(after), hint=hint)
    elif as_markdown:
        raise FuselineError("E0501", "--markdown is for tables of models", node=str(before), hint="leave it out")
    else:
        _records(before, after, conditions, as_json, options)


def _tables(
    before: Path,
    after: Path,
    rows: tuple[Sequence[ModelRow], Sequence[ModelRow]],
    conditions: Sequence[Condition],
    form: tuple[bool, bool],
) -> None:
    as_markdown, as_json = form
    pairs = paired(*rows)
    changes, failed = row_changes(pairs), table_failures(conditions, pairs)
    if as_json:
        rows_changed = msgspec.to_builtins(changes)
        emit("diff", {"before": str(before), "after": str(after), "models": rows_changed, "failed": failed})
    else:
        say((change_markdown if as_markdown else change_lines)(changes) if changes else ["no difference"])
    _exit({text: "; ".join(lines) for text, lines in failed.items()}, as_json)


def _records(
    before: Path, after: Path, conditions: Sequence[Condition], as_json: bool, options: Mapping[str, Any]
) -> None:
    old, new = (any_record(path, options if is_model(path) else {}) for path in (before, after))
    found = difference(old, new)
    failed = _failures(conditions, found, old, new)
    if as_json:
        emit("diff", {"before": str(before), "after": str(after), **msgspec.to_builtins(found), "failed": failed})
    else:
        say(difference_lines(found) or ["no difference"])
    _exit(failed, as_json)


def _exit(failed: Mapping[str, str], as_json: bool) -> None:
    """Exit code 1 where a condition is met; how it was is on standard error, unless the document says it."""
    if failed and not as_json:
        for text, change in failed.items():
            err().print(f"fail-if {text}: {change}")
    if failed:
        raise click.exceptions.Exit(1)


def _failures(
    conditions: Sequence[Condition], found: Difference, old: CompileRecord, new: CompileRecord
) -> dict[str, str]:
    """The conditions that are met, with how."""
    differs = None if found.empty else "they differ"
    met = {wanted.text: differs if wanted.any else regression(wanted, old, new) for wanted in conditions}
    return {text: change for text, change in met.items() if change is not None}
