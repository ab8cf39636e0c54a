"""Channels of a convolution, or columns of a product, that are told apart in groups behind it: one dispatch."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import onnxruntime
import pytest

import fuseline
from tests.draws import RNG
from tests.graphs.onnx_text import onnx_model

CONVOLUTIONS = {
    "padded": "a = Conv<pads = [1, 1, 1, 1]>(x, w)",
    "strided": "a = Conv<pads = [1, 1, 1, 1], strides = [2, 2]>(x, w)",
}
READERS = {
    "group": "y = Mul(c, g)",
    "channel": "y = Add(c, k)",
    "both": "d = Mul(c, g)  y = Add(d, k)",
    "joined again": "d = Mul(c, g)  e = Reshape(d, j)  y = Relu(e)",
}


@pytest.mark.parametrize("batch", [1, 3, "N"])
@pytest.mark.parametrize("convolution", CONVOLUTIONS)
@pytest.mark.parametrize("reader", READERS)
def test_operands_per_group(reader: str, convolution: str, batch: int | str, tmp_path: Path):
    channels, groups, each = int(RNG.integers(3, 40)), int(RNG.integers(2, 5)), 16 * int(RNG.integers(1, 3))
    h, w = (2 * int(n) for n in RNG.integers(5, 14, 2))
    pixels = (h, w) if convolution == "padded" else (h // 2, w // 2)
    text = f"{CONVOLUTIONS[convolution]}  c = Reshape(a, s)  {READERS[reader]}"
    constants: dict[str, Any] = {
        "w": (RNG.standard_normal((groups * each, channels, 3, 3)) / np.sqrt(9 * channels)).astype(np.float32),
        "s": np.array([-1, groups, each, *pixels]),
        "j": np.array([-1, groups * each, *pixels]),
        "k": RNG.standard_normal((1, 1, each, 1, 1)).astype(np.float32),
    }
    used = {name: array for name, array in constants.items() if f", {name})" in text}
    given = f"(float[{batch}, {channels}, {h}, {w}] x, float[1, {groups}, 1, 1, 1] g) => (y)"
    model = onnx_model(f"{given} {{ {text} }}", used)
    threads = int(RNG.integers(1, 4))
    fuseline.compile(model, threads=threads, weights=str(RNG.choice(["packed", "original"]))).save(tmp_path / "m.fuse")
    program = fuseline.load(tmp_path / "m.fuse")
    assert program.stats["dispatches"] == 1
    session = onnxruntime.InferenceSession(model.SerializeToString(), providers=["CPUExecutionProvider"])
    for count in (batch,) if isinstance(batch, int) else (1, 4):
        feeds = {
            "x": RNG.standard_normal((count, channels, h, w)).astype(np.float32),
            "g": RNG.standard_normal((1, groups, 1, 1, 1)).astype(np.float32),
        }
        wanted: Any = session.run(None, feeds)[0]
        np.testing.assert_allclose(program.run(feeds)["y"], wanted, rtol=1e-3, atol=1e-3)
