"""Indices outside their tensor: fed or stored in the model, they may give any value but never a read outside."""

from __future__ import annotations

import numpy as np
import onnx
import pytest
from onnx import helper, numpy_helper

import fuseline

TABLE = np.random.default_rng(0).standard_normal((7, 33), dtype=np.float32)
WILD = np.array([0, 6, -1, -7, 7, -8, 10**9, -(10**9), 2**62, -(2**63)], np.int64)


def _model(constant: bool) -> onnx.ModelProto:
    ids = helper.make_tensor_value_info("ids", onnx.TensorProto.INT64, [len(WILD)])
    x = helper.make_tensor_value_info("x", onnx.TensorProto.FLOAT, [7, 33])
    y = helper.make_tensor_value_info("y", onnx.TensorProto.FLOAT, [len(WILD), 33])
    initializers = [numpy_helper.from_array(WILD, "ids")] if constant else []
    graph = helper.make_graph([helper.make_node("Gather", ["x", "ids"], ["y"], axis=0)], "g", [x] if constant else [x, ids], [y], initializers)
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=9)


@pytest.mark.parametrize("constant", [False, True])
def test_wild_indices_stay_inside(constant: bool):
    model = fuseline.compile(_model(constant), threads=1)
    out = model.run({"x": TABLE} if constant else {"x": TABLE, "ids": WILD})["y"]
    np.testing.assert_array_equal(out[:4], TABLE[[0, 6, 6, 0]])
    assert all((row == TABLE).all(axis=1).any() for row in out)
