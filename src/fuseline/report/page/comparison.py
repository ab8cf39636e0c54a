"""What differs between the two sides of a page, as its script reads it."""

from __future__ import annotations

from typing import Any

import msgspec

from fuseline.report.difference import difference
from fuseline.report.page.inputs import Side
from fuseline.report.records import predicted_seconds


def comparison(first: Side, second: Side) -> dict[str, Any]:
    """Statistics, dispatches and decisions that differ, and the time of both: of a whole run, and of the dispatches
    that are on one side only (measured where both were, else predicted)."""
    found = difference(first.record, second.record)
    changes = [msgspec.to_builtins(change) for change in found.changed]
    return {
        "statistics": [[key, *values] for key, values in found.statistics.items()],
        "appeared": found.appeared,
        "vanished": found.vanished,
        "changed": changes,
        "decisions": found.decisions,
        "total": _total(first, second),
    }


def _total(first: Side, second: Side) -> dict[str, Any]:
    measured = bool(first.total_seconds and second.total_seconds)
    if measured:
        return {"measured": True, "seconds": [first.total_seconds, second.total_seconds]}
    return {"measured": False, "seconds": [predicted_seconds(first.record), predicted_seconds(second.record)]}
