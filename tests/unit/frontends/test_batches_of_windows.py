"""Windows over images that are computed, of a batch that only the run knows: one dispatch, as where it is known."""

from __future__ import annotations

from typing import Any

import numpy as np
import onnxruntime
import pytest

import fuseline
from tests.draws import RNG
from tests.graphs.onnx_text import onnx_model

IMAGES = {
    "gated": "s = Sigmoid(x)  v = Mul(x, s)",
    "shuffled": "g = Reshape(x, groups)  t = Transpose<perm = [0, 2, 1, 3, 4]>(g)  u = Reshape(t, whole)  v = Relu(u)",
}
WINDOWS = {
    "depthwise": "y = Conv<group = {c}, pads = [{p}, {p}, {p}, {p}], strides = [{s}, {s}]>(v, w)",
    "pooled": "y = MaxPool<kernel_shape = [{k}, {k}], pads = [{p}, {p}, {p}, {p}], strides = [{s}, {s}]>(v)",
}


@pytest.mark.parametrize("window", WINDOWS)
@pytest.mark.parametrize("image", IMAGES)
@pytest.mark.parametrize(("taps", "step"), [(3, 1), (3, 2), (5, 1)])
def test_a_batch_of_any_size_is_one_dispatch(image: str, window: str, taps: int, step: int):
    c, h, w = 2 * int(RNG.integers(2, 50)), int(RNG.integers(7, 30)), int(RNG.integers(7, 30))
    weights: dict[str, Any] = {
        "groups": np.array([-1, 2, c // 2, h, w]),
        "whole": np.array([-1, c, h, w]),
        "w": (RNG.standard_normal((c, 1, taps, taps)) / taps).astype(np.float32),
    }
    line = WINDOWS[window].format(c=c, p=taps // 2, s=step, k=taps)
    text = f"(float[N, {c}, {h}, {w}] x) => (y) {{ {IMAGES[image]}  {line} }}"
    model = onnx_model(text, {name: array for name, array in weights.items() if name in f"{IMAGES[image]} {line}"})
    program = fuseline.compile(model, threads=int(RNG.integers(1, 4)))
    assert program.stats["dispatches"] == 1
    session = onnxruntime.InferenceSession(model.SerializeToString(), providers=["CPUExecutionProvider"])
    for batch in (1, int(RNG.integers(2, 9))):
        x = RNG.standard_normal((batch, c, h, w)).astype(np.float32)
        (found,) = program.run({"x": x}).values()
        wanted: Any = session.run(None, {"x": x})[0]
        np.testing.assert_allclose(found, wanted, rtol=1e-4, atol=1e-5)
