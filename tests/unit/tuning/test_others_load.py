"""What other programs take of the processors, from tables of the test's own."""

from __future__ import annotations

import os
import time
from pathlib import Path

import pytest

from fuseline.tuning.others_load import OthersLoad

TICKS = os.sysconf("SC_CLK_TCK")


def _stat(path: Path, busy: float, idle: float, elsewhere: float = 0.0) -> None:
    """Seconds of processors 0 and 1 together, and of processor 2."""
    half = f"{int(busy / 2 * TICKS)} 0 0 {int(idle / 4 * TICKS)} {int(idle / 4 * TICKS)} 0 0 0 0 0"
    other = f"{int(elsewhere * TICKS)} 0 0 0 0 0 0 0 0 0"
    path.write_text(f"cpu  9 9 9 9 9 9 9 9 9 9\ncpu0 {half}\ncpu1 {half}\ncpu2 {other}\n\nintr 5 5\nctxt 7\n")


@pytest.mark.parametrize(("busy", "idle", "own", "share"), [(50, 50, 0, 0.5), (50, 50, 40, 0.1), (20, 80, 30, 0.0)])
def test_what_this_process_takes_does_not_count(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, busy: float, idle: float, own: float, share: float
):
    taken = iter([7.0, 7.0 + own])
    monkeypatch.setattr(time, "process_time", lambda: next(taken))
    path = tmp_path / "stat"
    _stat(path, 100, 100)
    watched = OthersLoad(str(path), (0, 1))
    _stat(path, 100 + busy, 100 + idle, elsewhere=1000)
    assert watched.share() == pytest.approx(share)


def test_a_system_that_does_not_say_is_taken_for_quiet(tmp_path: Path):
    assert OthersLoad(str(tmp_path / "none"), (0,)).share() == 0.0
    _stat(tmp_path / "stat", 1, 1)
    assert OthersLoad(str(tmp_path / "stat"), (0,)).share() == 0.0  # no time passed


def test_on_this_machine():
    assert 0.0 <= OthersLoad().share() <= 1.0
