"""`--dump-dispatches`: every dispatch is a program that compiles by itself and computes what the interpreter does."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import pytest

import fuseline
from fuseline.cli.main import main
from fuseline.runtime import files
from tests.draws import RNG
from tests.small_models import attention, convolutions, mlp

SIZES = {"s0": 2, "s1": 5}


def _dump(model: onnx.ModelProto, folder: Path) -> list[dict[str, Any]]:
    onnx.save(model, folder.parent / "m.onnx")
    assert main(["compile", str(folder.parent / "m.onnx"), "--target", "null", "--dump-dispatches", str(folder)]) == 0
    listed = json.loads((folder / "index.json").read_text())["dispatches"]
    assert sorted(path.name for path in folder.iterdir()) == sorted(["index.json", *(one["file"] for one in listed)])
    return listed


def _shape(one: dict[str, Any]) -> list[int]:
    return [size if isinstance(size, int) else SIZES[size] for size in one["shape"]]


def _feed(one: dict[str, Any]) -> Any:
    shape = _shape(one)
    if one["dtype"] == "int64":
        return RNG.integers(0, 40, shape)
    return RNG.standard_normal(shape).astype(one["dtype"])


@pytest.mark.parametrize(
    "model", [mlp(), convolutions(), attention("batch", "length")], ids=["mlp", "convolutions", "attention"]
)
def test_each_dispatch_compiles_and_computes_what_the_interpreter_does(model: onnx.ModelProto, tmp_path: Path):
    listed = _dump(model, tmp_path / "d")
    assert len(listed) == len(fuseline.compile(model, target="null").record.dispatches) > 0
    for one in listed:
        program = fuseline.compile(tmp_path / "d" / one["file"], threads=1)
        oracle = fuseline.compile(tmp_path / "d" / one["file"], target="interpreter")
        feeds = {item["name"]: _feed(item) for item in one["inputs"]}
        assert [item.name for item in program.inputs] == [*feeds], "weights and sizes are no feeds"
        found, wanted = program.run(feeds), oracle.run(feeds)
        assert list(found) == [item["name"] for item in one["outputs"]]
        assert [list(value.shape) for value in found.values()] == [_shape(item) for item in one["outputs"]]
        for name, value in wanted.items():
            scale = max(1.0, float(np.abs(value).max()))
            np.testing.assert_allclose(found[name], value, rtol=0, atol=1e-4 * scale)


def test_a_folder_holds_the_dispatches_of_the_last_program(tmp_path: Path):
    folder = tmp_path / "d"
    _dump(mlp(), folder)
    (folder / "notes.mlir").write_text("mine")
    onnx.save(convolutions(), tmp_path / "m.onnx")
    command = ["compile", str(tmp_path / "m.onnx"), "--target", "null", "--dump-dispatches", str(folder)]
    assert main(command) == 0
    listed = [one["file"] for one in json.loads((folder / "index.json").read_text())["dispatches"]]
    assert {path.name for path in folder.iterdir()} == {"index.json", "notes.mlir", *listed}


@pytest.mark.parametrize("index", ["[]", "{}", "{", '{"dispatches": 3}', '{"dispatches": [{"name": "x"}]}', '"x"'])
def test_an_index_of_something_else_is_left_alone(index: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]):
    onnx.save(mlp(), tmp_path / "m.onnx")
    (tmp_path / "index.json").write_text(index)
    before = sorted(tmp_path.iterdir())
    command = ["compile", str(tmp_path / "m.onnx"), "--target", "null", "--dump-dispatches", str(tmp_path)]
    assert (main(command), sorted(tmp_path.iterdir())) == (1, before)
    assert "E0502" in capsys.readouterr().err and (tmp_path / "index.json").read_text() == index


def test_what_an_index_names_elsewhere_stays(tmp_path: Path):
    onnx.save(mlp(), tmp_path / "m.onnx")
    (folder := tmp_path / "d").mkdir()
    (tmp_path / "other.mlir").write_text("mine")
    files = ["../other.mlir", str(tmp_path / "other.mlir"), "gone.mlir", ""]
    (folder / "index.json").write_text(json.dumps({"dispatches": [{"file": name} for name in files]}))
    command = ["compile", str(tmp_path / "m.onnx"), "--target", "null", "--dump-dispatches", str(folder)]
    assert main(command) == 0 and (tmp_path / "other.mlir").read_text() == "mine"


def test_the_index_says_what_each_dispatch_is(tmp_path: Path):
    listed = _dump(attention("batch", "length"), tmp_path / "d")
    first = listed[0]
    assert first["file"].startswith("000_contraction_DxDx16_f32") and first["nodes"] and first["executable"]
    assert first["inputs"] == [{"name": "input0", "dtype": "int64", "shape": ["s0", "s1"]}]
    assert [one["file"][:3] for one in listed] == [f"{i:03d}" for i in range(len(listed))]
    assert _dump(mlp(), tmp_path / "e")[-1]["outputs"][0]["shape"] == [4, 10]


@pytest.mark.parametrize("more", [["--emit", "layout"], ["-o", "x.fuse"], ["--sign", "k"]], ids=str)
def test_it_makes_nothing_else(more: list[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.chdir(tmp_path)
    onnx.save(mlp(), "m.onnx")
    assert main(["compile", "m.onnx", "--dump-dispatches", "d", *more]) == 2
    assert [path.name for path in tmp_path.iterdir()] == ["m.onnx"]


def test_a_file_is_no_folder_and_a_full_disk_leaves_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
):
    onnx.save(mlp(), tmp_path / "m.onnx")
    (tmp_path / "f").write_text("mine")
    assert main(["compile", str(tmp_path / "m.onnx"), "--dump-dispatches", str(tmp_path / "f")]) != 0
    assert "E0502" in capsys.readouterr().err and (tmp_path / "f").read_text() == "mine"

    def full(*_: object) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(files.os, "fsync", full)
    assert main(["compile", str(tmp_path / "m.onnx"), "--dump-dispatches", str(tmp_path / "d")]) != 0
    assert "E0502" in capsys.readouterr().err and not any((tmp_path / "d").iterdir())


def test_a_dump_is_of_one_model(tmp_path: Path, capsys: pytest.CaptureFixture[str]):
    model = str(tmp_path / "m.onnx")
    onnx.save(mlp(), model)
    assert main(["compile", model, model, "--target", "null", "--dump-dispatches", str(tmp_path / "d")]) == 2
    told = capsys.readouterr().err
    assert "give one model" in told and "--scheduler" not in told and not (tmp_path / "d").exists()
