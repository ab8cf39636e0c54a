"""`fuseline check` as it is typed."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import pytest

import fuseline
from fuseline.cli.main import main
from tests.draws import generator
from tests.graphs.onnx_text import onnx_model
from tests.unit.verify.check.planted import wrong_code

W = generator(__name__).standard_normal((8, 6)).astype(np.float32)
TEXT = "(float[n, 8] x) => (y) { [product] p = MatMul(x, w) [bend] y = Relu(p) }"


@pytest.fixture
def model(tmp_path: Path) -> Path:
    path = tmp_path / "m.onnx"
    onnx.save(onnx_model(TEXT, w=W), path)
    return path


def _document(capsys: pytest.CaptureFixture[str], *words: object, code: int = 0) -> dict[str, Any]:
    assert main([*map(str, words), "--json"]) == code
    return json.loads(capsys.readouterr().out)


def test_a_right_model_is_right(model: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["check", str(model)]) == 0
    text = capsys.readouterr().out
    assert "product" in text and "ok" in text and "output y" in text and "proved inside" in text
    found = _document(capsys, "check", model, "--fusion", "none")
    assert found["command"] == "check" and not found["failed"] and not found["findings"]
    assert [row["status"] for row in found["dispatches"]] == ["ok"] * len(found["dispatches"])
    assert found["outputs"][0]["reference"] in ("onnxruntime", "the interpreter in float64")


def test_a_wrong_kernel_ends_with_its_code(model: Path, capsys: pytest.CaptureFixture[str]) -> None:
    with wrong_code(lambda text: text.replace("fcmp ogt", "fcmp olt")):
        assert main(["check", str(model), "--no-cache"]) == 1
        captured = capsys.readouterr()
        found = _document(capsys, "check", model, code=1)
    assert "error E0611" in captured.err and "wrong" in captured.out
    assert found["failed"] and {"E0611", "E0601"} <= {one["code"] for one in found["findings"]}


def test_several_models_are_rows_and_one_that_fails_is_one(model: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (model.parent / "broken.onnx").write_bytes(b"nothing")
    found = _document(capsys, "check", model.parent, code=1)
    rows = {row["model"]: row for row in found["models"]}
    assert rows["m.onnx"]["failed"] is False and rows["broken.onnx"]["error"]["code"] == "E0101"
    assert main(["check", str(model), str(model.parent / "broken.onnx")]) == 1
    text = capsys.readouterr().out
    assert "error E0101" in text and "m.onnx" in text
    assert main(["check", str(model.parent), "--against", str(model)]) == 2


def test_an_artifact_is_checked_alone_and_against_others(model: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path, other = model.with_suffix(".fuse"), model.with_name("other.fuse")
    fuseline.compile(model, threads=1, cache=False).save(path)
    fuseline.compile(onnx_model(TEXT, w=W + 1), threads=1, cache=False).save(other)
    alone = _document(capsys, "check", path)
    assert not alone["failed"] and not alone["outputs"] and any("model" in note for note in alone["notes"])
    same = _document(capsys, "check", path, "--against", path)
    assert same["outputs"][0]["error"] == 0 and not same["failed"]
    differs = _document(capsys, "check", path, "--against", other, code=1)
    assert differs["findings"][0]["code"] == "E0601"
    assert _document(capsys, "check", model, "--against", other, code=1)["findings"][0]["code"] == "E0601"
    data = bytearray(path.read_bytes())
    data[data.index(W[0, 0].tobytes())] ^= 255
    path.write_bytes(bytes(data))
    assert main(["check", str(path)]) == 1
    assert "E0401" in capsys.readouterr().err


def test_a_program_and_its_fallback_are_checked_on_sizes_of_their_own(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    text = (
        "(float[h, 8] x) => (z) { half = Slice(x, zero, end, zero, two) even = Concat<axis = 0>(half, half) "
        "sum = Add(x, even) z = MatMul(sum, w) }"
    )
    numbers = {name: np.array([value]) for name, value in (("zero", 0), ("end", 99), ("two", 2))}
    path = tmp_path / "h.onnx"
    onnx.save(onnx_model(text, numbers, w=W), path)
    found = _document(capsys, "check", path)
    assert {row["program"] for row in found["dispatches"]} == {"main", "fallback"}
    assert not found["failed"] and len(found["outputs"]) == 2 and not found["notes"]


@pytest.mark.parametrize(
    ("words", "code"),
    [
        (["check", "none.onnx"], "E0101"),
        (["check", "MODEL", "--target", "interpreter"], "E0501"),
        (["check", "MODEL", "--input", "q=@none.npy"], "E0201"),
    ],
)
def test_what_cannot_be_checked_is_refused(
    words: list[str], code: str, model: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main([str(model) if word == "MODEL" else word for word in words]) in (1, 2)
    assert code in capsys.readouterr().err


def test_given_feeds_are_taken(model: Path, capsys: pytest.CaptureFixture[str]) -> None:
    feed = model.with_name("x.npy")
    np.save(feed, np.full((3, 8), 2.0, np.float32))
    found = _document(capsys, "check", model, "--input", f"x=@{os.fspath(feed)}", "--seed", 3)
    assert found["outputs"][0]["magnitude"] == pytest.approx(float(np.maximum(2 * W.sum(0), 0).max()), rel=1e-5)
