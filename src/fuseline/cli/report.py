"""`fuseline report`: one offline HTML page."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import click

from fuseline.cli.console import emit, say
from fuseline.cli.files import write_atomically
from fuseline.cli.models import record_of
from fuseline.cli.options import compile_options, json_option, model_argument, threads_option


@click.command()
@model_argument
@click.option("-o", "--output", type=click.Path(path_type=Path), help="The page (default: MODEL with .html).")
@compile_options
@threads_option
@json_option
def report(model: Path, output: Path | None, as_json: bool, **options: Any) -> None:
    """Write one HTML page about the compile of MODEL: statistics, dispatches, decisions; it needs no network."""
    from fuseline.report.page import render_page

    page = render_page(record_of(model, options)).encode()
    path = output or model.with_suffix(".html")
    write_atomically(path, lambda file: _write(file, page))
    if as_json:
        emit("report", {"model": str(model), "output": str(path), "bytes": len(page)})
    else:
        say(str(path))


def _write(file: Any, page: bytes) -> None:
    file.write(page)
