"""Constants that are equal stay constants of their own: other runtimes fold one that a single operator reads."""

from __future__ import annotations

import numpy as np

import fuseline
from tests.draws import RNG
from tests.graphs.onnx_text import onnx_model
from tests.optimized import checked


def test_zero_points_of_their_own_stay_so():
    text = """(int8[1, 3, 6, 6] x, int8[1, 3, 6, 6] v) => (float[1, 3, 6, 6] y) {
        a = DequantizeLinear (x, s, p) b = DequantizeLinear (v, s2, q) y = Add (a, b) }"""
    zero, scale = np.int8(3), np.float32(RNG.uniform(0.1, 2))
    found = checked(onnx_model(text, s=scale, s2=scale, p=zero, q=zero), interpreted=False)
    read = [name for node in found.model.graph.node if node.op_type == "DequantizeLinear" for name in node.input[1:]]
    assert read == ["s", "p", "s2", "q"] and len(found.model.graph.initializer) == 4
    assert not fuseline.optimize(found.model).summary.done
