"""Windows over an argument of 16-bit floats read it as it is stored: as many dispatches as over floats, with the same
numbers."""

from __future__ import annotations

from typing import Any

import ml_dtypes
import numpy as np
import onnx
import onnxruntime
import pytest
from numpy.typing import NDArray

import fuseline
from tests.draws import RNG
from tests.graphs.onnx_text import element_of, onnx_model
from tests.kernels import assert_close

HALVES: list[Any] = [np.float16, ml_dtypes.bfloat16]

WINDOWS = {
    "depthwise": "y = Conv<group=24, kernel_shape=[3, 3], strides=[2, 2], pads=[1, 1, 1, 1]>(x, f)",
    "dilated": "y = Conv<group=24, kernel_shape=[3, 3], dilations=[2, 2], pads=[2, 2, 2, 2]>(x, f)",
    "without a border": "y = Conv<group=24, kernel_shape=[3, 3]>(x, f)",
    "maximum": "y = MaxPool<kernel_shape=[3, 3], strides=[2, 2], pads=[1, 1, 1, 1]>(x)",
    "average": "y = AveragePool<kernel_shape=[3, 3], pads=[1, 1, 1, 1], count_include_pad=1>(x)",
    "padded before": "p = Pad(x, n)  y = Conv<group=24, kernel_shape=[3, 3]>(p, f)",
    "a second reader": "c = Conv<group=24, kernel_shape=[3, 3], pads=[1, 1, 1, 1]>(x, f)  y = Add(x, c)",
    "channels last": "t = Transpose<perm=[0, 3, 1, 2]>(x)"
    " c = Conv<group=24, kernel_shape=[3, 3], pads=[1, 1, 1, 1]>(t, f)  y = Transpose<perm=[0, 2, 3, 1]>(c)",
}


def _model(name: str, size: str, dtype: Any) -> tuple[onnx.ModelProto, list[str]]:
    shape = ["1", *size.split(", "), "24"] if name == "channels last" else ["1", "24", *size.split(", ")]
    text = f"({element_of(dtype)}[{', '.join(shape)}] x) => ({element_of(dtype)}[] y) {{ {WINDOWS[name]} }}"
    weights: dict[str, NDArray[Any]] = {
        "f": np.random.default_rng(5).integers(-8, 9, (24, 1, 3, 3)).astype(dtype),
        "n": np.array([0, 0, 1, 2, 0, 0, 0, 1]),
    }
    used = {key: weights[key] for key in weights if f" {key})" in WINDOWS[name]}
    return onnx_model(text, used, opset=22, ir_version=10), shape


@pytest.mark.parametrize(("size", "dtype"), [("19, 23", HALVES[0]), ("h, w", HALVES[1])])
@pytest.mark.parametrize("name", WINDOWS)
def test_as_many_dispatches_as_in_floats(name: str, size: str, dtype: Any):
    (whole, _), (half, shape) = (_model(name, size, t) for t in (np.float32, dtype))
    at = [int(n) if n.isdigit() else int(RNG.integers(5, 40)) for n in shape]
    x = RNG.integers(-16, 17, at).astype(dtype)
    assert fuseline.compile(half).stats["dispatches"] == fuseline.compile(whole).stats["dispatches"]
    (found,) = fuseline.compile(half, threads=int(RNG.integers(1, 3))).run({"x": x}).values()
    wanted = onnxruntime.InferenceSession(whole.SerializeToString()).run(None, {"x": x.astype(np.float32)})[0]
    assert_close(np.asarray(found, np.float64), np.asarray(wanted), bits=10 if dtype == np.float16 else 7)
