"""`fuseline stats`: what a compile counted."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import click

from fuseline.cli.console import emit, say
from fuseline.cli.models import record_of
from fuseline.cli.options import compile_options, json_option, model_argument, threads_option
from fuseline.report.dispatches import dispatches_json, dispatches_table
from fuseline.report.statistics import statistics_json, statistics_table


@click.command()
@model_argument
@compile_options
@threads_option
@click.option("--dispatches", "with_dispatches", is_flag=True, help="Print the dispatch table, too.")
@json_option
def stats(model: Path, with_dispatches: bool, as_json: bool, **options: Any) -> None:
    """Count dispatches, executables, bytes, fused and missed edges of MODEL (an ONNX file or a .fuse artifact)."""
    record = record_of(model, options)
    if as_json:
        extra = {"dispatch_table": dispatches_json(record)} if with_dispatches else {}
        emit(
            "stats",
            {
                "model": str(model),
                "target": record.target,
                "threads": record.threads,
                "warnings": record.warnings,
                **statistics_json(record),
                **extra,
            },
        )
        return
    if with_dispatches:
        say(dispatches_table(record))
        say("")
    say(statistics_table(record))
