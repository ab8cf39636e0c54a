"""Statistics and explanations name the package that runs a host operator here and now."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import onnx
import pytest

import fuseline
from fuseline.cli.main import main
from fuseline.interop import onnx_host
from fuseline.runtime import host
from tests.graphs.onnx_text import onnx_model

FAST, NUMPY = "onnxruntime", "onnx.reference"


@pytest.fixture(autouse=True)
def _nothing_remembered() -> Any:
    onnx_host.forget()
    yield
    onnx_host.forget()
    onnx_host.install()


def _branch(op_type: str) -> str:
    return f"{op_type} () => ({op_type}) {{ [{op_type}] {op_type} = {op_type}(u) }}"


def _model(*op_types: str) -> onnx.ModelProto:
    """Operators on a tensor of unknown rank, and a choice between two more."""
    nodes = "  ".join(f"[{op_type}_{i}] y{i} = {op_type}(u)" for i, op_type in enumerate(op_types))
    chosen = f"chosen = If<then_branch = {_branch('Tan')}, else_branch = {_branch('NonZero')}>(c)"
    results = ", ".join([*(f"y{i}" for i in range(len(op_types))), "chosen"])
    return onnx_model(f"(float[] u, bool c) => ({results}) {{ {nodes}  [either] {chosen} }}")


def test_the_same_for_all() -> None:
    program = fuseline.compile(_model("Erf", "Sin"), threads=1)
    stats = program.stats
    assert stats["host_executors"] | {"fuseline": 1} == {"fuseline": 1, FAST: 3, NUMPY: 1}
    assert stats["host_op_executors"] == {
        "Erf_0": FAST,
        "Sin_1": FAST,
        "either": "fuseline",
        "Tan": FAST,
        "NonZero": NUMPY,
    }


@pytest.mark.parametrize("target", ["cpu", "interpreter", "null"])
def test_one_package_is_named_once(target: str) -> None:
    model = _model("Erf", "Sin")
    del model.graph.node[2], model.graph.output[2]
    stats = fuseline.compile(model, threads=1, target=target).stats
    assert stats["host_executors"] == {FAST: 2} and "host_op_executors" not in stats


def test_what_holds_where_it_is_loaded(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, hide_onnxruntime: Callable[[], None]
) -> None:
    fuseline.compile(_model("Erf"), threads=1).save(tmp_path / "m.fuse")
    hide_onnxruntime()
    assert set(fuseline.load(tmp_path / "m.fuse").stats["host_executors"]) == {"fuseline", NUMPY}
    monkeypatch.setattr(host, "_executors", {})
    assert set(fuseline.load(tmp_path / "m.fuse").stats["host_executors"]) == {"not installed"}


def test_the_commands_say_it(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    onnx.save(_model("Erf", "NonZero"), tmp_path / "m.onnx")
    assert main(["stats", str(tmp_path / "m.onnx"), "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["host_op_executors"]["NonZero_1"] == NUMPY
    assert main(["explain", str(tmp_path / "m.onnx")]) == 0
    assert f"host op Erf_0 (Erf) in {FAST}: " in capsys.readouterr().out
