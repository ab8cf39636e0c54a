"""Models of any length for measuring the compiler: transformer blocks and convolution blocks, with small seeded
weights."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import onnx
import onnx.helper as oh
from onnx import TensorProto, numpy_helper

WIDTH, HEADS, LENGTH = 32, 4, 16
CHANNELS, SIZE = 16, 16


class _Writer:
    """Collects nodes and weights. Every block has weights of its own, as a real model has."""

    def __init__(self) -> None:
        self.rng = np.random.default_rng(0)
        self.nodes: list[onnx.NodeProto] = []
        self.weights: list[onnx.TensorProto] = []

    def node(self, op_type: str, *inputs: str, **attributes: object) -> str:
        name = f"{op_type}_{len(self.nodes)}"
        self.nodes.append(oh.make_node(op_type, list(inputs), [name], name=name, **attributes))  # pyright: ignore[reportArgumentType]
        return name

    def weight(self, *shape: int) -> str:
        return self.constant((self.rng.standard_normal(shape) / np.sqrt(max(shape[0], 1))).astype(np.float32))

    def constant(self, values: np.ndarray) -> str:  # pyright: ignore[reportMissingTypeArgument, reportUnknownParameterType]
        name = f"w{len(self.weights)}"
        self.weights.append(numpy_helper.from_array(values, name))
        return name


def _linear(w: _Writer, x: str, inner: int, outer: int) -> str:
    return w.node("Add", w.node("MatMul", x, w.weight(inner, outer)), w.weight(outer))


def _norm(w: _Writer, x: str) -> str:
    return w.node("LayerNormalization", x, w.weight(WIDTH), w.weight(WIDTH), axis=-1)


def _head(w: _Writer, x: str, perm: list[int]) -> str:
    split = w.constant(np.array([1, LENGTH, HEADS, WIDTH // HEADS], np.int64))
    return w.node("Transpose", w.node("Reshape", _linear(w, x, WIDTH, WIDTH), split), perm=perm)


def transformer_block(w: _Writer, x: str) -> str:
    """Attention and a feed-forward part, each after a norm and beside a residual: 31 nodes."""
    normal = _norm(w, x)
    q, k, v = _head(w, normal, [0, 2, 1, 3]), _head(w, normal, [0, 2, 3, 1]), _head(w, normal, [0, 2, 1, 3])
    scores = w.node("Softmax", w.node("Mul", w.node("MatMul", q, k), w.constant(np.array(0.35, np.float32))), axis=-1)
    mixed = w.node("Transpose", w.node("MatMul", scores, v), perm=[0, 2, 1, 3])
    joined = w.node("Reshape", mixed, w.constant(np.array([1, LENGTH, WIDTH], np.int64)))
    x = w.node("Add", x, _linear(w, joined, WIDTH, WIDTH))
    hidden = _linear(w, _norm(w, x), WIDTH, 2 * WIDTH)
    gated = w.node("Mul", hidden, w.node("Sigmoid", hidden))
    return w.node("Add", x, _linear(w, gated, 2 * WIDTH, WIDTH))


def _conv(w: _Writer, x: str, size: int, group: int = 1) -> str:
    weight = w.weight(CHANNELS, CHANNELS // group, size, size)
    pads = [size // 2] * 4
    return w.node("Conv", x, weight, w.weight(CHANNELS), kernel_shape=[size, size], pads=pads, group=group)


def convolution_block(w: _Writer, x: str) -> str:
    """A residual block, and a depthwise one with a gate: 17 nodes."""
    y = w.node("Relu", _conv(w, x, 3))
    x = w.node("Relu", w.node("Add", x, _conv(w, y, 3)))
    y = w.node("Clip", _conv(w, x, 1), w.constant(np.array(0, np.float32)), w.constant(np.array(6, np.float32)))
    y = w.node("HardSwish", _conv(w, y, 3, CHANNELS))
    pooled = w.node("GlobalAveragePool", y)
    y = w.node("Mul", y, w.node("HardSigmoid", _conv(w, pooled, 1)))
    return w.node("Add", x, _conv(w, y, 1))


BLOCKS: dict[str, tuple[Callable[[_Writer, str], str], tuple[int, ...]]] = {
    "transformer": (transformer_block, (1, LENGTH, WIDTH)),
    "convolution": (convolution_block, (1, CHANNELS, SIZE, SIZE)),
}


def generated_model(kind: str, nodes: int) -> onnx.ModelProto:
    """A model of `kind` (`transformer`, `convolution`, or `mixed`: half of each side by side) with at least `nodes`
    nodes."""
    w = _Writer()
    kinds = list(BLOCKS) if kind == "mixed" else [kind]
    ends: list[tuple[str, tuple[int, ...]]] = []
    for i, name in enumerate(kinds, 1):
        block, shape = BLOCKS[name]
        x = name
        while len(w.nodes) < nodes * i // len(kinds):
            x = block(w, x)
        ends.append((x, shape))
    inputs = [oh.make_tensor_value_info(name, TensorProto.FLOAT, BLOCKS[name][1]) for name in kinds]
    outputs = [oh.make_tensor_value_info(name, TensorProto.FLOAT, shape) for name, shape in ends]
    graph = oh.make_graph(w.nodes, f"{kind}_{nodes}", inputs, outputs, w.weights)
    return oh.make_model(graph, opset_imports=[oh.make_opsetid("", 18)], ir_version=9)
