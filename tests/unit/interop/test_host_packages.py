"""Statistics and explanations name the package that runs a host operator here and now."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import onnx
import pytest
from onnx import TensorProto, helper

import fuseline
from fuseline.cli.main import main
from fuseline.interop import onnx_host
from fuseline.runtime import host

node = helper.make_node
FAST, NUMPY = "onnxruntime", "onnx.reference"


@pytest.fixture(autouse=True)
def _nothing_remembered() -> Any:
    onnx_host.forget()
    yield
    onnx_host.forget()
    onnx_host.install()


def _branch(op_type: str) -> onnx.GraphProto:
    return helper.make_graph(
        [node(op_type, ["u"], [op_type], name=op_type)], op_type, [], [onnx.ValueInfoProto(name=op_type)]
    )


def _model(*op_types: str) -> onnx.ModelProto:
    """Operators on a tensor of unknown rank, and a choice between two more."""
    nodes = [node(op_type, ["u"], [f"y{i}"], name=f"{op_type}_{i}") for i, op_type in enumerate(op_types)]
    nodes.append(
        node("If", ["c"], ["chosen"], name="either", then_branch=_branch("Tan"), else_branch=_branch("NonZero"))
    )
    inputs = [
        helper.make_tensor_value_info("u", TensorProto.FLOAT, None),
        helper.make_tensor_value_info("c", TensorProto.BOOL, []),
    ]
    outputs = [onnx.ValueInfoProto(name=name) for name in [*(f"y{i}" for i in range(len(op_types))), "chosen"]]
    return helper.make_model(
        helper.make_graph(nodes, "g", inputs, outputs), opset_imports=[helper.make_opsetid("", 18)], ir_version=9
    )


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
