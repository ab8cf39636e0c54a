"""Bad feeds, outputs and artifacts: each refused by a code that names the feed or file."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import fuseline
from fuseline.cli.main import main
from fuseline.errors import FuselineError
from tests.small_models import attention, mlp


@pytest.fixture(scope="module")
def model() -> fuseline.CompiledModel:
    return fuseline.compile(mlp(), threads=1)


@pytest.fixture(scope="module")
def symbolic() -> fuseline.CompiledModel:
    return fuseline.compile(attention("batch", "length"), threads=1, shapes={"length": "1..32"})


X = np.random.default_rng(0).standard_normal((4, 16), np.float32)

REFUSED: list[tuple[dict[str, Any], str, str]] = [
    ({"x": X, "y": X}, "E0201", "y"),
    ({}, "E0202", "x"),
    ({"x": X[:3]}, "E0203", "x"),
    ({"x": X[0]}, "E0203", "x"),
    ({"x": X.astype(np.float64)}, "E0204", "x"),
    ({"x": object()}, "E0204", "x"),
]


def test_feeds_by_name_are_no_array(model: fuseline.CompiledModel):
    """A call takes arrays; a mapping in the place of one is what `run` takes."""
    with pytest.raises(FuselineError, match=r"E0501 \[x\]: a dict is given by position") as refused:
        model({"x": X})
    assert refused.value.hint == "call it with **feeds, or call run(feeds)"
    np.testing.assert_array_equal(model(x=X), model(X))


@pytest.mark.parametrize(("feeds", "code", "name"), REFUSED)
def test_python_names_the_feed(feeds: dict[str, Any], code: str, name: str, model: fuseline.CompiledModel):
    with pytest.raises(fuseline.FuselineError) as caught:
        model.run(feeds)
    assert (caught.value.code, caught.value.node) == (code, name)


@pytest.mark.parametrize(("array", "code"), [(X[:3], "E0203"), (X[0], "E0203"), (X.astype(np.float64), "E0204")])
def test_the_command_line_names_the_feed_and_writes_nothing(
    array: np.ndarray, code: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
):
    (tmp_path / "m.onnx").write_bytes(mlp().SerializeToString())
    np.save(tmp_path / "x.npy", array)
    before = sorted(tmp_path.iterdir())
    arguments = [
        "run",
        str(tmp_path / "m.onnx"),
        "--input",
        f"x=@{tmp_path / 'x.npy'}",
        "--output",
        str(tmp_path / "out"),
        "--json",
    ]
    assert main(arguments) == 2
    error = json.loads(capsys.readouterr().out)["error"]
    assert (error["code"], error["node"]) == (code, "x")
    assert sorted(tmp_path.iterdir()) == before


@pytest.mark.parametrize("length", [0, 33])
def test_a_size_outside_its_bounds(length: int, symbolic: fuseline.CompiledModel):
    with pytest.raises(fuseline.FuselineError) as caught:
        symbolic.run({"ids": np.zeros((2, length), np.int64)})
    assert (caught.value.code, caught.value.node) == ("E0203", "ids")


def test_too_many_positions_and_double_names(model: fuseline.CompiledModel):
    for call in (lambda: model(X, X), lambda: model(X, x=X)):
        with pytest.raises(fuseline.FuselineError) as caught:
            call()
        assert caught.value.code == "E0201"


def test_an_unknown_output_of_the_session(tmp_path: Path):
    session = fuseline.InferenceSession(mlp().SerializeToString())
    with pytest.raises(fuseline.FuselineError) as caught:
        session.run(["nope"], {"x": X})
    assert (caught.value.code, caught.value.node) == ("E0205", "nope")


@pytest.mark.parametrize("keep", [0, 10, 100, 5000, -1])
def test_a_cut_artifact(keep: int, model: fuseline.CompiledModel, tmp_path: Path, capsys: pytest.CaptureFixture[str]):
    path = tmp_path / "m.fuse"
    model.save(path)
    path.write_bytes(path.read_bytes()[:keep])
    assert main(["run", str(path), "--json"]) == 1
    assert json.loads(capsys.readouterr().out)["error"]["code"] == "E0401"


def test_a_place_that_cannot_be_written(model: fuseline.CompiledModel, tmp_path: Path):
    (tmp_path / "file").touch()
    with pytest.raises(fuseline.FuselineError) as caught:
        model.save(tmp_path / "file" / "m.fuse")
    assert caught.value.code == "E0502"


WRONG = [
    "--target tpu",
    "--emit nothing",
    "--threads 0",
    "--numerics odd",
    "--shape x",
    "--plan nope.json",
    "--rules nope.py",
    "--fusion odd",
]


@pytest.mark.parametrize("choice", WRONG)
def test_wrong_options_exit_2(choice: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]):
    (tmp_path / "m.onnx").write_bytes(mlp().SerializeToString())
    assert main(["compile", str(tmp_path / "m.onnx"), *choice.split(), "--json"]) == 2
    assert json.loads(capsys.readouterr().out)["error"]["code"] == "E0501"
    assert len(list(tmp_path.iterdir())) == 1


def test_a_file_that_is_no_plan_is_named(tmp_path: Path, capsys: pytest.CaptureFixture[str]):
    (tmp_path / "m.onnx").write_bytes(mlp().SerializeToString())
    assert main(["compile", str(tmp_path / "m.onnx"), "--plan", "README.md", "--json"]) == 1
    assert json.loads(capsys.readouterr().out)["error"]["code"] == "E0701"
    assert len(list(tmp_path.iterdir())) == 1


def test_a_missing_peer_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]):
    monkeypatch.setitem(__import__("sys").modules, "openvino", None)
    (tmp_path / "m.onnx").write_bytes(mlp().SerializeToString())
    assert main(["bench", str(tmp_path / "m.onnx"), "--vs", "openvino", "--json"]) == 1
    error = json.loads(capsys.readouterr().out)["error"]
    assert (error["code"], error["node"]) == ("E0503", "openvino")
    assert "fuseline[bench]" in error["hint"]
