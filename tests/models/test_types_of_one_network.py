"""Small networks of f32, f16 and bf16 form as many dispatches, and results of halves are those of f32, up to their
rounding."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import ml_dtypes
import numpy as np
import onnx
import pytest

import fuseline
from tests.draws import RNG
from tests.graphs.onnx_builder import Builder
from tests.graphs.onnx_text import declared, element_of, onnx_model

HALVES: tuple[Any, ...] = (np.float16, ml_dtypes.bfloat16)


class Network(Builder):
    """A network of one image with random weights."""

    def __init__(self, *shape: int) -> None:
        super().__init__()
        self.shape, self.last = shape, "x"

    def __call__(self, op: str, *inputs: str, **attributes: Any) -> str:
        self.last = self.node(op, *inputs, **attributes)
        return self.last

    def conv(
        self, x: str, channels: tuple[int, int], size: int = 3, *, groups: int = 1, stride: int = 1, rate: int = 1
    ) -> str:
        filter_ = self.constant(RNG.normal(0, 0.1, (channels[1], channels[0] // groups, size, size)).astype(np.float32))
        bias = self.constant(RNG.normal(0, 0.1, channels[1]).astype(np.float32))
        how = {"pads": [size // 2 * rate] * 4, "group": groups, "strides": [stride] * 2, "dilations": [rate] * 2}
        return self("Relu", self("Conv", x, filter_, bias, **how))

    def in_type(self, dtype: Any) -> onnx.ModelProto:
        """The network in a type; what it is not is the weights' rounding."""
        element = element_of(dtype)
        weights = {
            name: np.asarray(array, dtype if array.dtype == np.float32 else None)
            for name, array in self.weights.items()
        }
        ends = f"({declared({'x': self.shape}, element=element)}) => ({element}[] {self.last})"
        return onnx_model(f"{ends} {{ {'  '.join(self.nodes)} }}", weights, opset=20)


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
    scale = n.constant(RNG.normal(1, 0.1, (32, 1, 1)).astype(np.float32))
    n("Add", "x", n.conv(n.conv(n("Relu", n("Mul", "x", scale)), (32, 32)), (32, 32)))
    return n


def _group_norm() -> Network:
    n = Network(1, 32, 24, 24)
    ones, zeros = n.constant(np.ones(8, np.float32)), n.constant(np.zeros(8, np.float32))
    groups, whole = n.constant(np.array([1, 8, -1], np.int64)), n.constant(np.array([1, 32, 24, 24], np.int64))
    y = n("Reshape", n("InstanceNormalization", n("Reshape", "x", groups), ones, zeros), whole)
    n("Add", "x", n.conv(n("Mul", y, n("Sigmoid", y)), (32, 32)))
    return n


def _inverted() -> Network:
    n = Network(1, 16, 28, 28)
    n.conv(n.conv(n.conv("x", (16, 64), 1), (64, 64), 5, groups=64, stride=2), (64, 24), 1)
    return n


def _dilated(channels: int, size: int, *, stride: int = 1) -> Network:
    n = Network(1, channels, size, size)
    branches = [n.conv("x", (channels, 16), 3, stride=stride, rate=rate) for rate in (1, 2, 4)]
    n.conv(n("Concat", *branches, axis=1), (48, 24), 1)
    return n


def _joined(channels: int, size: int) -> Network:
    """Its result is what several branches make."""
    n = Network(1, channels, size, size - 3)
    around = {"kernel_shape": [3, 3], "pads": [1] * 4}
    pooled = n.conv(n("MaxPool", "x", **around), (channels, 16), 1)
    n("Concat", n.conv("x", (channels, 16), 1), n.conv("x", (channels, 8)), pooled, axis=1)
    return n


def _of_one_channel(size: int) -> Network:
    """Windows of one channel become windows of no channel."""
    n = Network(1, 1, size, size + 2)
    y = n.conv("x", (1, 1), 5)
    n("Add", n.conv(y, (1, 1)), n.conv(y, (1, 1)))
    return n


NETWORKS: dict[str, Callable[[], Network]] = {
    "chain_16": lambda: _chain(16, 40), "dense": _dense, "residual": _residual, "group_norm": _group_norm,
    "joined": lambda: _joined(16, 21), "one_channel": lambda: _of_one_channel(29),
    "dilated_16": lambda: _dilated(16, 28), "dilated_3": lambda: _dilated(3, 41, stride=2),
    "chain_3": lambda: _chain(3, 37), "chain_8": lambda: _chain(8, 30), "chain_24": lambda: _chain(24, 17),
    "chain_32": lambda: _chain(32, 33), "inverted": _inverted,
}  # fmt: skip
QUICK = 7
"""The first of them run by default, the others are slow."""


@pytest.mark.parametrize("threads", [1, 2])
@pytest.mark.parametrize(
    "name", [pytest.param(name, marks=() if i < QUICK else pytest.mark.slow) for i, name in enumerate(NETWORKS)]
)
def test_halves_form_as_many_dispatches_as_floats(name: str, threads: int):
    network = NETWORKS[name]()
    wide = fuseline.compile(network.in_type(np.float32), threads=threads)
    x = RNG.normal(0, 1, network.shape).astype(np.float16)
    (expected,) = wide.run({"x": x.astype(np.float32)}).values()
    for dtype in HALVES:
        narrow = fuseline.compile(network.in_type(dtype), threads=threads)
        assert narrow.stats["dispatches"] == wide.stats["dispatches"]
        (found,) = narrow.run({"x": x.astype(dtype)}).values()
        error = np.abs(np.asarray(found, np.float32) - expected).max() / np.abs(expected).max()
        assert error < 16 * float(ml_dtypes.finfo(dtype).eps)
