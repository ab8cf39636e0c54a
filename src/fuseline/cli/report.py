"""`fuseline report`: one offline HTML page."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import click

from fuseline.cli.console import emit, say
from fuseline.cli.models import record_of
from fuseline.cli.options import compile_options, json_option, model_argument, threads_option
from fuseline.cli.output import deliver, is_stdout, refuse_two_documents


@click.command()
@model_argument
@click.option(
    "-o",
    "--output",
    type=click.Path(path_type=Path),
    help="The page (default: MODEL with .html); - for standard output.",
)
@compile_options
@threads_option
@json_option
def report(model: Path, output: Path | None, as_json: bool, **options: Any) -> None:
    """Write one HTML page about the compile of MODEL: statistics, dispatches, decisions; it needs no network."""
    from fuseline.report.page import render_page

    refuse_two_documents(output, as_json)
    page = render_page(record_of(model, options)).encode()
    path = output or model.with_suffix(".html")
    deliver(path, page)
    if as_json:
        emit("report", {"model": str(model), "output": str(path), "bytes": len(page)})
    elif not is_stdout(path):
        say(str(path))
