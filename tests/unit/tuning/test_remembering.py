"""What a search leaves behind: records of what was kept and of what was tried in vain, once its result is confirmed."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner

from fuseline.cli.cache import cache
from fuseline.errors import FuselineError
from fuseline.report.records import TunedChange
from fuseline.report.tuning_records import Confirmed, TrialRow, TuningReport
from fuseline.tuning.machine_kind import machine_kind
from fuseline.tuning.records import all_records, choices_for, compile_kind
from fuseline.tuning.remembering import remember_search

CONFIRMED = Confirmed(ratio=0.9, low=0.88, high=0.92, seconds=0.009, default_seconds=0.01, faster=True)
KEPT = TunedChange(knob="kernel/contraction.00000000000a", choice="tile=4x16", gain=0.06)
OPTIONS: dict[str, Any] = {"threads": 1}


@pytest.fixture(autouse=True)
def _own_cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("FUSELINE_CACHE_DIR", str(tmp_path / "cache"))
    monkeypatch.delenv("FUSELINE_NO_CACHE", raising=False)


def _report(tmp_path: Path, **changes: Any) -> TuningReport:
    model = tmp_path / "m.onnx"
    model.write_bytes(b"a model")
    given: dict[str, Any] = {
        "model": str(model), "target": "cpu", "graph": "", "machine": machine_kind(), "objectives": ("time",),
        "seed": 0,
        "ended": "budget", "seconds": 1.0, "default_seconds": 0.01, "best": 1, "confirmed": CONFIRMED, "kept": "tuned",
        "changes": [KEPT, TunedChange(knob="dedup", choice="none", gain=0.04)],
        "trials": [
            TrialRow(number=0, state="complete"),
            TrialRow(number=1, state="complete", changes={KEPT.knob: KEPT.choice, "dedup": "none"}),
            TrialRow(number=2, state="complete", changes={"kernel/pooling.00000000000b": "tile=2x16"}),
        ],
    }  # fmt: skip
    return TuningReport(**{**given, **changes})


def test_what_is_kept_and_what_was_tried_in_vain_are_remembered(tmp_path: Path):
    assert remember_search(_report(tmp_path), OPTIONS) == 2
    found = {one.kernel: one for one in all_records()}
    kept, tried = found["contraction.00000000000a"], found["pooling.00000000000b"]
    assert (kept.choice, kept.gain, kept.ratio.value, kept.seconds) == ("tile=4x16", 0.06, 0.9, 0.009)
    assert (tried.choice, tried.gain, tried.ratio.value) == ("default", 0.0, 1.0)
    assert [name for name, _ in choices_for(compile_kind(threads=1)).asked] == ["00000000000a"]


def test_a_search_that_keeps_the_default_takes_back_what_an_earlier_one_said(tmp_path: Path):
    remember_search(_report(tmp_path), OPTIONS)
    remember_search(_report(tmp_path, kept="default", changes=[]), OPTIONS)
    assert not choices_for(compile_kind(threads=1))


def test_a_change_that_stands_alone_gained_what_the_plan_did(tmp_path: Path):
    alone = TunedChange(knob=KEPT.knob, choice=KEPT.choice)
    remember_search(_report(tmp_path, changes=[alone]), OPTIONS)
    assert next(one.gain for one in all_records() if one.choice != "default") == pytest.approx(0.1)


def test_records_hold_for_the_threads_that_were_chosen(tmp_path: Path):
    changes = [KEPT, TunedChange(knob="threads", choice="1", gain=0.01)]
    remember_search(_report(tmp_path, changes=changes), {"threads": None})
    assert {one.threads for one in all_records()} == {1}


@pytest.mark.parametrize("changes", [{"confirmed": None}, {"ended": "interrupted"}])
def test_nothing_is_remembered_of_what_was_not_confirmed(changes: dict[str, Any], tmp_path: Path):
    assert remember_search(_report(tmp_path, **changes), OPTIONS) == 0
    assert all_records() == []


def test_the_command_writes_records_to_a_file_and_takes_them_in(tmp_path: Path):
    remember_search(_report(tmp_path), OPTIONS)
    before = all_records()
    file = str(tmp_path / "records.json")
    assert "2 tuning records written" in CliRunner().invoke(cache, ["export", file]).output
    assert CliRunner().invoke(cache, ["clear"]).exit_code == 0 and all_records() == []
    assert "2 tuning records taken in" in CliRunner().invoke(cache, ["import", file]).output
    assert sorted(all_records(), key=lambda one: one.kernel) == sorted(before, key=lambda one: one.kernel)


@pytest.mark.parametrize("arguments", [["export"], ["import"], ["clear", "x.json"], ["info", "x.json"]])
def test_a_file_is_asked_for_where_records_travel_and_nowhere_else(arguments: list[str]):
    answer = CliRunner().invoke(cache, arguments)
    assert isinstance(answer.exception, FuselineError) and answer.exception.code == "E0501"


def test_records_are_of_the_kind_of_machine_that_measured(tmp_path: Path) -> None:
    remember_search(_report(tmp_path, machine="workers elsewhere"), OPTIONS)
    assert {one.machine for one in all_records()} == {"workers elsewhere"}
    assert not choices_for(compile_kind(threads=1)).asked
