"""What each region of a program gained by the final plan, as a table."""

from __future__ import annotations

from collections.abc import Sequence

from rich.table import Table

from fuseline.report.tuning_records import Confirmed, RegionRow

MOST_REGIONS = 12

CERTAIN_ERRORS = 2.0
"""A gain of fewer standard errors is not shown."""


def region_table(confirmed: Confirmed) -> Table | None:
    """The regions that surely gained or lost, the largest first, layers alike as one row; None where there are none."""
    rows = sure_regions(confirmed.regions)
    if not rows:
        return None
    table = Table("measured afresh", "gained each", "default", "now", box=None, header_style="bold", pad_edge=False)
    for row in rows:
        gained = f"{row.gain_seconds * 1e6:+.1f} us ± {row.error_seconds * 1e6:.1f}"
        table.add_row(f"{row.layers} alike" if row.layers > 1 else "", gained, _short(row.default), _short(row.tuned))
    return table


def sure_regions(regions: Sequence[RegionRow]) -> list[RegionRow]:
    """The regions whose gain or loss is larger than two standard errors, the largest in all first; one of those that
    are layers alike."""
    alike = {(row.gain_seconds, row.error_seconds, row.layers): row for row in reversed(regions)}
    sure = [row for row in alike.values() if abs(row.gain_seconds) > CERTAIN_ERRORS * row.error_seconds]
    return sorted(sure, key=lambda row: -abs(row.gain_seconds) * row.layers)[:MOST_REGIONS]


def _short(keys: Sequence[str]) -> str:
    """Dispatches by the first member of the first, and how many more there are."""
    first = keys[0].partition("+")[0] if keys else "nothing"
    return first if len(keys) < 2 else f"{first} and {len(keys) - 1} more"
