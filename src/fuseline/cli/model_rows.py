"""Compiles several models one after the other, each to a row of a table; one that fails is a row with its error."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from fuseline.border import coded
from fuseline.cli.console import note
from fuseline.cli.model_files import model_files
from fuseline.cli.models import record_of
from fuseline.report.model_table import ModelRow


def model_rows(paths: Sequence[Path], options: Mapping[str, Any]) -> Iterator[ModelRow]:
    """A row for each model behind `paths`, as it is compiled; a line about each goes to standard error first. Raises
    E0101 for a folder without models."""
    files = model_files(paths)
    for number, (name, path) in enumerate(files.items(), 1):
        note(f"[{number}/{len(files)}] {name}")
        yield _row(name, path, options)


def _row(name: str, path: Path, options: Mapping[str, Any]) -> ModelRow:
    try:
        return ModelRow(model=name, record=record_of(path, options))
    except Exception as problem:  # noqa: BLE001 - whatever ends one model, the others are compiled
        error = coded(problem, "stats")
        note(f"  error {error.code}: {error.message}")
        return ModelRow(model=name, error=error.to_json())
