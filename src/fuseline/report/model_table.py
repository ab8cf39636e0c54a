"""What several models counted, one row each: for CI, and for a change that is judged by more than one of them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import msgspec
from rich.table import Table

from fuseline.report.markdown import markdown_table
from fuseline.report.records import CompileRecord
from fuseline.report.regressions import figure

SECONDS = "compile s"

COLUMNS: dict[str, str] = {
    "dispatches": "dispatches",
    "fills": "fills",
    "copies": "copies",
    "transposes": "standalone_transposes",
    "host ops": "host_ops",
    "executables": "executables",
    "transient bytes": "transient_bytes",
    "constant bytes": "constant_bytes.packed",
    "code bytes": "code_bytes",
    SECONDS: "phase_seconds",
}
"""The columns behind the model's name, and the statistic in each; of a group (`phase_seconds`) the sum."""

_HEADER = ("model", *COLUMNS)


class ModelRow(msgspec.Struct, frozen=True, kw_only=True):
    """One model: what its compile counted, or the coded `error` (as `FuselineError.to_json`) that it ended with."""

    model: str
    record: CompileRecord | None = None
    error: dict[str, Any] | None = None

    @property
    def error_code(self) -> str:
        """The code of the error, empty for a model that compiled."""
        return str(self.error.get("code", "")) if self.error is not None else ""


def table_of(rows: Sequence[ModelRow]) -> Table:
    """The rows as a plain table."""
    table = Table(*_HEADER, box=None, header_style="bold", pad_edge=False)
    for column in table.columns[1:]:
        column.justify = "right"
        column.no_wrap = True
    for row in rows:
        table.add_row(*_cells(row))
    return table


def markdown_of(rows: Sequence[ModelRow]) -> list[str]:
    """The rows as lines of Markdown."""
    return markdown_table(_HEADER, map(_cells, rows))


def cell(column: str, value: float | None) -> str:
    """A figure of a column, exact but for seconds; `-` for one that was not counted."""
    if value is None:
        return "-"
    return f"{value:.2f}" if column == SECONDS else f"{value:,.10g}"


def _cells(row: ModelRow) -> list[str]:
    if row.record is None:
        return [row.model, f"error {row.error_code}", *([""] * (len(COLUMNS) - 1))]
    return [row.model, *(cell(column, figure(row.record, key)) for column, key in COLUMNS.items())]
