"""An argument of 16-bit floats that several products and others read: as many dispatches as over f32."""

from __future__ import annotations

from typing import Any

import ml_dtypes
import numpy as np
import onnxruntime
import pytest

import fuseline
from tests.draws import RNG
from tests.graphs.onnx_text import element_of, onnx_model
from tests.kernels import assert_close

NETS = {
    "projections": "q = MatMul(x, a)  k = MatMul(x, b)  r = Add(q, k)  y = Tanh(r)",
    "a residual": "q = MatMul(x, a)  k = MatMul(x, b)  g = Sigmoid(k)  r = Mul(q, g)  y = Add(x, r)",
    "rows": "m = ReduceMean<keepdims=1>(x, last)  q = MatMul(x, a)  k = MatMul(x, b)  s = Sub(q, m)  y = Add(s, k)",
}


@pytest.mark.parametrize("dtype", [np.float16, ml_dtypes.bfloat16])
@pytest.mark.parametrize("name", NETS)
def test_as_many_dispatches_as_in_floats(name: str, dtype: Any):
    rows, width = int(RNG.integers(3, 70)), int(RNG.integers(2, 50))
    weights = {n: RNG.integers(-2, 3, (width, width)).astype(np.float32) / 8 for n in ("a", "b")}
    last = {"last": np.array([-1])} if name == "rows" else {}
    whole, half = (
        onnx_model(
            f"({element_of(t)}[{rows}, {width}] x) => ({element_of(t)}[] y) {{ {NETS[name]} }}",
            {n: array.astype(t) for n, array in weights.items()} | last,
            opset=22,
            ir_version=10,
        )
        for t in (np.float32, dtype)
    )
    x = (RNG.integers(-8, 9, (rows, width)) / 8).astype(dtype)
    programs = [fuseline.compile(model) for model in (whole, half)]
    (found,) = programs[1].run({"x": x}).values()
    wanted = onnxruntime.InferenceSession(whole.SerializeToString()).run(None, {"x": x.astype(np.float32)})[0]
    assert_close(np.asarray(found, np.float64), np.asarray(wanted), bits=6 if dtype != np.float16 else 9)
    assert programs[1].stats["dispatches"] <= programs[0].stats["dispatches"]
