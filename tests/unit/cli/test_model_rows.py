"""Rows of a table over models: one that fails is a row with its error, and the others are compiled."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import onnx
import pytest

from fuseline.cli.console import note, warn
from fuseline.cli.model_rows import Workers, model_rows, quiet_work
from fuseline.cluster.model_work import Answer
from fuseline.errors import FuselineError
from fuseline.report.model_table import ModelRow
from fuseline.runtime.processors import allowed_processors
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


def test_rows_of_workers_are_those_made_here(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
):
    """Same order, same rows, same lines; what only this process can refuse is refused here."""
    asked: list[Any] = []

    def on_workers(
        scheduler: str, files: Mapping[str, Path], options: Any, work: Any, arguments: Any, **more: Any
    ) -> Iterator[Answer[Any]]:
        asked.append((scheduler, options, more["kind"], more["hold"]))
        for number, (name, path) in enumerate(files.items(), 1):
            try:
                answer: Answer[Any] = Answer(name, work(path, options, *arguments), host="h")
            except FuselineError as error:
                answer = Answer(name, error=error)
            more["finished"](number, len(files), answer)
            yield answer

    monkeypatch.setattr("fuseline.cluster.model_work.on_workers", on_workers)
    options = {"target": "null", "after_pass": print}
    folder = _folder(tmp_path)
    here = list(model_rows([folder], {"target": "null", "threads": len(allowed_processors())}))
    capsys.readouterr()
    there = list(model_rows([folder], options, Workers("tcp://h:1", "some")))

    def told_of(rows: list[ModelRow]) -> list[Any]:
        return [(row.model, row.error_code, row.record and row.record.dispatches) for row in rows]

    assert told_of(there) == told_of(here)
    assert asked == [("tcp://h:1", {"target": "null", "threads": len(allowed_processors())}, "some", 0)]
    told = capsys.readouterr().err
    assert "[1/3] a.onnx on h" in told and "b.onnx: error E01" in told


def test_lines_of_a_worker_come_along():
    def work(path: Path, options: Mapping[str, Any]) -> int:
        warn(["mind"])
        note(str(path))
        return len(options)

    assert quiet_work(Path("m"), {"a": 1}, work, ()) == (1, ["warning: mind", "m"])


@pytest.mark.slow
def test_rows_of_real_workers(tmp_path: Path, capfd: pytest.CaptureFixture[str]):
    pytest.importorskip("distributed")
    rows = list(model_rows([_folder(tmp_path)], {"target": "null"}, Workers("local")))
    assert [row.model for row in rows] == ["a.onnx", "b.onnx", "c.onnx"]
    assert rows[0].record is not None and rows[2].record is not None and rows[1].error_code.startswith("E01")
    assert "Traceback" not in capfd.readouterr().err
