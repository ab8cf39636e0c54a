"""The example of a target and rules outside of the tree, as its README uses it."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import onnxruntime
import pytest

import fuseline
from fuseline.cli.main import main
from fuseline.report.records import CompileRecord, DispatchRecord
from tests.draws import RNG
from tests.graphs.onnx_text import onnx_model

EXAMPLE = Path(__file__).parents[2] / "examples" / "systolic-npu"
TARGET, RULES = EXAMPLE / "npu.toml", EXAMPLE / "npu_rules.py"
TILE = 16


def _normal(*shape: int) -> Any:
    return (0.3 * RNG.standard_normal(shape)).astype(np.float32)


def _size() -> int:
    """Of a loop, and no multiple of the array's."""
    return int(RNG.choice([size for size in range(3, 60) if size % TILE]))


def _matmul() -> onnx.ModelProto:
    """Product, bias, ReLU."""
    m, k, n = _size(), _size(), _size()
    text = f"(float[{m}, {k}] x) => (float[{m}, {n}] z) {{ a = MatMul(x, w) b = Add(a, c) z = Relu(b) }}"
    return onnx_model(text, {"w": _normal(k, n), "c": _normal(n)})


def _cnn() -> onnx.ModelProto:
    """Three convolutions, one of them 1x1, a residual, a pooled head and a tanh."""
    side, channels = 2 * int(RNG.integers(5, 14)), _size()
    text = f"""(float[1, 3, {side}, {side}] x) => (float[1, 10] z) {{
        a = Conv<pads = [1, 1, 1, 1]>(x, w0, b0)
        r = Relu(a)
        b = Conv<pads = [1, 1, 1, 1]>(r, w1, b1)
        s = Relu(b)
        c = Conv(s, w2, b2)
        d = Add(c, r)
        e = MaxPool<kernel_shape = [2, 2], strides = [2, 2]>(d)
        f = GlobalAveragePool(e)
        g = Flatten(f)
        h = Gemm(g, w3, b3)
        z = Tanh(h)
    }}"""
    shapes = {"w0": (channels, 3, 3, 3), "b0": (channels,), "w1": (24, channels, 3, 3), "b1": (24,)}
    shapes |= {"w2": (channels, 24, 1, 1), "b2": (channels,), "w3": (channels, 10), "b3": (10,)}
    model = onnx_model(text, {name: _normal(*shape) for name, shape in shapes.items()})
    for node in model.graph.node:
        node.name = f"{node.op_type}_{node.output[0]}"
    return model


def _feeds(model: onnx.ModelProto) -> dict[str, Any]:
    return {"x": _normal(*(dim.dim_value for dim in model.graph.input[0].type.tensor_type.shape.dim))}


def _kinds(dispatch: DispatchRecord) -> list[str]:
    return [member.kind for member in dispatch.members]


def _on_the_array(record: CompileRecord) -> list[DispatchRecord]:
    return [one for one in record.dispatches if {"contraction", "convolution"} & {*_kinds(one)}]


def _missed(record: CompileRecord) -> set[tuple[str, str]]:
    """Source nodes and code of what was forbidden, by the node at its end."""
    return {
        (node, decision.code)
        for decision in record.decisions
        for node in decision.consumer_nodes
        if decision.code.startswith("npu-")
    }


@pytest.mark.parametrize("model", [_matmul, _cnn])
def test_what_the_npu_is_given_computes_what_onnxruntime_does(model: Any):
    proto = model()
    feeds = _feeds(proto)
    session: Any = onnxruntime.InferenceSession(proto.SerializeToString())
    (expected,) = session.run(None, feeds)
    found = fuseline.compile(proto, target=f"cpu:{TARGET}").run(feeds)["z"]
    np.testing.assert_allclose(found, expected, rtol=0, atol=1e-3 * max(1.0, float(np.abs(expected).max())))


def test_product_bias_and_relu_are_one_dispatch_in_whole_tiles():
    record = fuseline.compile(_matmul(), target=f"null:{TARGET}").record
    (dispatch,) = record.dispatches
    kinds = _kinds(dispatch)
    assert kinds.count("contraction") == 1 and kinds.count("elementwise") == 2 and kinds[-1] == "slice"
    for node in record.fusion_nodes.values():
        if node.kind in ("contraction", "elementwise"):
            assert all(int(extent) % TILE == 0 for extent in node.loops)


@pytest.mark.parametrize("target", ["cpu", "null"])
def test_a_small_network(target: str):
    record = fuseline.compile(_cnn(), target=f"{target}:{TARGET}").record
    array = _on_the_array(record)
    assert len(array) == 4 and all(len({"contraction", "convolution"} & {*_kinds(one)}) == 1 for one in array)
    assert [_kinds(one).count("elementwise") for one in array] == [2, 2, 1, 1], "bias and ReLU where there is one"
    assert [host.node for host in record.host_ops] == ["Tanh_z"]
    assert record.host_ops[0].reason == "target-op: the target has no tanh (npu.toml:26)"
    missed = _missed(record)
    assert ("Add_d", "npu-residual") in missed and ("GlobalAveragePool_f", "npu-off-array") in missed
    for node in record.fusion_nodes.values():
        if node.kind == "convolution":
            _, width, out, *_, into = (int(extent) for extent in node.loops)
            assert width % TILE == out % TILE == into % TILE == 0


def test_other_activations_and_normalisation_stay_apart():
    m, n = _size(), _size()
    nodes = "a = MatMul(x, w) b = Sigmoid(a) c = MatMul(b, w) z = Softmax(c)"
    text = f"(float[{m}, {n}] x) => (float[{m}, {n}] z) {{ {nodes} }}"
    model = onnx_model(text, {"w": _normal(n, n)})
    record = fuseline.compile(model, target=f"null:{TARGET}").record
    codes = {decision.code for decision in record.decisions}
    assert {"npu-activation", "npu-off-array", "npu-two-passes"} <= codes
    feeds = _feeds(model)
    found, expected = (fuseline.compile(model, target=t).run(feeds)["z"] for t in (f"cpu:{TARGET}", "interpreter"))
    np.testing.assert_allclose(found, expected, rtol=0, atol=1e-4)


def test_the_commands_of_the_readme(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
):
    model, fuse = tmp_path / "cnn.onnx", tmp_path / "cnn.fuse"
    onnx.save(_cnn(), model)
    assert main(["stats", str(model), "--json", "--dispatches", "--target", f"null:{TARGET}"]) == 0
    assert json.loads(capsys.readouterr().out)["host_ops"] == 1
    assert main(["compile", str(model), "--target", f"cpu:{TARGET}", "-o", str(fuse)]) == 0
    assert main(["run", str(fuse)]) == 0
    capsys.readouterr()
    assert main(["explain", str(model), "Conv_c", "Add_d", "--target", f"null:{TARGET}"]) == 0
    assert "npu-residual" in capsys.readouterr().out
    assert main(["compile", "--list-rules", "--rules", str(RULES)]) == 0
    listed = capsys.readouterr().out
    assert "npu-epilogue" in listed and "npu-window" in listed
    monkeypatch.chdir(tmp_path)
    assert main(["compile", "cnn.onnx", "--rules", str(RULES), "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["output"] == "cnn.fuse"


def test_without_one_of_its_rules():
    model = _matmul()
    record = fuseline.compile(model, target=f"null:{TARGET}", without_rules=["npu-epilogue"]).record
    assert all(_kinds(one).count("elementwise") <= 1 for one in record.dispatches)
