"""Positions of Slice at and beyond the ends, in both directions, as onnxruntime takes them."""

from __future__ import annotations

from itertools import product

import numpy as np
import onnxruntime as ort
import pytest
from onnx import ModelProto

import fuseline
from tests.graphs.onnx_text import onnx_model

LEAST, MOST = -(2**63), 2**63 - 1
PLACES = (LEAST, -(2**31), -8, -7, -1, 0, 3, 6, 7, 2**31 - 2, 2**31 - 1, MOST - 1, MOST)


def sliced(start: int, end: int, step: int, size: int | str) -> ModelProto:
    """Slice of a vector; `size` may be free."""
    weights = {"starts": [start], "ends": [end], "axes": [0], "steps": [step]}
    return onnx_model(f"(float[{size}] x) => (float[m] y) {{ y = Slice(x, starts, ends, axes, steps) }}", weights)


@pytest.mark.parametrize("step", [-1, -2])
@pytest.mark.parametrize("size", [7, "n"])
def test_backwards_to_every_end(step: int, size: int | str):
    x = np.random.default_rng(0).standard_normal(7).astype(np.float32)
    for start, end in product((LEAST, -1, 5, MOST), PLACES):
        model = sliced(start, end, step, size)
        expected = ort.InferenceSession(model.SerializeToString(), providers=["CPUExecutionProvider"]).run(
            None, {"x": x}
        )[0]
        found = fuseline.compile(model, target="interpreter", threads=1).run({"x": x})["y"]
        np.testing.assert_array_equal(found, expected, err_msg=f"{start}:{end}:{step}")
