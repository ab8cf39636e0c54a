"""What a user meets first: the greeting, wrong spellings, files that are missing, `-`, options where they have no
say."""

from __future__ import annotations

import io
import json
import sys
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import onnx
import pytest

import fuseline
from fuseline.cli.main import COMMANDS, main
from fuseline.report.edge_counts import count_edges
from tests.small_models import convolutions, mlp


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    place = tmp_path_factory.mktemp("first")
    onnx.save(mlp(), place / "m.onnx")
    onnx.save(convolutions(), place / "cnn.onnx")
    fuseline.compile(place / "m.onnx", threads=1).save(place / "m.fuse")
    return place


def test_the_bare_command_greets_with_its_commands(capsys: pytest.CaptureFixture[str]):
    assert main([]) == 0
    shown = capsys.readouterr()
    assert all(name in shown.out for name in COMMANDS)
    assert not shown.err


@pytest.mark.parametrize(
    "option",
    ["--target=interpreter", "--fusion=none", "--shape=x=4x16", "--rules={rule}", "--plan={plan}", "--plan-strict"],
)
@pytest.mark.parametrize("command", ["run", "stats", "explain", "report", "bench"])
def test_compile_options_given_with_an_artifact_are_refused(
    command: str, option: str, folder: Path, capsys: pytest.CaptureFixture[str]
):
    (folder / "rule.py").write_text("")
    (folder / "plan.toml").write_text("")
    given = option.format(rule=folder / "rule.py", plan=folder / "plan.toml")
    assert main([command, str(folder / "m.fuse"), given, "--json"]) == 2
    error = json.loads(capsys.readouterr().out)["error"]
    assert (error["code"], given.split("=")[0] in error["message"]) == ("E0501", True)


def test_options_of_a_diff_need_something_to_compile(folder: Path):
    assert main(["diff", str(folder / "m.fuse"), str(folder / "m.fuse"), "--fusion", "none"]) == 2
    assert main(["diff", str(folder / "m.fuse"), str(folder / "m.fuse")]) == 0
    assert main(["diff", str(folder / "m.fuse"), str(folder / "m.onnx"), "--fusion", "none"]) == 0


def test_threads_may_be_given_with_an_artifact(folder: Path):
    assert main(["run", str(folder / "m.fuse"), "--threads", "2"]) == 0


@pytest.mark.parametrize("file", ["missing.npy", "text.npy"])
def test_a_feed_file_that_cannot_be_read_is_about_the_feed(file: str, folder: Path, capsys: pytest.CaptureFixture[str]):
    (folder / "text.npy").write_text("no array")
    assert main(["run", str(folder / "m.onnx"), "--input", f"x=@{folder / file}", "--json"]) == 2
    error = json.loads(capsys.readouterr().out)["error"]
    assert (error["code"], error["node"]) == ("E0206", "x")


@pytest.mark.parametrize(
    "spelling", ["E0101", "e0101", "0101", "101", "E101", " E-0101.", "model file cannot be read", "error E0101:"]
)
def test_an_error_is_found_in_any_spelling(spelling: str, capsys: pytest.CaptureFixture[str]):
    assert main(["errors", spelling]) == 0
    assert capsys.readouterr().out.startswith("# E0101")


@pytest.mark.parametrize("spelling", ["two-roots", "Two roots", "TWO_ROOTS"])
def test_a_reason_is_found_in_any_spelling(spelling: str, capsys: pytest.CaptureFixture[str]):
    assert main(["errors", *spelling.split()]) == 0
    text = capsys.readouterr().out
    assert "Both sides have a root op" in text
    assert "To change it: " in text


def test_what_is_no_code_gets_a_suggestion(capsys: pytest.CaptureFixture[str]):
    assert main(["errors", "two-root", "--json"]) == 2
    assert "two-roots" in json.loads(capsys.readouterr().out)["error"]["hint"]
    assert main(["errors", "E9999"]) == 2


def _stdout(monkeypatch: pytest.MonkeyPatch, arguments: list[str]) -> bytes:
    result = io.BytesIO()
    stdout = SimpleNamespace(
        buffer=result, isatty=lambda: False, flush=lambda: None, write=lambda text: result.write(text.encode())
    )
    with monkeypatch.context() as patch:
        patch.setattr(sys, "stdout", stdout)
        assert main(arguments) == 0
    return result.getvalue()


def test_a_dash_is_standard_output_everywhere(folder: Path, monkeypatch: pytest.MonkeyPatch, tmp_path: Path):
    monkeypatch.chdir(tmp_path)
    model = str(folder / "m.onnx")
    (tmp_path / "m.fuse").write_bytes(_stdout(monkeypatch, ["compile", model, "-o", "-"]))
    x = np.random.default_rng(0).standard_normal((4, 16), np.float32)
    first, second = (
        next(iter(fuseline.load(path).run({"x": x}).values())) for path in (tmp_path / "m.fuse", folder / "m.fuse")
    )
    np.testing.assert_array_equal(first, second)
    assert b"func.func" in _stdout(monkeypatch, ["compile", model, "--emit", "input", "-o", "-"])
    assert _stdout(monkeypatch, ["report", model, "-o", "-"]).startswith(b"<!")
    assert _stdout(monkeypatch, ["explain", model, "--remarks", "yaml", "-o", "-"]).startswith(b"---")
    (tmp_path / "a.mlir").write_text("func.func @main() { return }")
    assert b"func.func" in _stdout(monkeypatch, ["opt", "a.mlir", "-o", "-"])
    assert sorted(path.name for path in tmp_path.iterdir()) == ["a.mlir", "m.fuse"]
    for arguments in (
        ["compile", model, "-o", "-"],
        ["report", model, "-o", "-"],
        ["opt", "a.mlir", "-o", "-"],
        ["run", model, "--output", "-"],
    ):
        assert main([*arguments, "--json"]) == 2


@pytest.mark.parametrize(
    "arguments",
    [
        ["compile", "-o"],
        ["compile", "--emit", "plan", "-o"],
        ["report", "-o"],
        ["explain", "--remarks", "yaml", "-o"],
        ["run", "--output"],
    ],
)
def test_missing_folders_are_made_and_impossible_ones_refused_everywhere(
    arguments: list[str], folder: Path, tmp_path: Path
):
    command, *rest = arguments
    model = str(folder / "m.onnx")
    assert main([command, model, *rest, str(tmp_path / "new" / "er" / "out")]) == 0
    assert (tmp_path / "new" / "er" / "out").exists()
    (tmp_path / "file").touch()
    assert main([command, model, *rest, str(tmp_path / "file" / "out")]) == 1
    assert sorted(path.name for path in tmp_path.iterdir()) == ["file", "new"]


def test_fused_edges_are_counted_alike_everywhere(folder: Path, capsys: pytest.CaptureFixture[str]):
    from fuseline.report.page import PageInputs, Side, render_page

    model = str(folder / "cnn.onnx")
    record: Any = fuseline.compile(model).record
    counts = count_edges(record.decisions)
    assert counts.fused > 0
    assert main(["stats", model, "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["edges"]["fused"] == counts.fused
    assert main(["explain", model]) == 0
    assert f"decisions: {counts.fused} fused" in capsys.readouterr().out
    assert f"{counts.fused} edges fused" in render_page(PageInputs(Side("cnn", record)))
