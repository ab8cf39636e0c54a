"""Small networks of f32, f16 and bf16 form as many dispatches, and results of halves are those of f32, up to their
rounding."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import ml_dtypes
import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper, numpy_helper

import fuseline
from tests.draws import RNG

HALVES: dict[str, tuple[int, Any]] = {
    "f16": (TensorProto.FLOAT16, np.float16), "bf16": (TensorProto.BFLOAT16, ml_dtypes.bfloat16),
}  # fmt: skip


class Network:
    """A network while it is written, node by node; weights are random."""

    def __init__(self, *shape: int) -> None:
        self.shape, self.nodes, self.weights = shape, list[onnx.NodeProto](), dict[str, Any]()

    def weight(self, array: Any) -> str:
        name = f"w{len(self.weights)}"
        self.weights[name] = np.asarray(array)
        return name

    def __call__(self, op: str, *inputs: str, **attributes: Any) -> str:
        name = f"v{len(self.nodes)}"
        self.nodes.append(helper.make_node(op, inputs, [name], **attributes))
        return name

    def conv(self, x: str, channels: tuple[int, int], size: int = 3, *, groups: int = 1, stride: int = 1) -> str:
        filter_ = self.weight(RNG.normal(0, 0.1, (channels[1], channels[0] // groups, size, size)).astype(np.float32))
        bias = self.weight(RNG.normal(0, 0.1, channels[1]).astype(np.float32))
        around = [size // 2] * 4
        return self("Relu", self("Conv", x, filter_, bias, pads=around, group=groups, strides=[stride] * 2))

    def model(self, element: int = TensorProto.FLOAT, dtype: Any = np.float32) -> onnx.ModelProto:
        """The network in a type; what it is not is the weights' rounding."""
        ends = [
            helper.make_tensor_value_info("x", element, self.shape),
            helper.make_tensor_value_info(self.nodes[-1].output[0], element, None),
        ]
        weights = [
            numpy_helper.from_array(array.astype(dtype) if array.dtype == np.float32 else array, name)
            for name, array in self.weights.items()
        ]
        graph = helper.make_graph(self.nodes, "network", ends[:1], ends[1:], weights)
        return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 20)], ir_version=9)


def _chain(channels: int, size: int) -> Network:
    n = Network(1, channels, size, size)
    n.conv(n.conv("x", (channels, channels)), (channels, channels))
    return n


def _dense() -> Network:
    n = Network(1, 16, 20, 20)
    joined = n("Concat", "x", n.conv("x", (16, 16)), axis=1)
    n.conv(n("Concat", joined, n.conv(joined, (32, 16)), axis=1), (48, 24), 1)
    return n


def _residual() -> Network:
    n = Network(1, 32, 21, 19)
    scale = n.weight(RNG.normal(1, 0.1, (32, 1, 1)).astype(np.float32))
    n("Add", "x", n.conv(n.conv(n("Relu", n("Mul", "x", scale)), (32, 32)), (32, 32)))
    return n


def _group_norm() -> Network:
    n = Network(1, 32, 24, 24)
    ones, zeros = n.weight(np.ones(8, np.float32)), n.weight(np.zeros(8, np.float32))
    groups, whole = n.weight(np.array([1, 8, -1], np.int64)), n.weight(np.array([1, 32, 24, 24], np.int64))
    y = n("Reshape", n("InstanceNormalization", n("Reshape", "x", groups), ones, zeros), whole)
    n("Add", "x", n.conv(n("Mul", y, n("Sigmoid", y)), (32, 32)))
    return n


def _inverted() -> Network:
    n = Network(1, 16, 28, 28)
    n.conv(n.conv(n.conv("x", (16, 64), 1), (64, 64), 5, groups=64, stride=2), (64, 24), 1)
    return n


NETWORKS: dict[str, Callable[[], Network]] = {
    "chain_16": lambda: _chain(16, 40), "dense": _dense, "residual": _residual, "group_norm": _group_norm,
    "chain_3": lambda: _chain(3, 37), "chain_8": lambda: _chain(8, 30), "chain_24": lambda: _chain(24, 17),
    "chain_32": lambda: _chain(32, 33), "inverted": _inverted,
}  # fmt: skip
QUICK = 4
"""The first of them run by default, the others are slow."""


@pytest.mark.parametrize("threads", [1, 2])
@pytest.mark.parametrize(
    "name", [pytest.param(name, marks=() if i < QUICK else pytest.mark.slow) for i, name in enumerate(NETWORKS)]
)
def test_halves_form_as_many_dispatches_as_floats(name: str, threads: int):
    network = NETWORKS[name]()
    wide = fuseline.compile(network.model(), threads=threads)
    x = RNG.normal(0, 1, network.shape).astype(np.float16)
    (expected,) = wide.run({"x": x.astype(np.float32)}).values()
    for element, dtype in HALVES.values():
        narrow = fuseline.compile(network.model(element, dtype), threads=threads)
        assert narrow.stats["dispatches"] == wide.stats["dispatches"]
        (found,) = narrow.run({"x": x.astype(dtype)}).values()
        error = np.abs(np.asarray(found, np.float32) - expected).max() / np.abs(expected).max()
        assert error < 16 * float(ml_dtypes.finfo(dtype).eps)
