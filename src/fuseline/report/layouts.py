"""What was decided about constants that several dispatches read in different layouts, in words."""

from __future__ import annotations

from fuseline.report.quantities import quantity, seconds
from fuseline.report.records import LayoutDecision


def layout_line(one: LayoutDecision) -> str:
    """One line: who reads what as whom, or why not, and what either costs."""
    size = f"{quantity(one.bytes)}B"
    if one.verdict == "shared":
        lost = f"{seconds(one.ns / 1e9)} a run, {one.share:.2%} of what that takes"
        return f"  constant stored once: {one.reader} reads {size} as {one.owner} asked; predicted loss {lost}"
    return f"  constant stored twice: {size} for {one.reader} beside {one.owner}: {one.code}: {one.detail}"
