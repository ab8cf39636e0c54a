"""Networks along one of whose dimensions there is nothing: they have a plan and a price, and results of the right
shapes."""

from __future__ import annotations

from typing import Any

import numpy as np
import onnx
import pytest

import fuseline
from tests.draws import RNG
from tests.graphs.onnx_text import onnx_model

QUANTISED = "q = QuantizeLinear(x, s, z)  a = DequantizeLinear(q, s, z)  "

LINES = {
    "normalised": "y = MeanVarianceNormalization(x)",
    "transposed": "t = Transpose<perm = [0, 2, 3, 1]>(x)  y = Relu(t)",
    "softmax": "y = Softmax<axis = 1>(x)",
    "pooled": "y = AveragePool<kernel_shape = [3, 3], pads = [1, 1, 1, 1]>(x)",
    "product": "r = Relu(x)  y = MatMul(r, w)",
    "quantised product": QUANTISED + "b = DequantizeLinear(v, s, z)  y = MatMul(a, b)",
    "widened filter": QUANTISED + "d = DequantizeLinear(k, s, z)  y = Conv<pads = [1, 1, 1, 1], group = 4>(a, d)",
    "computed filter": "d = Mul(f, s)  y = Conv<pads = [1, 1, 1, 1], group = 4>(x, d)",
    "spread in groups": "y = ConvTranspose<strides = [2, 2], group = 2>(x, u)",
    "interpolated": 'e = Constant<value_floats = [1.0, 1.0, 2.0, 2.0]>()  y = Resize<mode = "linear">(x, , e)',
    "scaled": 'e = Constant<value_floats = [1.0, 1.0, 2.0, 2.0]>()  y = Resize<mode = "nearest">(x, , e)',
}
"""What each makes of `x`, which has 4 channels and 5 columns where they are not nothing."""


def _model(lines: str, shape: tuple[int, ...]) -> onnx.ModelProto:
    weights = {"w": (5, 7), "v": (shape[3], 7), "k": (4, 1, 3, 3), "f": (4, 1, 3, 3), "u": (4, 3, 3, 3)}
    narrow: dict[str, Any] = {name: RNG.integers(-90, 90, weights[name]).astype(np.int8) for name in "vk"}
    wide: dict[str, Any] = {name: RNG.normal(size=weights[name]).astype(np.float32) for name in "wfu"}
    values = {"s": np.float32(0.05), "z": np.int8(0)} | narrow | wide
    used = {name: value for name, value in values.items() if f"{name}," in lines or f"{name})" in lines}
    extents = ", ".join(map(str, shape))
    return onnx_model(f"(float[{extents}] x) => (float[] y) {{ {lines} }}", used, opset=20)


@pytest.mark.parametrize("empty", range(4))
@pytest.mark.parametrize("kind", LINES)
def test_nothing_along_a_dimension(kind: str, empty: int):
    if (kind == "product" and empty == 3) or (
        empty == 1 and kind in ("widened filter", "computed filter", "spread in groups")
    ):
        pytest.skip("the weights say how many there are")
    shape = [int(RNG.integers(2, 5)), 4, int(RNG.integers(3, 7)), 5]
    shape[empty] = 0
    model = _model(LINES[kind], tuple(shape))
    fuseline.compile(model, target="null")
    x = np.zeros(shape, np.float32)
    found, wanted = (
        fuseline.compile(model, target=target, fusion=fusion).run({"x": x})["y"]
        for target, fusion in (("cpu", "default"), ("interpreter", "none"))
    )
    assert found.shape == wanted.shape
    np.testing.assert_array_equal(found, wanted)


@pytest.mark.parametrize("shape", [(5, 0), (0,), (2, 0, 3, 7)])
@pytest.mark.parametrize("line", ["y = Exp(x)", "e = Neg(x)  y = Add(e, x)", "y = Pow(x, x)", "y = Where(c, x, x)"])
def test_results_without_elements_take_no_dispatch(line: str, shape: tuple[int, ...]):
    extents = ", ".join(map(str, shape))
    given = f"float[{extents}] x" + (f", bool[{extents}] c" if "c," in line else "")
    model = onnx_model(f"({given}) => (float[] y) {{ {line} }}", {}, opset=20)
    program = fuseline.compile(model)
    assert [program.stats[name] for name in ("dispatches", "copies", "fills", "host_ops")] == [0] * 4
    feeds = {"x": np.zeros(shape, np.float32)} | ({"c": np.zeros(shape, bool)} if "c," in line else {})
    assert program.run(feeds)["y"].shape == shape
