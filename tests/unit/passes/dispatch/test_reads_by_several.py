"""A slice or pad with several readers is read by each of them where it lies, and stored at most once."""

from __future__ import annotations

import numpy as np
import onnx
import pytest
from numpy.typing import NDArray
from onnx import helper

import fuseline
from tests.unit.frontends.test_onnx_reading import FLOAT, model

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
        helper.make_node("Conv", ["x", "w0"], ["wide"]),
        helper.make_node("Split", ["wide"], ["left", "right"], axis=1, num_outputs=2),
        helper.make_node("Conv", ["right", "w1"], ["inner"], pads=[1, 1, 1, 1]),
        helper.make_node("Add", ["inner", "right"], ["sum"]),
        helper.make_node("Concat", ["left", "right", "sum"], ["joined"], axis=1),
        helper.make_node("Conv", ["joined", "w2"], ["y"]),
    ]
    return model(nodes, {"x": (FLOAT, (1, 3, height, 7))}, ["y"], weights), {
        "x": rng.standard_normal((1, 3, height, 7)).astype(np.float32)
    }


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
        helper.make_node("Conv", ["x", "w0"], ["a"], pads=[1, 1, 1, 1]),
        helper.make_node("Relu", ["a"], ["b"]),
        helper.make_node("Conv", ["x", "w1"], ["c"], pads=[1, 1, 1, 1]),
        helper.make_node("Tanh", ["c"], ["d"]),
    ]
    source = model(nodes, {"x": (FLOAT, ("n", 5, 8, 9))}, ["b", "d"], weights)
    compiled = fuseline.compile(source, target=target, fusion=fusion, threads=2)
    expected = fuseline.compile(source, target="interpreter", fusion="none", threads=1).run(feeds)
    for name in ("b", "d"):
        np.testing.assert_allclose(compiled.run(feeds)[name], expected[name], rtol=1e-4, atol=1e-4)
    assert fusion == "none" or compiled.stats["fills"] == compiled.stats["copies"] == 0
