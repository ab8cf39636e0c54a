"""Several models by one `bench`: rows for each."""

from __future__ import annotations

import json
from pathlib import Path

import onnx
import pytest

from fuseline.cli import main as command_line
from tests.graphs.onnx_text import onnx_model

WORDS = ("--rounds", "3", "--threads", "1,1")


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    onnx.save(onnx_model("(float[2,3] x) => (float[2,3] y) { y = Exp (x) }"), tmp_path / "a.onnx")
    (tmp_path / "b.onnx").write_bytes(b"no model")
    return tmp_path


def test_rows_and_an_error(folder: Path, capsys: pytest.CaptureFixture[str]):
    assert command_line.main(["bench", str(folder), *WORDS]) == 1
    head, first, again, broken = capsys.readouterr().out.splitlines()
    assert head.split() == ["model", "threads", "fuseline"]
    assert first.split()[:2] == ["a.onnx", "1"] and again.split()[0] == "1"
    assert broken.split()[:2] == ["b.onnx", "error"]


def test_a_document(folder: Path, capsys: pytest.CaptureFixture[str]):
    assert command_line.main(["bench", str(folder), "--json", "--per-dispatch", *WORDS]) == 1
    first, broken = json.loads(capsys.readouterr().out)["models"]
    assert first["model"] == "a.onnx" and len(first["results"]) == 2 and len(first["dispatches"]) == 1
    assert first["results"][0]["median_seconds"]["fuseline"] > 0
    assert broken["error"]["code"].startswith("E01")


def test_inputs_are_for_one(folder: Path, capsys: pytest.CaptureFixture[str]):
    assert command_line.main(["bench", str(folder), "--input", "x=@x.npy"]) == 2
    assert "--input is for one model" in " ".join(capsys.readouterr().err.split())
