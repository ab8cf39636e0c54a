"""`fuseline graph` for Graphviz and Model Explorer."""

from __future__ import annotations

import json
from pathlib import Path

import onnx
import pytest

from fuseline.cli.main import main
from tests.small_models import mlp


@pytest.fixture
def model(tmp_path: Path) -> str:
    onnx.save(mlp(), tmp_path / "m.onnx")
    return str(tmp_path / "m.onnx")


def test_to_standard_output_and_files(model: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["graph", model, "--target", "null"]) == 0
    text = capsys.readouterr().out
    assert text.startswith("digraph ")
    assert main(["graph", model, "--target", "null", "-o", str(tmp_path / "g.dot"), "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["format"] == "dot"
    assert (tmp_path / "g.dot").read_text() == text
    assert main(["graph", model, "--target", "null", "--format", "model-explorer"]) == 0
    assert json.loads(capsys.readouterr().out)["graphs"]


@pytest.mark.parametrize("measure", [False, True])
def test_node_data(measure: bool, model: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    target = [] if measure else ["--target", "null"]
    words = ["graph", model, "--node-data", str(tmp_path / "n.json"), *target, "-o", str(tmp_path / "g.json")]
    assert main([*words, *(["--measure"] if measure else [])]) == 0
    found = json.loads((tmp_path / "n.json").read_text())["dispatches"]
    assert found["name"].startswith("measured" if measure else "predicted") and found["results"]


@pytest.mark.parametrize(
    "words", [["--measure"], ["--json"], ["--measure", "--node-data", "n.json", "--target", "null"]]
)
def test_what_is_refused(words: list[str], model: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    assert main(["graph", model, *words]) == 2
    assert not (tmp_path / "n.json").exists()
