"""Maxima of an argument that is rounded: read as it is, and rounded behind, with the numbers of before."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

import fuseline
from tests.draws import RNG
from tests.graphs.onnx_text import onnx_model
from tests.one_node import by_onnxruntime


def _pooled(element: Any, size: tuple[int, int, int], window: int, stride: int) -> tuple[Any, NDArray[Any]]:
    pads = ", ".join([str(window // 2)] * 4)
    text = f"(float[1, {size[0]}, {size[1]}, {size[2]}] x) => (float[] y) {{"
    text += "  q = QuantizeLinear(x, s, z)  d = DequantizeLinear(q, s, z)"
    text += f"  m = MaxPool<kernel_shape=[{window}, {window}], pads=[{pads}], strides=[{stride}, {stride}]>(d)"
    text += "  r = QuantizeLinear(m, s, z)  y = DequantizeLinear(r, s, z) }"
    zero = np.iinfo(element).min + int(RNG.integers(90, 170))
    model = onnx_model(text, {"s": np.float32(RNG.uniform(0.01, 0.05)), "z": np.asarray(zero, element)}, opset=20)
    return model, RNG.normal(0, 2, (1, *size)).astype(np.float32)


@pytest.mark.parametrize("element", [np.uint8, np.int8])
@pytest.mark.parametrize("stride", [1, 2])
def test_results_are_those_of_the_model(element: Any, stride: int):
    channels, height, width = (int(n) for n in RNG.integers((1, 5, 5), (20, 40, 40)))
    model, x = _pooled(element, (channels, height, width), int(RNG.choice([2, 3, 5])), stride)
    program = fuseline.compile(model, threads=int(RNG.integers(1, 3)))
    assert program.stats["dispatches"] == 1
    (found,) = program.run({"x": x}).values()
    np.testing.assert_array_equal(found, by_onnxruntime(model, {"x": x})[0])


def test_nan_and_infinities_are_rounded_as_before():
    """NaN is the least there is where it is rounded, so that it is no maximum."""
    model, x = _pooled(np.uint8, (3, 12, 13), 3, 1)
    x[:, :, ::4, ::3], x[:, :, 1::5, ::4], x[:, 1, 5:9, 4:9] = np.nan, np.inf, -np.inf
    x[:, 2, :6, :6] = np.nan
    programs = fuseline.compile(model, threads=1, passes="form-dispatch-regions"), fuseline.compile(model, threads=1)
    wanted, found = (next(iter(program.run({"x": x}).values())) for program in programs)
    np.testing.assert_array_equal(found, wanted)


def test_maxima_with_their_places_stay_as_they_are():
    """A body with two results is no maximum alone."""
    text = "(float[1, 3, 12, 13] x) => (float[] y, int64[] p) { q = QuantizeLinear(x, s, z)"
    text += "  d = DequantizeLinear(q, s, z)  y, p = MaxPool<kernel_shape=[3, 3], strides=[2, 2]>(d) }"
    model = onnx_model(text, {"s": np.float32(0.03), "z": np.uint8(120)}, opset=20)
    x = RNG.normal(0, 2, (1, 3, 12, 13)).astype(np.float32)
    found = fuseline.compile(model, threads=1).run({"x": x})
    for name, wanted in zip("yp", by_onnxruntime(model, {"x": x}), strict=True):
        np.testing.assert_array_equal(found[name], wanted)
