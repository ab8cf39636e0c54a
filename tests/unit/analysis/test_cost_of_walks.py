"""Scans, scatters and ranks count as the walks that make them, not as the reductions that they are written as."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest
from onnx import ModelProto, TensorProto, helper, numpy_helper

import fuseline

N, C = 96, 8


def _model(op: str, inputs: dict[str, int], outputs: dict[str, int], constants: dict[str, int] | None = None, **attributes: object) -> ModelProto:
    weights = [numpy_helper.from_array(np.array([value] if op == "TopK" else value, np.int64), name) for name, value in (constants or {}).items()]
    node = helper.make_node(op, [*inputs, *(constants or {})], list(outputs), **attributes)
    values = [[helper.make_tensor_value_info(name, kind, [N, C]) for name, kind in side.items()] for side in (inputs, outputs)]
    for value in values[1] if op == "TopK" else ():
        value.type.tensor_type.shape.dim[1].dim_value = (constants or {})["k"]
    graph = helper.make_graph([node], "g", values[0], values[1], weights)
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 18)], ir_version=10)


def scatter() -> ModelProto:
    """One addition per update."""
    inputs = {"x": TensorProto.FLOAT, "i": TensorProto.INT64, "u": TensorProto.FLOAT}
    return _model("ScatterElements", inputs, {"y": TensorProto.FLOAT}, axis=0, reduction="add")


def running_sum() -> ModelProto:
    """One addition per element."""
    return _model("CumSum", {"x": TensorProto.FLOAT}, {"y": TensorProto.FLOAT}, {"axis": 0})


def largest() -> ModelProto:
    """Rows of eight elements are sorted."""
    return _model("TopK", {"x": TensorProto.FLOAT}, {"v": TensorProto.FLOAT, "i": TensorProto.INT64}, {"k": 4}, axis=1)


@pytest.mark.parametrize(("model", "most"), [(scatter, 8 * N * C), (running_sum, 2 * N * C), (largest, 40 * N * C)])
@pytest.mark.parametrize("target", ["null", "cpu"])
def test_operations_grow_with_the_elements(model: Callable[[], ModelProto], most: int, target: str):
    """The quadratic forms have N C N or N C C points, several operations each."""
    program = fuseline.compile(model(), target=target, threads=1)
    total = sum(dispatch.flops for dispatch in program.record.dispatches)
    assert N * C <= total <= most
