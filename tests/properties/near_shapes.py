"""Random models of layers that are the same up to extents."""

from __future__ import annotations

import numpy as np
import onnx

from tests.graphs.onnx_text import onnx_model


def near_shapes(rng: np.random.Generator, rows: str) -> onnx.ModelProto:
    """A model of `rows` rows (a number or a name) of 24 features: products, sums over rows and joins, between layers
    of random widths."""
    weights: dict[str, np.ndarray] = {}
    lines: list[str] = []
    x, width = "x", 24

    def weight(*shape: int) -> str:
        name = f"w{len(weights)}"
        weights[name] = (rng.standard_normal(shape) / 4).astype(np.float32)
        return name

    def op(text: str, *operands: str) -> str:
        name = f"v{len(lines)}"
        lines.append(f"{name} = {text}({', '.join(operands)})")
        return name

    weights["axes"] = np.array([0], np.int64)
    for layer in range(int(rng.integers(3, 6))):
        wider = int(rng.choice([8, 16, 24, 40, 64, 96]))
        product = op("Add", op("MatMul", x, weight(width, wider)), weight(wider))
        x, width = op(str(rng.choice(["Relu", "Tanh"])), product), wider
        if layer % 2:
            x = op("Sub", x, op("ReduceMax<keepdims = 1>", x, "axes"))
    body = "\n".join(lines)
    return onnx_model(f"(float[{rows}, 24] x) => (float[{rows}, {width}] {x}) {{ {body} }}", weights)
