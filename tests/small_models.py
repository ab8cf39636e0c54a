"""Small ONNX models with seeded weights: one per situation that a whole compile must handle, each compiled in well
under a second."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import onnx

from tests.graphs.onnx_builder import FLOAT, INT64, Builder


def mlp() -> onnx.ModelProto:
    """Two Gemms, Relu between, Softmax after."""
    b = Builder(1)
    hidden = b.node("Relu", b.node("Gemm", "x", b.weight(16, 32, scale=0.25), b.weight(32)))
    y = b.node("Softmax", b.node("Gemm", hidden, b.weight(32, 10, scale=0.2), b.weight(10)), axis=-1)
    return b.model({"x": (FLOAT, (4, 16))}, {y: (4, 10)})


def convolutions() -> onnx.ModelProto:
    """Conv, batch norm, Relu, a depthwise convolution, a residual sum, both poolings, Gemm."""
    b = Builder(2)
    scale, variance = (b.constant(b.rng.uniform(0.5, 1, 8).astype(np.float32)) for _ in range(2))
    stem = b.node("Conv", "x", b.weight(8, 3, 3, 3, scale=0.2), kernel_shape=[3, 3], pads=[1, 1, 1, 1], strides=[2, 2])
    trunk = b.node("Relu", b.node("BatchNormalization", stem, scale, b.weight(8), b.weight(8), variance))
    depth = b.node(
        "Conv", trunk, b.weight(8, 1, 3, 3, scale=0.3), b.weight(8), kernel_shape=[3, 3], pads=[1, 1, 1, 1], group=8
    )
    point = b.node(
        "Conv",
        b.node("Clip", depth, b.constant(np.float32(0)), b.constant(np.float32(6))),
        b.weight(8, 8, 1, 1, scale=0.3),
    )
    pooled = b.node("MaxPool", b.node("Add", trunk, point), kernel_shape=[2, 2], strides=[2, 2])
    flat = b.node("Flatten", b.node("GlobalAveragePool", pooled))
    y = b.node("Gemm", flat, b.weight(5, 8, scale=0.3), b.weight(5), transB=1)
    return b.model({"x": (FLOAT, (1, 3, 16, 16))}, {y: (1, 5)})


def attention(batch: int | str = 2, length: int | str = 8) -> onnx.ModelProto:
    """Embedding lookup, layer norm, one attention head group, residual; batch and length may be symbols."""
    b = Builder(3)
    x = b.node("Gather", b.weight(50, 16), "ids")
    normal = b.node("LayerNormalization", x, b.weight(16), b.weight(16), axis=-1)
    split = b.constant(np.array([0, 0, 2, 8], np.int64))
    heads = [b.node("Reshape", b.node("MatMul", normal, b.weight(16, 16, scale=0.25)), split) for _ in range(3)]
    q, v = (b.node("Transpose", head, perm=[0, 2, 1, 3]) for head in (heads[0], heads[2]))
    k = b.node("Transpose", heads[1], perm=[0, 2, 3, 1])
    scores = b.node("Softmax", b.node("Mul", b.node("MatMul", q, k), b.constant(np.float32(0.35))), axis=-1)
    mixed = b.node("Transpose", b.node("MatMul", scores, v), perm=[0, 2, 1, 3])
    joined = b.node("Reshape", mixed, b.constant(np.array([0, 0, 16], np.int64)))
    y = b.node("Add", x, b.node("MatMul", joined, b.weight(16, 16, scale=0.25)))
    return b.model({"ids": (INT64, (batch, length))}, {y: (batch, length, 16)})


def diamond() -> onnx.ModelProto:
    """One parent, two elementwise branches of different depth that meet again."""
    b = Builder(4)
    parent = b.node("Tanh", "x")
    y = b.node("Mul", b.node("Exp", parent), b.node("Sqrt", b.node("Abs", b.node("Neg", parent))))
    return b.model({"x": (FLOAT, (12, 20))}, {y: (12, 20)})


SMALL_MODELS: dict[str, Callable[[], onnx.ModelProto]] = {
    "mlp": mlp,
    "convolutions": convolutions,
    "attention": attention,
    "attention_symbolic": lambda: attention("batch", "length"),
    "diamond": diamond,
}
