"""What goes into a bug report, with the second run of the command made up."""

from __future__ import annotations

import json
import subprocess
import zipfile
from collections.abc import Callable, Sequence
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

import fuseline
from fuseline.cli import bug_report
from fuseline.errors import FuselineError
from tests.small_models import mlp

PROBLEM = FuselineError("E0105", "wrong", node="n")


def _subprocess(run: Callable[..., Any]) -> Any:
    """What stands in for the module there; others go on to use it themselves."""
    return SimpleNamespace(run=run, TimeoutExpired=subprocess.TimeoutExpired)


@pytest.fixture
def runs(monkeypatch: pytest.MonkeyPatch) -> list[list[str]]:
    """The commands that are run again; each answers the error of `PROBLEM`."""
    found: list[list[str]] = []

    def run(words: Sequence[str], *, cwd: Path, **_: Any) -> Any:
        found.append([str(word) for word in words][3:])
        (cwd / "left.html").write_text("by the command")
        return SimpleNamespace(stdout=json.dumps({"error": PROBLEM.to_json()}).encode())

    monkeypatch.setattr(bug_report, "subprocess", _subprocess(run))
    return found


def _report(path: Path, *arguments: object, problem: BaseException = PROBLEM) -> tuple[bool, dict[str, Any], list[str]]:
    """Whether it shows the error, its report, and its files."""
    same = bug_report.write_report(path, [str(word) for word in arguments], problem)
    with zipfile.ZipFile(path) as archive:
        return same, json.loads(archive.read("report.json")), sorted(archive.namelist())


def test_files_stand_under_other_names_and_outputs_are_left_out(tmp_path: Path, runs: list[list[str]]) -> None:
    for name in ("private.onnx", "other.onnx"):
        (tmp_path / name).write_bytes(mlp().SerializeToString())
    for name in ("p.toml", "rule.py"):
        (tmp_path / name).write_text("# text")
    arguments = [
        "diff",
        tmp_path / "private.onnx",
        tmp_path / "other.onnx",
        f"--plan={tmp_path / 'p.toml'}",
        "--rules",
        tmp_path / "rule.py",
        "--target",
        f"null:{tmp_path / 'p.toml'}",
        "-o",
        tmp_path / "rule.py",
        f"--output={tmp_path / 'rule.py'}",
        "--input",
        "x=@x.npy",
        "--fusion",
        "none",
        "zero\0byte",
    ]
    same, report, files = _report(tmp_path / "r.zip", *arguments)
    words = ["diff", "model.onnx", "model-2.onnx", "--plan=p.toml", "--rules", "rule.py", "--target", "null:p-2.toml"]
    words += ["--fusion", "none", "zero\0byte"]
    assert same and report["reproduced"] and report["command"] == ["fuseline", *words]
    assert runs == [[*words, "--json"]]
    assert {"model.onnx", "model-2.onnx", "p.toml", "p-2.toml", "rule.py", "report.json", "traceback.txt"} <= set(files)
    assert "left.html" not in files and report["left_out"] == []


def test_an_artifact_without_its_weights(tmp_path: Path, runs: list[list[str]]) -> None:
    program = fuseline.compile(mlp(), threads=1)
    program.save(tmp_path / "mine.fuse")
    _report(tmp_path / "r.zip", "run", tmp_path / "mine.fuse", "--json")
    assert runs == [["run", "model.fuse", "--json"]]
    with zipfile.ZipFile(tmp_path / "r.zip") as archive:
        stripped, whole = archive.read("model.fuse"), (tmp_path / "mine.fuse").read_bytes()
    assert len(stripped) == len(whole) and stripped != whole


def test_what_cannot_be_copied_is_said(tmp_path: Path, runs: list[list[str]]) -> None:
    (tmp_path / "bad.onnx").write_bytes(b"\xff" * 99)
    _, report, files = _report(tmp_path / "r.zip", "compile", tmp_path / "bad.onnx")
    assert report["left_out"][0].startswith("bad.onnx: ")
    assert runs == [["compile", str(tmp_path / "bad.onnx"), "--json"]]
    assert files == ["report.json", "traceback.txt"]


@pytest.mark.parametrize(
    ("answer", "problem", "same"),
    [
        (json.dumps({"error": PROBLEM.to_json()}), PROBLEM, True),
        (json.dumps({"error": PROBLEM.to_json()}), FuselineError("E0106", "x"), False),
        (json.dumps({"error": FuselineError("E0901", "x").to_json()}), ZeroDivisionError("x"), True),
        (json.dumps({"outputs": []}), PROBLEM, False),
        ("no document", PROBLEM, False),
        ("[]", PROBLEM, False),
        (None, PROBLEM, False),
        (json.dumps({"error": PROBLEM.to_json()}), KeyboardInterrupt(), False),
    ],
)
def test_whether_it_shows_the_same(
    answer: str | None, problem: BaseException, same: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def run(*_: Any, **__: Any) -> Any:
        if answer is None:
            raise subprocess.TimeoutExpired("fuseline", 1)
        return SimpleNamespace(stdout=answer.encode())

    monkeypatch.setattr(bug_report, "subprocess", _subprocess(run))
    monkeypatch.setenv("FUSELINE_MINE", "7")
    found, report, _ = _report(tmp_path / "r.zip", "errors", problem=problem)
    assert found == report["reproduced"] == same
    assert report["environment"]["FUSELINE_MINE"] == "7"
    assert report["packages"].keys() == set(bug_report.PACKAGES) and report["packages"]["numpy"]
