"""The table of what each region gained: what is sure, the largest first, layers alike once."""

from __future__ import annotations

import pytest

from fuseline.cli.console import say
from fuseline.cli.tune_regions import MOST_REGIONS, region_table, sure_regions
from fuseline.report.tuning_records import Confirmed, RegionRow


def _row(name: str, gain: float, error: float = 1e-6, layers: int = 1) -> RegionRow:
    tuned = (f"conv.{name}", f"relu.{name}")
    return RegionRow(
        default=(f"conv.{name}+relu.{name}",), tuned=tuned, gain_seconds=gain, error_seconds=error, layers=layers
    )


def _confirmed(*rows: RegionRow) -> Confirmed:
    return Confirmed(
        ratio=0.9, low=0.8, high=0.95, seconds=1e-3, default_seconds=1e-3, faster=True, regions=tuple(rows)
    )


def test_what_is_sure_is_shown_by_size():
    rows = [_row("a", 3e-6), _row("b", -9e-6), _row("c", 2e-6), _row("d", 2e-6, 1e-7, 3), _row("e", 2e-6, 1e-7, 3)]
    assert [row.default[0] for row in sure_regions(rows)] == ["conv.b+relu.b", "conv.d+relu.d", "conv.a+relu.a"]
    assert len(sure_regions([_row(str(i), i * 1e-3) for i in range(40)])) == MOST_REGIONS


def test_the_table_names_dispatches_in_short(capsys: pytest.CaptureFixture[str]):
    table = region_table(_confirmed(_row("a", 3e-6), _row("d", 2e-6, 1e-7, 3)))
    assert table is not None
    say(table)
    shown = capsys.readouterr().out
    assert "3 alike" in shown and "+2.0 us ± 0.1" in shown and "conv.a and 1 more" in shown
    assert region_table(_confirmed(_row("a", 1e-6))) is None
