"""`--trace FILE` of `run` and `compile`."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import onnx
import pytest

from fuseline.cli.main import main
from tests.small_models import attention, mlp


def _bars(path: Path) -> list[dict[str, Any]]:
    return [event for event in json.loads(path.read_text())["traceEvents"] if event["ph"] == "X"]


@pytest.fixture
def model(tmp_path: Path) -> Path:
    onnx.save(attention("batch", "length"), tmp_path / "m.onnx")
    return tmp_path / "m.onnx"


def test_a_run_of_a_model_and_of_its_artifact(model: Path, tmp_path: Path) -> None:
    assert main(["run", str(model), "--trace", str(tmp_path / "a.json")]) == 0
    assert main(["compile", str(model), "-o", str(tmp_path / "m.fuse")]) == 0
    assert main(["run", str(tmp_path / "m.fuse"), "--trace", str(tmp_path / "b.json")]) == 0
    first, second = ([bar["name"] for bar in _bars(tmp_path / f"{name}.json") if bar["tid"] == 1] for name in "ab")
    assert [name for name in first if name != "wait"] == [name for name in second if name != "wait"] != []


def test_a_compile_is_traced_though_the_cache_has_it(model: Path, tmp_path: Path) -> None:
    for name in ("a.json", "b.json"):
        assert main(["compile", str(model), "-o", str(tmp_path / "m.fuse"), "--trace", str(tmp_path / name)]) == 0
        assert "canonicalize" in [bar["name"] for bar in _bars(tmp_path / name)]


def test_a_compile_that_fails_leaves_its_line(model: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    plan = tmp_path / "p.toml"
    plan.write_text('version = 1\n[[group]]\nops = ["contraction.00000000"]\n')
    command = ["compile", str(model), "--plan", str(plan), "--plan-strict", "--trace", str(tmp_path / "t.json")]
    assert main([*command, "-o", str(tmp_path / "m.fuse")]) == 1
    assert "E0702" in capsys.readouterr().err
    errors = [bar["args"]["error"] for bar in _bars(tmp_path / "t.json") if "error" in bar["args"]]
    assert errors and all("stale" in error or "E0702" in error or "plan" in error for error in errors)


@pytest.mark.parametrize("target", ["null", "interpreter"])
def test_targets_without_code_have_no_time_line(
    target: str, model: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["run", str(model), "--target", target, "--trace", str(tmp_path / "t.json")]) in (1, 2)
    assert "E0501" in capsys.readouterr().err
    assert not (tmp_path / "t.json").exists()


def test_standard_output_and_other_documents_are_refused(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    onnx.save(mlp(), tmp_path / "m.onnx")
    for words in (["run"], ["compile", "-o", str(tmp_path / "m.fuse")], ["compile", "--emit", "plan"]):
        path = "-" if "--emit" not in words else str(tmp_path / "t.json")
        assert main([words[0], str(tmp_path / "m.onnx"), *words[1:], "--trace", path]) == 2
        assert "--trace" in capsys.readouterr().err
