"""Blocks that split their channels, one half of which goes on and is joined with the other: quantised, they have the
dispatches of f32."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import fuseline
from tests.draws import RNG
from tests.graphs.onnx_builder import Builder
from tests.graphs.onnx_text import declared, onnx_model


def _conv(n: Builder, x: str, element: Any, inputs: int, outputs: int, size: int, scale: tuple[str, ...]) -> str:
    values = RNG.integers(-127, 128, (outputs, inputs, size, size)).astype(np.int8)
    step = np.float32(1 / (90 * size * inputs**0.5))
    if element is None:
        return n.node("Relu", n.node("Conv", x, n.constant(values * step), pads=[size // 2] * 4))
    filter_ = n.node("DequantizeLinear", n.constant(values), n.constant(step))
    return _rounded(n, n.node("Relu", n.node("Conv", x, filter_, pads=[size // 2] * 4)), scale)


def _rounded(n: Builder, x: str, scale: tuple[str, ...]) -> str:
    return n.node("DequantizeLinear", n.node("QuantizeLinear", x, *scale), *scale) if scale else x


def _block(element: Any, half: int, size: tuple[int, int]) -> Any:
    n = Builder()
    scale = ()
    if element is not None:
        zero = np.asarray(np.iinfo(element).min + int(RNG.integers(0, 100)), element)
        scale = (n.constant(np.float32(RNG.uniform(0.02, 0.04))), n.constant(zero))
    y = _conv(n, _rounded(n, "x", scale), element, 2 * half, 2 * half, 1, scale)
    ends = [n.constant(np.array([end])) for end in (0, half, 2 * half, 1)]
    parts = [_rounded(n, n.node("Slice", y, *cut, ends[3]), scale) for cut in ((ends[0], ends[1]), (ends[1], ends[2]))]
    deep = _conv(n, _conv(n, parts[1], element, half, half, 3, scale), element, half, half, 3, scale)
    joined = _rounded(n, n.node("Concat", *parts, deep, axis=1), scale)
    last = _conv(n, joined, element, 3 * half, 8, 1, scale)
    text = f"({declared({'x': (1, 2 * half, *size)})}) => (float[] {last}) {{ {'  '.join(n.nodes)} }}"
    return onnx_model(text, n.weights, opset=20)


@pytest.mark.parametrize("element", [np.uint8, np.int8])
def test_split_channels_form_the_dispatches_of_floats(element: Any):
    half, threads = 2 * int(RNG.integers(3, 9)), int(RNG.integers(1, 3))
    height, width = (int(n) for n in RNG.integers(8, 20, 2))
    model = _block(element, half, (height, width))
    program = fuseline.compile(model, threads=threads, numerics="strict")
    floats = fuseline.compile(_block(None, half, (height, width)), threads=threads, numerics="strict")
    assert program.stats["dispatches"] <= floats.stats["dispatches"]
    x = RNG.normal(0, 1, (1, 2 * half, height, width)).astype(np.float32)
    (found,) = program.run({"x": x}).values()
    (wanted,) = fuseline.compile(model, target="interpreter", fusion="none").run({"x": x}).values()
    np.testing.assert_array_equal(found, wanted)
