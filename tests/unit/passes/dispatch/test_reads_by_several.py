"""A slice or pad with several readers is read by each of them where it lies, and stored at most once."""

from __future__ import annotations

import numpy as np
import onnx
import pytest
from numpy.typing import NDArray

import fuseline
from tests.graphs.onnx_text import onnx_model

CHANNELS = 8


def _split_block(height: int) -> tuple[onnx.ModelProto, dict[str, NDArray[np.float32]]]:
    """A convolution, split; the second half goes through a convolution with a residual; all parts are joined and
    projected."""
    rng = np.random.default_rng(height)
    weights = {
        "w0": rng.standard_normal((2 * CHANNELS, 3, 1, 1)).astype(np.float32),
        "w1": rng.standard_normal((CHANNELS, CHANNELS, 3, 3)).astype(np.float32),
        "w2": rng.standard_normal((4, 3 * CHANNELS, 1, 1)).astype(np.float32),
    }
    nodes = [
        "wide = Conv(x, w0)",
        "left, right = Split<axis = 1, num_outputs = 2>(wide)",
        "inner = Conv<pads = [1, 1, 1, 1]>(right, w1)",
        "sum = Add(inner, right)",
        "joined = Concat<axis = 1>(left, right, sum)",
        "y = Conv(joined, w2)",
    ]
    text = f"(float[1, 3, {height}, 7] x) => (y) {{ {' '.join(nodes)} }}"
    return onnx_model(text, weights, ir_version=10), {"x": rng.standard_normal((1, 3, height, 7)).astype(np.float32)}


@pytest.mark.parametrize("target", ["interpreter", "cpu"])
@pytest.mark.parametrize("fusion", ["none", "default", "aggressive"])
def test_a_split_and_joined_block(target: str, fusion: str):
    source, feeds = _split_block(9)
    compiled = fuseline.compile(source, target=target, fusion=fusion, threads=2)
    expected = fuseline.compile(source, target="interpreter", fusion="none", threads=1).run(feeds)
    np.testing.assert_allclose(compiled.run(feeds)["y"], expected["y"], rtol=1e-4, atol=1e-4)
    assert fusion == "none" or compiled.stats["copies"] == 0


@pytest.mark.parametrize("target", ["interpreter", "cpu"])
@pytest.mark.parametrize("fusion", ["none", "default", "aggressive"])
def test_a_pad_of_two_convolutions(target: str, fusion: str):
    rng = np.random.default_rng(4)
    weights = {name: rng.standard_normal((6, 5, 3, 3)).astype(np.float32) for name in ("w0", "w1")}
    feeds = {"x": rng.standard_normal((1, 5, 8, 9)).astype(np.float32)}
    nodes = [
        "a = Conv<pads = [1, 1, 1, 1]>(x, w0)",
        "b = Relu(a)",
        "c = Conv<pads = [1, 1, 1, 1]>(x, w1)",
        "d = Tanh(c)",
    ]
    source = onnx_model(f"(float[n, 5, 8, 9] x) => (b, d) {{ {' '.join(nodes)} }}", weights, ir_version=10)
    compiled = fuseline.compile(source, target=target, fusion=fusion, threads=2)
    expected = fuseline.compile(source, target="interpreter", fusion="none", threads=1).run(feeds)
    for name in ("b", "d"):
        np.testing.assert_allclose(compiled.run(feeds)[name], expected[name], rtol=1e-4, atol=1e-4)
    assert fusion == "none" or compiled.stats["fills"] == compiled.stats["copies"] == 0
