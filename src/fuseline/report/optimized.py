"""What rewriting a graph did to its operators, as tables and lines."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from rich.table import Table


def optimized_table(summary: Mapping[str, Any]) -> Table:
    """The operators whose number changed, and how often each rewrite did something (`exports.optimized.summary`)."""
    table = Table("operator", "before", "after", box=None, header_style="bold", pad_edge=False)
    for column in table.columns[1:]:
        column.justify = "right"
    for name, counts in summary["operators"].items():
        if counts["before"] != counts["after"]:
            table.add_row(name, str(counts["before"]), str(counts["after"]))
    for name, count in summary["rewrites"].items():
        table.add_row(f"[dim]{name}[/]", "", f"[dim]{count} ×[/]")
    return table


def left_lines(summary: Mapping[str, Any]) -> list[str]:
    """What rewrites left as it was: rewrite, node, reason."""
    return [f"left: {one['rewrite']} at {one['node']}: {one['reason']}" for one in summary["left"]]
