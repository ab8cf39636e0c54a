"""`--report-bug`: an archive that shows the failure by itself, without the weights."""

from __future__ import annotations

import json
import zipfile
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import pytest
from onnx import TensorProto

import fuseline
from fuseline.cli.main import main
from fuseline.errors import FuselineError
from fuseline.verify.stripped_weights import write_stripped
from tests.graphs.onnx_text import onnx_model
from tests.small_models import attention, convolutions, mlp

SECRET = np.linspace(3, 5, 4096, dtype=np.float32)


def _bad_model(path: Path) -> Path:
    """A model with large weights in which one node asks for a place that a constant does not have."""
    nodes = "[pick] row = Gather(table, i)  h = MatMul(x, w)  y = Add(h, row)"
    weights = {"w": SECRET.reshape(64, 64), "table": np.arange(3, dtype=np.float32), "i": np.array([9])}
    model = onnx_model(f"(float[2, 64] x) => (float[2, 64] y) {{ {nodes} }}", weights, opset=17)
    onnx.save(model, path)
    return path


def _report(path: Path) -> dict[str, Any]:
    with zipfile.ZipFile(path) as archive:
        return json.loads(archive.read("report.json"))


def test_the_archive_alone_shows_the_failure(tmp_path: Path, capsys: pytest.CaptureFixture[str]):
    model = _bad_model(tmp_path / "private.onnx")
    assert (
        main(
            [
                "compile",
                str(model),
                "--fusion",
                "none",
                "-o",
                str(tmp_path / "m.fuse"),
                "--report-bug",
                str(tmp_path / "r.zip"),
            ]
        )
        == 1
    )
    assert "shows the failure by itself" in capsys.readouterr().err
    report = _report(tmp_path / "r.zip")
    assert report["reproduced"]
    assert report["error"]["code"] == report["error_again"]["code"] == "E0105"
    assert report["error_again"]["node"] == "pick"
    assert report["command"] == ["fuseline", "compile", "model.onnx", "--fusion", "none"]
    assert {"fuseline", "packages", "python", "platform"} <= set(report)
    with zipfile.ZipFile(tmp_path / "r.zip") as archive:
        assert sorted(archive.namelist()) == ["model.onnx", "report.json", "traceback.txt", "weights-float32.bin"]
        assert "FuselineError" in archive.read("traceback.txt").decode()
        everything = b"".join(archive.read(name) for name in archive.namelist())
    assert SECRET.tobytes()[:64] not in everything
    with zipfile.ZipFile(tmp_path / "r.zip") as archive:
        archive.extractall(tmp_path / "got")
    with pytest.raises(FuselineError) as caught:
        fuseline.compile(tmp_path / "got" / "model.onnx", fusion="none")
    assert caught.value.node == "pick"


def test_nothing_is_written_when_nothing_fails(tmp_path: Path):
    assert main(["errors", "--report-bug", str(tmp_path / "r.zip")]) == 0
    assert not (tmp_path / "r.zip").exists()


def test_an_option_without_a_file_and_a_place_that_cannot_be_written(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
):
    assert main(["errors", "--report-bug"]) == 2
    (tmp_path / "file").touch()
    assert main(["compile", str(_bad_model(tmp_path / "m.onnx")), f"--report-bug={tmp_path / 'file' / 'r.zip'}"]) == 1
    assert "E0502" in capsys.readouterr().err


def test_a_model_that_cannot_be_read_is_left_out_and_said_so(tmp_path: Path):
    (tmp_path / "m.onnx").write_bytes(b"\xff" * 99)
    assert main(["compile", str(tmp_path / "m.onnx"), "--report-bug", str(tmp_path / "r.zip")]) == 1
    assert "m.onnx" in _report(tmp_path / "r.zip")["left_out"][0]


@pytest.mark.parametrize(
    "model", [mlp(), convolutions(), attention("batch", "length")], ids=["mlp", "cnn", "attention"]
)
def test_a_stripped_model_makes_the_same_dispatches(model: onnx.ModelProto, tmp_path: Path):
    (tmp_path / "stripped").mkdir()
    onnx.save(model, tmp_path / "m.onnx", save_as_external_data=True, location="w.bin", size_threshold=0)
    write_stripped(tmp_path / "m.onnx", tmp_path / "stripped" / "m.onnx")
    ours, theirs = (
        fuseline.compile(path, target="null").stats for path in (tmp_path / "m.onnx", tmp_path / "stripped" / "m.onnx")
    )
    assert {**ours, "phase_seconds": 0} == {**theirs, "phase_seconds": 0}
    large = [
        t
        for t in onnx.load(tmp_path / "stripped" / "m.onnx", load_external_data=False).graph.initializer
        if np.prod(t.dims) >= 64
    ]
    assert large
    assert all(tensor.data_location == TensorProto.EXTERNAL for tensor in large)
