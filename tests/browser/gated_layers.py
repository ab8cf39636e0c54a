"""The network that the tests of the page look at: layers of a convolution and a gate."""

from __future__ import annotations

from collections.abc import Sequence

import onnx

from tests.draws import generator
from tests.graphs.onnx_text import onnx_model


def gated_layers(widths: Sequence[int], module: str) -> onnx.ModelProto:
    """`x -> Conv -> x * Sigmoid(x)` for each pair of neighbours in `widths` (channels), on 40 x 40 pixels, then Exp;
    weights are drawn for `module`."""
    draw, layers = generator(module), len(widths) - 1
    weights = {f"w{i}": draw.standard_normal((widths[i + 1], widths[i], 3, 3), dtype="float32") for i in range(layers)}
    body = "".join(
        f"a{i} = Conv<pads = [1, 1, 1, 1]>(x{i}, w{i}) b{i} = Sigmoid(a{i}) x{i + 1} = Mul(a{i}, b{i}) "
        for i in range(layers)
    )
    return onnx_model(f"(float[1, {widths[0]}, 40, 40] x0) => (y) {{ {body} y = Exp(x{layers}) }}", weights)
