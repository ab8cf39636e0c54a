"""A small model with two equal layers."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import onnx

from tests.draws import RNG

TEXT = """
<ir_version: 9, opset_import: ["": 18]>
layers (float[1, 5, 31, 31] x, float[16, 5, 2, 2] t, float[16, 16, 3, 3] w, float[16, 16, 3, 3] v,
    float[48, 16, 1, 1] u) => (y)
{
    s = Conv (x, t)
    a = Conv <pads = [1, 1, 1, 1]> (s, w)
    b = Relu (a)
    c = Conv <pads = [1, 1, 1, 1]> (b, v)
    d = Relu (c)
    y = Conv (d, u)
}
"""

WEIGHTS = {"t": (16, 5, 2, 2), "w": (16, 16, 3, 3), "v": (16, 16, 3, 3), "u": (48, 16, 1, 1)}


def save_layers(path: Path) -> Path:
    """Write the model with random weights; its input is `x` of 1x5x31x31, its result `y`."""
    model = onnx.parser.parse_model(TEXT)
    for value in list(model.graph.input):
        if value.name in WEIGHTS:
            weights = 0.2 * RNG.standard_normal(WEIGHTS[value.name]).astype(np.float32)
            model.graph.input.remove(value)
            model.graph.initializer.append(onnx.numpy_helper.from_array(weights.astype(np.float32), value.name))
    onnx.save(model, path)
    return path
