"""`fuseline tune --fit`: measured, fitted, shown, written for `--target cpu:FILE`."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from fuseline.cli.main import main
from fuseline.targets import create_target
from fuseline.tuning.fit import fitting
from fuseline.tuning.fit.records import write_records
from tests.unit.tuning.fit.measured import TRUE, USED, program


@pytest.fixture
def records(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setattr(fitting, "machine_kind", lambda: "here")
    path, name = tmp_path / "r.jsonl", "cpu"  # with the caches of this machine, which `cpu:avx512` does not ask for
    own = [program(f"m{i}", 25, target=name) for i in range(4)]
    strangers = [program("far", target=name, machine="there"), program("other", target="cpu:none")]
    write_records(path, [*own, *strangers])
    return path


def test_records_are_fitted_shown_and_written(records: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]):
    path = tmp_path / "deep" / "here.toml"
    assert main(["tune", "--fit", "--records", str(records), "--write", str(path)]) == 0
    shown = capsys.readouterr()
    assert "m0.onnx" in shown.out and "as it was" in shown.out and "far.onnx" not in shown.out
    assert "1 record of another kind of machine left out" in shown.err and "1 record of another target" in shown.err
    plain, described = create_target("cpu").description, create_target(f"cpu:{path}").description
    assert described.costs == plain.costs
    for kind in USED:
        assert getattr(described.work_costs, kind) == pytest.approx(getattr(TRUE, kind), rel=0.15)
    assert described.work_costs.gathered == plain.work_costs.gathered


def test_everything_is_in_json(records: Path, capsys: pytest.CaptureFixture[str]):
    assert main(["tune", "--fit", "--records", str(records), "--json"]) == 0
    found = json.loads(capsys.readouterr().out)
    assert (found["command"], found["target"]) == ("tune", "cpu") and len(found["fit"]["models"]) == 4
    assert (found["fit"]["other_machines"], found["fit"]["other_targets"]) == (1, 1)
    assert found["fit"]["costs"]["product"] > 0 and found["fit"]["models"][0]["after"]["correlation"] > 0.9


@pytest.mark.parametrize(
    ("arguments", "code"),
    [
        (["--target", "null"], "E0501"), (["nothing.onnx"], "E0101"), (["--threads", "zero"], "E0501"),
        (["--records", "none.jsonl"], "E0501"),
    ],
)  # fmt: skip
def test_bad_input_is_refused_and_nothing_written(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], arguments: list[str], code: str
):
    monkeypatch.chdir(tmp_path)
    assert main(["tune", "--fit", *arguments, "--write", "here.toml", "--json"]) != 0
    assert json.loads(capsys.readouterr().out)["error"]["code"] == code
    assert not (tmp_path / "here.toml").exists()


def test_what_was_left_out_is_said_where_too_little_is_left(
    records: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
):
    monkeypatch.setattr(fitting, "machine_kind", lambda: "nowhere")
    assert main(["tune", "--fit", "--records", str(records), "--json"]) != 0
    assert "6 records of other machines" in json.loads(capsys.readouterr().out)["error"]["message"]


def test_the_search_says_where_the_fit_is(capsys: pytest.CaptureFixture[str]):
    assert main(["tune", "--help"]) == 0
    assert "--fit" in capsys.readouterr().out
    assert main(["tune", "--fit", "--help"]) == 0
    assert "--records" in capsys.readouterr().out
