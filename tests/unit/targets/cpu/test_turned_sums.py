"""Sums of integers whose floats lie across the lanes: transposed in registers from where the sums were put aside."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import fuseline
from fuseline.api import emit
from tests.draws import RNG
from tests.graphs.onnx_text import onnx_model


def _convolution(channels: int, kernel: int) -> tuple[Any, Any]:
    size = [1, 16, *(int(n) for n in RNG.integers(13, 40, 2))]
    text = f"(float{size} x) => (float[] y) {{ q = QuantizeLinear(x, s, z)  d = DequantizeLinear(q, s, z)"
    text += f"  f = DequantizeLinear(w, t)  y = Conv<pads=[{', '.join([str(kernel // 2)] * 4)}]>(d, f, b) }}"
    weights = {"s": np.float32(0.02), "z": np.uint8(120), "t": np.float32(0.01)}
    filters = RNG.integers(-127, 128, (channels, 16, kernel, kernel)).astype(np.int8)
    bias = RNG.standard_normal(channels).astype(np.float32)
    model = onnx_model(text, {**weights, "w": filters, "b": bias}, opset=20)
    return model, RNG.standard_normal(size).astype(np.float32)


@pytest.mark.parametrize("kernel", [1, 3])
@pytest.mark.parametrize("channels", [5, 16, 20, 48])
@pytest.mark.parametrize("threads", [1, 2])
def test_results_are_the_interpreters(channels: int, kernel: int, threads: int):
    model, x = _convolution(channels, kernel)
    (found,) = fuseline.compile(model, threads=threads).run({"x": x}).values()
    (wanted,) = fuseline.compile(model, target="interpreter", fusion="none").run({"x": x}).values()
    np.testing.assert_array_equal(found, wanted)
    assert "scatter" not in emit(model, "kernel", threads=threads)
