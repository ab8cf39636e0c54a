"""Bad model files: a coded error that names the file or node, exit code 1 or 2, nothing written; by the command line
and from Python."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import numpy as np
import onnx
import pytest

import fuseline
from fuseline.cli.main import main
from tests.graphs.onnx_text import onnx_model
from tests.small_models import mlp


def _truncated(path: Path) -> None:
    data = mlp().SerializeToString()
    path.write_bytes(data[: len(data) // 2])


def _no_onnx(path: Path) -> None:
    path.write_text("# not a model\n" * 20)


def _empty(path: Path) -> None:
    path.write_bytes(b"")


def _directory(path: Path) -> None:
    path.mkdir()


def _unknown_op(path: Path) -> None:
    onnx.save(onnx_model("(float[2] x) => (float[2] y) { [Frob_7] y = Frobnicate(x) }"), path)


def _undefined_value(path: Path) -> None:
    onnx.save(onnx_model("(float[2] x) => (float[2] y) { [Add_0] y = Add(x, nowhere) }"), path)


def _ort_format(path: Path) -> None:
    path.write_bytes(b"\x18\0\0\0ORTM\0\0\0\0\x0c\0\x10\0\x0c\0\x08\0\0\0\x04\0")


def _external(location: str) -> Callable[[Path], None]:
    def write(path: Path) -> None:
        (path.parent.parent / "secret.bin").write_bytes(bytes(16 * 32 * 4))
        model = mlp()
        tensor = model.graph.initializer[0]
        tensor.ClearField("raw_data")
        tensor.data_location = onnx.TensorProto.EXTERNAL
        entry = tensor.external_data.add()
        entry.key, entry.value = "location", location
        path.write_bytes(model.SerializeToString())

    return write


CASES: dict[str, tuple[Callable[[Path], None], tuple[str, ...], str]] = {
    "truncated": (_truncated, ("E0101", "E0102"), "m.onnx"),
    "no model": (_no_onnx, ("E0101", "E0102"), "m"),
    "empty": (_empty, ("E0101", "E0102"), "m"),
    "onnxruntime's own format": (_ort_format, ("E0102",), "m.onnx"),
    "a directory": (_directory, ("E0101",), "m.onnx"),
    "unknown operator": (_unknown_op, ("E0103",), "Frob_7"),
    "undefined value": (_undefined_value, ("E0105",), "Add_0"),
    "external data outside, relative": (_external("../secret.bin"), ("E0104",), "w0"),
    "external data outside, absolute": (_external("/etc/hostname"), ("E0104",), "w0"),
    "external data missing": (_external("nowhere.bin"), ("E0101",), "w0"),
}


@pytest.fixture(params=list(CASES))
def bad(request: pytest.FixtureRequest, tmp_path: Path) -> tuple[Path, tuple[str, ...], str]:
    write, codes, node = CASES[request.param]
    folder = tmp_path / "models"
    folder.mkdir()
    write(folder / "m.onnx")
    return folder / "m.onnx", codes, node


@pytest.mark.parametrize("command", ["compile", "run", "stats", "explain", "report"])
def test_every_command_refuses_it_and_writes_nothing(
    command: str, bad: tuple[Path, tuple[str, ...], str], capsys: pytest.CaptureFixture[str]
):
    path, codes, node = bad
    before = sorted(path.parent.rglob("*"))
    assert main([command, str(path), "--json"]) in (1, 2)
    error = json.loads(capsys.readouterr().out)["error"]
    assert error["code"] in codes
    assert node in f"{error['node']} {error['message']}"
    assert sorted(path.parent.rglob("*")) == before


def test_python_raises_the_same(bad: tuple[Path, tuple[str, ...], str]):
    path, codes, _ = bad
    with pytest.raises(fuseline.FuselineError) as caught:
        fuseline.compile(path)
    assert caught.value.code in codes


def test_a_model_in_memory_is_judged_alike(tmp_path: Path):
    _unknown_op(tmp_path / "m.onnx")
    with pytest.raises(fuseline.FuselineError) as caught:
        fuseline.compile(onnx.load(tmp_path / "m.onnx"))
    assert caught.value.code == "E0103"


@pytest.mark.parametrize(
    ("shape", "named"),
    [("nothing=3", "nothing"), ("x=4x17", "x"), ("x=4", "x"), ("x=1x2x3", "x")],
)
def test_a_shape_that_does_not_fit_is_named(shape: str, named: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]):
    path = tmp_path / "m.onnx"
    path.write_bytes(mlp().SerializeToString())
    assert main(["compile", str(path), "--shape", shape, "--json"]) == 2
    error = json.loads(capsys.readouterr().out)["error"]
    assert (error["code"], error["node"]) == ("E0108", named)
    assert [p.name for p in tmp_path.iterdir()] == ["m.onnx"]


def test_weights_beside_the_model_are_fine(tmp_path: Path):
    onnx.save(mlp(), tmp_path / "m.onnx", save_as_external_data=True, location="m.data", size_threshold=0)
    x = np.random.default_rng(1).standard_normal((4, 16), np.float32)
    assert np.array_equal(fuseline.compile(tmp_path / "m.onnx", threads=1)(x), fuseline.compile(mlp(), threads=1)(x))
