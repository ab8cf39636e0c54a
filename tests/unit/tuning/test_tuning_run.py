"""The end of a run: what of the best trial is confirmed, and kept."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from fuseline.errors import FuselineError
from fuseline.report.tuning_records import Confirmed
from fuseline.tuning import tuning_run
from fuseline.tuning.tuning_run import TuningRun, Wishes

BEST, LEAN = {"plan/a": "apart", "plan/b": "join"}, {"plan/b": "join"}
FOUND = Confirmed(ratio=0.9, low=0.88, high=0.92, seconds=0.009, default_seconds=0.01, faster=True)


def _kept(
    monkeypatch: pytest.MonkeyPatch, lean: dict[str, str], refused: dict[str, str] | None = None, ended: str = "budget"
) -> tuple[dict[str, str], Confirmed | None, list[dict[str, str]]]:
    """What is kept, its comparison, and what was measured."""
    asked: list[dict[str, str]] = []

    def confirm(setting: Any, configuration: Mapping[str, str]) -> Confirmed:
        asked.append(dict(configuration))
        if configuration == refused:
            raise FuselineError("E0703", "cannot be one dispatch")
        return FOUND

    monkeypatch.setattr(tuning_run, "has_code", lambda program: True)  # pyright: ignore[reportUnknownLambdaType, reportUnknownArgumentType]
    run = TuningRun(Wishes(model=Path("m.onnx")), lambda setting: None, confirm)  # pyright: ignore[reportArgumentType]
    space, result = SimpleNamespace(setting=None, default=None), SimpleNamespace(ended=ended)
    chosen, confirmed = run._confirmed(space, dict(BEST), lean, result)  # pyright: ignore
    return chosen, confirmed, asked


def test_what_gains_nothing_is_not_measured_again(monkeypatch: pytest.MonkeyPatch):
    assert _kept(monkeypatch, LEAN) == (LEAN, FOUND, [LEAN])
    assert _kept(monkeypatch, dict(BEST)) == (BEST, FOUND, [BEST])


def test_all_of_it_is_kept_where_nothing_gains_by_itself_or_less_does_not_compile(monkeypatch: pytest.MonkeyPatch):
    assert _kept(monkeypatch, {}) == (BEST, FOUND, [BEST])
    assert _kept(monkeypatch, LEAN, refused=LEAN) == (BEST, FOUND, [LEAN, BEST])


def test_nothing_is_measured_after_an_interruption(monkeypatch: pytest.MonkeyPatch):
    assert _kept(monkeypatch, LEAN, ended="interrupted") == (BEST, None, [])
