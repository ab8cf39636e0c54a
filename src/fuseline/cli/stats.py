"""`fuseline stats`: what a compile counted."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import click
import msgspec

from fuseline.cli.console import emit, say
from fuseline.cli.models import record_of
from fuseline.cli.options import compile_options, json_option, model_argument, threads_option
from fuseline.report.dispatches import dispatches_json, dispatches_table
from fuseline.report.explain import decision_line
from fuseline.report.records import CompileRecord
from fuseline.report.statistics import statistics_json, statistics_table


@click.command()
@model_argument
@compile_options
@threads_option
@click.option("--dispatches", "with_dispatches", is_flag=True, help="Print the dispatch table, too.")
@click.option(
    "--decisions",
    "with_decisions",
    is_flag=True,
    help="Print the decisions, too (`diff` then says which of them did it).",
)
@json_option
def stats(model: Path, with_dispatches: bool, with_decisions: bool, as_json: bool, **options: Any) -> None:
    """Count dispatches, executables, bytes, fused and missed edges of MODEL (an ONNX file or a .fuse artifact)."""
    record = record_of(model, options)
    if as_json:
        tables: dict[str, Any] = {"dispatch_table": dispatches_json(record)} if with_dispatches else {}
        tables |= {"decisions": msgspec.to_builtins(record.decisions)} if with_decisions else {}
        emit("stats", {**_head(model, record), **statistics_json(record), **tables})
        return
    if with_dispatches:
        say(dispatches_table(record))
        say("")
    say(statistics_table(record))
    if with_decisions:
        say(["", *(decision_line(decision) for decision in record.decisions)])


def _head(model: Path, record: CompileRecord) -> dict[str, Any]:
    made_for = {"target": record.target, "threads": record.threads, "graph": record.fingerprint}
    return {"model": str(model), **made_for, "warnings": record.warnings}
