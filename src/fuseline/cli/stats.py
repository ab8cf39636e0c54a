"""`fuseline stats`: what a compile counted, or the compiles of several models, one row each."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import click
import msgspec

from fuseline.cli.console import emit, say
from fuseline.cli.model_files import is_one_file
from fuseline.cli.model_rows import Workers, model_rows
from fuseline.cli.models import record_of
from fuseline.cli.options import compile_options, json_option, markdown_option, scheduler_options, threads_option
from fuseline.errors import FuselineError
from fuseline.report.dispatches import dispatches_json, dispatches_table
from fuseline.report.explain import decision_line
from fuseline.report.model_table import ModelRow, markdown_of, table_of
from fuseline.report.records import CompileRecord
from fuseline.report.statistics import statistics_json, statistics_table


@click.command()
@click.argument("models", nargs=-1, required=True, type=click.Path(path_type=Path))
@click.option("--dispatches", "with_dispatches", is_flag=True, help="Print the dispatch table, too.")
@click.option(
    "--decisions",
    "with_decisions",
    is_flag=True,
    help="Print the decisions, too (`diff` then says which of them did it).",
)
@markdown_option
@compile_options
@threads_option
@scheduler_options
@json_option
def stats(
    models: tuple[Path, ...],
    with_dispatches: bool,
    with_decisions: bool,
    as_markdown: bool,
    as_json: bool,
    scheduler: str | None,
    kind: str | None,
    **options: Any,
) -> None:
    """Count dispatches, executables, bytes, fused and missed edges of MODELS (ONNX files or .fuse artifacts).

    Several of them, a folder or a quoted glob are a table with a row per model. One that fails is a row with the code
    of its error; the others are counted, and the exit code is 1. `diff` compares two such tables (--json).
    """
    if as_json and as_markdown:
        raise FuselineError("E0501", "--json and --markdown are two forms of the output", hint="leave one of them out")
    if is_one_file(models) and not as_markdown and scheduler is None:
        _one(models[0], with_dispatches, with_decisions, as_json, options)
        return
    if (with_dispatches or with_decisions) and not as_json:
        message = "--dispatches and --decisions of several models are for --json"
        raise FuselineError("E0501", message, hint="add --json, or give one model")
    rows = list(model_rows(models, options, Workers(scheduler, kind)))
    if as_json:
        emit("stats", {"models": [_row(row, with_dispatches, with_decisions) for row in rows]})
    else:
        say(markdown_of(rows) if as_markdown else table_of(rows))
    if any(row.error is not None for row in rows):
        raise click.exceptions.Exit(1)


def _one(model: Path, with_dispatches: bool, with_decisions: bool, as_json: bool, options: Mapping[str, Any]) -> None:
    record = record_of(model, options)
    if as_json:
        emit("stats", _document(str(model), record, with_dispatches, with_decisions))
        return
    if with_dispatches:
        say(dispatches_table(record))
        say("")
    say(statistics_table(record))
    if with_decisions:
        say(["", *(decision_line(decision) for decision in record.decisions)])


def _row(row: ModelRow, with_dispatches: bool, with_decisions: bool) -> dict[str, Any]:
    if row.record is None:
        return {"model": row.model, "error": row.error}
    return _document(row.model, row.record, with_dispatches, with_decisions)


def _document(model: str, record: CompileRecord, with_dispatches: bool, with_decisions: bool) -> dict[str, Any]:
    tables: dict[str, Any] = {"dispatch_table": dispatches_json(record)} if with_dispatches else {}
    tables |= {"decisions": msgspec.to_builtins(record.decisions)} if with_decisions else {}
    tables |= {"quantization_nodes": msgspec.to_builtins(record.quantization)} if record.quantization else {}
    return {**_head(model, record), **statistics_json(record), **tables}


def _head(model: str, record: CompileRecord) -> dict[str, Any]:
    made_for = {"target": record.target, "threads": record.threads, "graph": record.fingerprint}
    return {"model": model, **made_for, "warnings": record.warnings}
