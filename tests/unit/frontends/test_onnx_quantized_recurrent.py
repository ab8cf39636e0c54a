"""LSTM with 8-bit weights: the numbers of an LSTM with the weights that they stand for, and near onnxruntime's."""

from __future__ import annotations

from typing import Any

import numpy as np
import onnx
import onnxruntime as ort
import pytest
from numpy.typing import NDArray

import fuseline
from tests.graphs.onnx_text import call, onnx_model

Array = NDArray[Any]
HIDDEN, FEATURES = 6, 5


def weights(dtype: str, directions: int, channels: bool) -> dict[str, Array]:
    """Of half the range: on machines without VNNI onnxruntime's sums of larger ones saturate."""
    rng, scales = np.random.default_rng(directions), (directions, 4 * HIDDEN) if channels else (directions,)
    info = np.iinfo(dtype)
    parts: dict[str, Array] = {"b": rng.standard_normal((directions, 8 * HIDDEN)).astype(np.float32)}
    for name, rows in (("w", FEATURES), ("r", HIDDEN)):
        parts[name] = rng.integers(info.min // 2, info.max // 2, (directions, rows, 4 * HIDDEN)).astype(dtype)
        parts[f"{name}_scale"] = (0.004 + 0.004 * rng.random(scales)).astype(np.float32)
        parts[f"{name}_zero"] = (
            np.zeros(scales) if channels else rng.integers(info.min // 2, info.max // 2, scales)
        ).astype(dtype)
    return parts


def model(node: str, constants: dict[str, Array]) -> onnx.ModelProto:
    imports = {"": 17, "com.microsoft": 1}
    return onnx_model(f"(float[7, 2, {FEATURES}] x) => (y, h, c) {{ {node} }}", constants, imports=imports)


@pytest.mark.parametrize("channels", [False, True])
@pytest.mark.parametrize("dtype", ["int8", "uint8"])
@pytest.mark.parametrize("direction", ["forward", "bidirectional"])
def test_weights_count_as_what_they_stand_for(direction: str, dtype: str, channels: bool):
    if channels and dtype == "uint8":
        pytest.skip("onnxruntime takes scales of columns with signed weights only")
    parts = weights(dtype, 1 + (direction == "bidirectional"), channels)
    names = ["x", "w", "r", "b", "", "", "", "", "w_scale", "w_zero", "r_scale", "r_zero"]
    shared: dict[str, Any] = {"direction": direction, "hidden_size": HIDDEN}
    results = ("y", "h", "c")
    given = model(call("com.microsoft.DynamicQuantizeLSTM", *names, results=results, **shared), parts)
    plain: dict[str, Array] = {"b": parts["b"]}
    for name in ("w", "r"):
        scale, zero = (parts[f"{name}_{part}"].reshape(len(parts["b"]), 1, -1) for part in ("scale", "zero"))
        plain[name] = ((parts[name].astype(np.float32) - zero) * scale).transpose(0, 2, 1).astype(np.float32)
    exact = model(call("LSTM", "x", "w", "r", "b", results=results, **shared), plain)
    feeds = {"x": np.random.default_rng(9).standard_normal((7, 2, FEATURES)).astype(np.float32)}
    found = fuseline.compile(given, threads=1)
    assert not found.record.host_ops
    outputs = found.run(feeds)
    wanted, rounded = (ort.InferenceSession(proto.SerializeToString()).run(None, feeds) for proto in (exact, given))  # pyright: ignore
    for name, expected, near in zip(("y", "h", "c"), wanted, rounded, strict=True):
        np.testing.assert_allclose(outputs[name], np.asarray(expected), rtol=1e-4, atol=1e-5)
        np.testing.assert_allclose(outputs[name], np.asarray(near), atol=0.05)
