"""Ops behind an `If` whose branches differ in shape: sizes that only the run tells, asked of moved data."""

from __future__ import annotations

import numpy as np
import onnx
import onnxruntime as ort
import pytest
from onnx import TensorProto
from onnx import helper as h

import fuseline


def _model() -> onnx.ModelProto:
    unknown = [onnx.ValueInfoProto(name=name) for name in ("o1", "o2", "y")]
    then = h.make_graph(
        [h.make_node("Tanh", ["x"], ["o1"])], "then", [], [h.make_tensor_value_info("o1", TensorProto.FLOAT, None)]
    )
    other = h.make_graph(
        [h.make_node("Transpose", ["x"], ["o2"])],
        "other",
        [],
        [h.make_tensor_value_info("o2", TensorProto.FLOAT, None)],
    )
    nodes = [
        h.make_node("If", ["k"], ["v"], then_branch=then, else_branch=other),
        h.make_node("Transpose", ["v"], ["t"], perm=[0, 3, 1, 2]),
        h.make_node("Pad", ["t", "p"], ["q"]),
        h.make_node("Relu", ["q"], ["r"]),
        h.make_node("MatMul", ["r", "r2"], ["y"]),
        h.make_node("Transpose", ["r"], ["r2"], perm=[0, 1, 3, 2]),
    ]
    nodes[-2], nodes[-1] = nodes[-1], nodes[-2]
    pads = onnx.numpy_helper.from_array(np.array([2, 2, 0, 0, 0, 0, 0, 1], np.int64), "p")
    inputs = [
        h.make_tensor_value_info("x", TensorProto.FLOAT, [1, 2, 9, 13]),
        h.make_tensor_value_info("k", TensorProto.BOOL, []),
    ]
    graph = h.make_graph(nodes, "g", inputs, unknown[-1:], [pads])
    return h.make_model(graph, opset_imports=[h.make_opsetid("", 13)], ir_version=9)


@pytest.mark.parametrize("fusion", ["none", "default", "aggressive"])
@pytest.mark.parametrize("taken", [True, False])
def test_moved_data_of_unknown_size_is_fused_without_a_cycle(fusion: str, taken: bool):
    model = _model()
    feeds = {"x": np.random.default_rng(3).standard_normal((1, 2, 9, 13)).astype(np.float32), "k": np.array(taken)}
    got = fuseline.compile(model, threads=1, fusion=fusion).run(feeds)["y"]
    want = np.asarray(
        ort.InferenceSession(model.SerializeToString(), providers=["CPUExecutionProvider"]).run(None, feeds)[0]
    )
    np.testing.assert_allclose(got, want, rtol=1e-4, atol=1e-4)
