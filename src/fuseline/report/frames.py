"""Decisions and dispatches as pandas data frames, for notebooks. pandas is not needed by anything else."""

from __future__ import annotations

from typing import Any

import msgspec

from fuseline.errors import FuselineError
from fuseline.report.dispatches import member_nodes
from fuseline.report.records import CompileRecord


def decisions_frame(record: CompileRecord) -> Any:
    """A row per decision: its fields, and a column for each number that any of them weighed (NaN where it has none).
    Raises E0503 without pandas."""
    rows = [
        {**{key: value for key, value in msgspec.to_builtins(one).items() if key != "numbers"}, **one.numbers}
        for one in record.decisions
    ]
    return _frame(rows, ["verdict", "rule", "code", "producer", "consumer"])


def dispatches_frame(record: CompileRecord) -> Any:
    """A row per dispatch: its figures, the number of its members, and its source nodes. Raises E0503 without pandas."""
    left_out = ("members", "arms", "fallback")
    rows = [
        {
            **{key: value for key, value in msgspec.to_builtins(one).items() if key not in left_out},
            "label": one.label,
            "members": len(one.members),
            "nodes": member_nodes(one),
        }
        for one in record.dispatches
    ]
    return _frame(rows, ["name", "root", "family"])


def _frame(rows: list[dict[str, Any]], columns: list[str]) -> Any:
    try:
        import pandas
    except ImportError as error:
        message = "data frames need pandas, which is not installed"
        raise FuselineError("E0503", message, hint="pip install pandas") from error
    return pandas.DataFrame(rows) if rows else pandas.DataFrame(columns=columns)
