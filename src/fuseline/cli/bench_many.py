"""`fuseline bench` of several models: rows for each; one that fails is a row with its error."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any, TypeAlias

import click
from rich.table import Table

from fuseline.cli.console import emit, say
from fuseline.cli.model_files import model_files
from fuseline.cli.model_rows import Outcome, Workers, outcomes

Measured: TypeAlias = dict[str, Any]
"""`results`, one per count of threads, and `dispatches`, as the JSON document of one model has them."""

Cells = Callable[[Mapping[str, Any]], list[str]]
"""One of `results` as cells of a table."""


def bench_many(
    models: Sequence[Path],
    options: Mapping[str, Any],
    measure: Callable[..., Measured],
    arguments: tuple[Any, ...],
    workers: Workers,
) -> list[Outcome[Measured]]:
    """`measure(path, options, *arguments)` of what is behind `models`, here or on `workers`. Raises E0101 for a folder
    without models, and what reaching the workers raises."""
    return list(outcomes(model_files(models), options, measure, "bench", workers, arguments))


def show_many(rows: Sequence[Outcome[Measured]], heads: Sequence[str], cells: Cells, *, as_json: bool) -> None:
    """The rows as a table with these `heads` behind the model's name, or as one document. Exit code 1 where one
    failed."""
    if as_json:
        emit("bench", {"models": [_document(row) for row in rows]})
    else:
        say(models_table(rows, heads, cells))
    if any(row.error is not None for row in rows):
        raise click.exceptions.Exit(1)


def models_table(rows: Sequence[Outcome[Measured]], heads: Sequence[str], cells: Cells) -> Table:
    """A row per model and count of threads; one for a model that failed."""
    table = Table("model", *heads, box=None, header_style="bold", pad_edge=False)
    for column in table.columns[1:]:
        column.justify = "right"
    for row in rows:
        if row.result is None:
            table.add_row(row.name, f"error {row.error.code if row.error else ''}")
            continue
        for number, result in enumerate(row.result["results"]):
            table.add_row("" if number else row.name, *cells(result))
    return table


def _document(row: Outcome[Measured]) -> dict[str, Any]:
    if row.result is None:
        return {"model": row.name, "error": None if row.error is None else row.error.to_json()}
    return {"model": row.name, **row.result}
