"""What was exported, as a table."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from rich.table import Table

_IDS = frozenset(("plan", "graph"))


def exported_table(summary: Mapping[str, Any]) -> Table:
    """The counts of an export (`exports.onnx.summary`); lists as how many there are."""
    table = Table("exported", "count", box=None, header_style="bold", pad_edge=False)
    table.columns[1].justify = "right"
    for key, value in summary.items():
        if key not in _IDS:
            table.add_row(key, str(len(value) if isinstance(value, list) else value))
    return table
