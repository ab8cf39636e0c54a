"""Rows of a table over models: one that fails is a row with its error, and the others are compiled."""

from __future__ import annotations

from pathlib import Path

import onnx
import pytest

from fuseline.cli.model_rows import model_rows
from fuseline.errors import FuselineError
from tests.graphs.onnx_text import onnx_model


def _folder(tmp_path: Path) -> Path:
    onnx.save(onnx_model("(float[2,3] x) => (float[2,3] y) { y = Exp (x) }"), tmp_path / "a.onnx")
    (tmp_path / "b.onnx").write_bytes(b"no model at all")
    onnx.save(onnx_model("(float[4] x) => (float[4] y) { z = Abs (x) y = Neg (z) }"), tmp_path / "c.onnx")
    return tmp_path


def test_a_row_for_each(tmp_path: Path, capsys: pytest.CaptureFixture[str]):
    first, broken, last = model_rows([_folder(tmp_path)], {"target": "null"})
    assert [row.model for row in (first, broken, last)] == ["a.onnx", "b.onnx", "c.onnx"]
    assert first.record is not None and len(first.record.dispatches) == 1 and first.error is None
    assert last.record is not None and last.record.dispatches[0].label.endswith("_4_f32") and last.error is None
    assert broken.record is None and broken.error is not None and broken.error["code"].startswith("E01")
    told = capsys.readouterr().err
    assert "[1/3] a.onnx" in told and "[3/3] c.onnx" in told and broken.error["code"] in told


def test_rows_come_as_they_are_compiled(tmp_path: Path, capsys: pytest.CaptureFixture[str]):
    rows = model_rows([_folder(tmp_path)], {"target": "null"})
    next(rows)
    assert "[2/3]" not in capsys.readouterr().err


def test_a_folder_without_models(tmp_path: Path):
    with pytest.raises(FuselineError) as raised:
        list(model_rows([tmp_path], {}))
    assert raised.value.code == "E0101" and str(tmp_path) in str(raised.value)
