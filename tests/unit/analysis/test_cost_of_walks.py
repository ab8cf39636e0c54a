"""Scans, scatters and ranks count as the walks that make them, not as the reductions that they are written as."""

from __future__ import annotations

from collections.abc import Callable, Mapping

import numpy as np
import pytest
from numpy.typing import NDArray
from onnx import ModelProto, NodeProto, TensorProto, helper, numpy_helper

import fuseline

N, C = 96, 8


def _model(
    node: NodeProto, outputs: Mapping[str, tuple[int, int]], constant: NDArray[np.int64] | None = None
) -> ModelProto:
    """The node alone; its last input is `constant` where there is one."""
    names = list(node.input) if constant is None else list(node.input)[:-1]
    inputs = [
        helper.make_tensor_value_info(name, TensorProto.INT64 if name == "i" else TensorProto.FLOAT, [N, C])
        for name in names
    ]
    results = [helper.make_tensor_value_info(name, kind, [N, columns]) for name, (kind, columns) in outputs.items()]
    weights = [] if constant is None else [numpy_helper.from_array(constant, node.input[-1])]
    graph = helper.make_graph([node], "g", inputs, results, weights)
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 18)], ir_version=10)


def scatter() -> ModelProto:
    """One addition per update."""
    return _model(
        helper.make_node("ScatterElements", ["x", "i", "u"], ["y"], axis=0, reduction="add"),
        {"y": (TensorProto.FLOAT, C)},
    )


def running_sum() -> ModelProto:
    """One addition per element."""
    return _model(helper.make_node("CumSum", ["x", "axis"], ["y"]), {"y": (TensorProto.FLOAT, C)}, np.array(0))


def largest() -> ModelProto:
    """Rows of eight elements are sorted."""
    node = helper.make_node("TopK", ["x", "k"], ["v", "p"], axis=1)
    return _model(node, {"v": (TensorProto.FLOAT, 4), "p": (TensorProto.INT64, 4)}, np.array([4]))


@pytest.mark.parametrize(("model", "most"), [(scatter, 8 * N * C), (running_sum, 2 * N * C), (largest, 40 * N * C)])
@pytest.mark.parametrize("target", ["null", "cpu"])
def test_operations_grow_with_the_elements(model: Callable[[], ModelProto], most: int, target: str):
    """The quadratic forms have N C N or N C C points, several operations each."""
    program = fuseline.compile(model(), target=target, threads=1)
    total = sum(dispatch.flops for dispatch in program.record.dispatches)
    assert N * C <= total <= most
