"""`stats` and `diff` over several models: rows, errors as rows, thresholds, forms of the output, exit codes."""

from __future__ import annotations

import json
import shutil
from pathlib import Path
from typing import Any

import onnx
import pytest

from fuseline.cli.main import main
from tests.graphs.onnx_text import onnx_model

NULL = ["--target", "null", "--threads", "2"]
TEXTS = {
    "one.onnx": "(float[5, 7] x) => (y) { a = Exp(x) y = Tanh(a) }",
    "sub/two.onnx": "(float[5, 7] x) => (y) { a = Softmax(x) y = MatMul(a, b) b = Transpose(x) }".replace(
        "y = MatMul(a, b) b = Transpose(x)", "b = Transpose(x) y = MatMul(a, b)"
    ),
}


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    for name, text in TEXTS.items():
        path = tmp_path / "models" / name
        path.parent.mkdir(parents=True, exist_ok=True)
        onnx.save(onnx_model(text), path)
    return tmp_path / "models"


def _run(words: list[object], capsys: pytest.CaptureFixture[str], code: int = 0) -> tuple[str, str]:
    found = main([str(word) for word in words])
    out, err = capsys.readouterr()
    assert found == code, (found, out, err)
    return out, err


def _json(words: list[object], capsys: pytest.CaptureFixture[str], code: int = 0) -> dict[str, Any]:
    return json.loads(_run([*words, "--json"], capsys, code)[0])


def test_a_row_per_model(folder: Path, capsys: pytest.CaptureFixture[str]):
    text, progress = _run(["stats", folder, *NULL], capsys)
    head, *rows = text.splitlines()
    assert head.split()[:3] == ["model", "dispatches", "fills"]
    assert [row.split()[0] for row in rows] == ["one.onnx", "sub/two.onnx"]
    assert progress.splitlines() == ["[1/2] one.onnx", "[2/2] sub/two.onnx"]
    document = _json(["stats", folder, *NULL], capsys)
    assert [int(row.split()[1]) for row in rows] == [item["dispatches"] for item in document["models"]]
    single = _json(["stats", folder / "one.onnx", *NULL], capsys)
    assert single["dispatches"] == document["models"][0]["dispatches"] and "models" not in single
    markdown = _run(["stats", folder, "--markdown", *NULL], capsys)[0].splitlines()
    assert markdown[0].startswith("| model | dispatches |") and len(markdown) == 4


@pytest.mark.parametrize("pattern", ["*.onnx", "**/*.onnx"])
def test_globs_and_files(pattern: str, folder: Path, capsys: pytest.CaptureFixture[str]):
    document = _json(["stats", folder / pattern, *NULL], capsys)
    expected = ["one.onnx", "sub/two.onnx"] if "**" in pattern else ["one.onnx"]
    assert [item["model"] for item in document["models"]] == expected
    files = _json(["stats", folder / "sub" / "two.onnx", folder / "one.onnx", *NULL], capsys)
    assert [item["model"] for item in files["models"]] == ["sub/two.onnx", "one.onnx"]
    assert "E0101" in _run(["stats", folder / "*.none", *NULL], capsys, 1)[1]


def test_a_model_that_fails_is_a_row(folder: Path, capsys: pytest.CaptureFixture[str]):
    (folder / "broken.onnx").write_bytes(b"no model")
    text, progress = _run(["stats", folder, folder / "none.onnx", *NULL], capsys, 1)
    rows = {line.split()[0]: line.split()[1] for line in text.splitlines()}
    assert rows["broken.onnx"] == rows["none.onnx"] == "error" and rows["one.onnx"] == "1"
    assert "E0101" in text and progress.count("  error E") == 2
    document = _json(["stats", folder, *NULL], capsys, 1)
    assert [item["error"]["code"] for item in document["models"] if "error" in item]


def test_forms_that_exclude_each_other(folder: Path, capsys: pytest.CaptureFixture[str]):
    _run(["stats", folder, "--json", "--markdown", *NULL], capsys, 2)
    _run(["stats", folder, "--dispatches", *NULL], capsys, 2)
    _run(["diff", folder, folder / "one.onnx", *NULL], capsys, 2)
    _run(["diff", folder / "one.onnx", folder / "one.onnx", "--markdown", *NULL], capsys, 2)


def _saved(folder: Path, path: Path, capsys: pytest.CaptureFixture[str], *options: str, code: int = 0) -> Path:
    path.write_text(_run(["stats", folder, "--json", *NULL, *options], capsys, code)[0])
    return path


def test_tables_are_compared_by_row(folder: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]):
    fused = _saved(folder, tmp_path / "fused.json", capsys)
    apart = _saved(folder, tmp_path / "apart.json", capsys, "--fusion", "none")
    assert _run(["diff", fused, folder, "--fail-if", "any", *NULL], capsys)[0].strip() == "no difference"
    text, told = _run(["diff", fused, apart, "--fail-if", "dispatches>20%", "--fail-if", "any"], capsys, 1)
    assert "one.onnx: dispatches 1 -> 2" in text and "fail-if dispatches>20%: one.onnx dispatches: 1 -> 2" in told
    document = _json(["diff", fused, apart, "--fail-if", "dispatches>1"], capsys, code=1)
    assert document["models"][0]["figures"]["dispatches"] == [1, 2]
    assert all("one.onnx" not in line for line in document["failed"]["dispatches>1"])
    assert not _json(["diff", apart, fused, "--fail-if", "more-dispatches"], capsys)["failed"]
    markdown = _run(["diff", fused, apart, "--markdown"], capsys)[0].splitlines()
    assert markdown[0].startswith("| model | dispatches |") and markdown[2].startswith("| one.onnx | 1 -> 2 |")


def test_models_that_come_go_and_fail(folder: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]):
    before = _saved(folder, tmp_path / "before.json", capsys)
    shutil.move(folder / "sub" / "two.onnx", folder / "three.onnx")
    (folder / "one.onnx").write_bytes(b"no model")
    after = _saved(folder, tmp_path / "after.json", capsys, code=1)
    text = _run(["diff", before, after], capsys)[0]
    assert "one.onnx: fails now: E01" in text and "three.onnx: appeared" in text and "sub/two.onnx: vanished" in text
    assert "one.onnx fails now" in _run(["diff", before, after, "--fail-if", "copies>100"], capsys, 1)[1]
    assert "one.onnx: works again" in _run(["diff", after, before, "--fail-if", "copies>100"], capsys)[0]
    assert len(_run(["diff", before, after, "--markdown"], capsys)[0].splitlines()) == 5


def test_a_model_meets_its_artifact(folder: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]):
    table = _saved(folder, tmp_path / "t.json", capsys)
    document = json.loads(table.read_text())
    for item in document["models"]:
        item["model"] = item["model"].replace(".onnx", ".fuse")
    table.write_text(json.dumps(document))
    assert _run(["diff", table, folder, *NULL], capsys)[0].strip() == "no difference"


@pytest.mark.parametrize("text", ['{"models": 3}', '{"models": [3]}', '{"models": [{}]}'])
def test_what_is_no_table(text: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]):
    path = tmp_path / "t.json"
    path.write_text(text)
    assert _json(["diff", path, path], capsys, 2)["error"]["code"] == "E0501"
