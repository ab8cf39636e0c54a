"""Expansion, depthwise convolution and projection, several times over: few dispatches at `aggressive`, and the values
of the interpreter at every level."""

from __future__ import annotations

import numpy as np
import onnx
import pytest

import fuseline
from tests.draws import RNG
from tests.graphs.onnx_text import onnx_model

STEPS = [(1, False), (2, False), (1, True)]
"""The stride of each bottleneck, and whether it adds what it reads."""


def bottlenecks(size: tuple[int, int], channels: int, factor: int) -> onnx.ModelProto:
    """Bottlenecks of `channels`, expanded by `factor`, each with a depthwise convolution of 3 by 3."""
    wide, lines, weights = channels * factor, list[str](), dict[str, np.ndarray]()
    value = "x"
    for i, (stride, adds) in enumerate(STEPS):
        shapes = {"e": (wide, channels, 1, 1), "d": (wide, 1, 3, 3), "p": (channels, wide, 1, 1)}
        for name, shape in shapes.items():
            scale = 1 / np.sqrt(np.prod(shape[1:]))
            weights[f"{name}{i}"] = (RNG.standard_normal(shape) * scale).astype(np.float32)
            weights[f"{name}b{i}"] = RNG.standard_normal(shape[0]).astype(np.float32)
        slides = f"<group = {wide}, strides = [{stride}, {stride}], pads = [1, 1, 1, 1]>"
        lines += [
            f"e_{i} = Conv({value}, e{i}, eb{i})  r_{i} = Clip(e_{i}, zero, six)",
            f"d_{i} = Conv {slides} (r_{i}, d{i}, db{i})  s_{i} = Clip(d_{i}, zero, six)",
            f"p_{i} = Conv(s_{i}, p{i}, pb{i})" + (f"  y_{i} = Add(p_{i}, {value})" if adds else ""),
        ]
        value = f"y_{i}" if adds else f"p_{i}"
    text = f"(float[1, {channels}, {size[0]}, {size[1]}] x) => ({value}) {{ {'  '.join(lines)} }}"
    return onnx_model(text, weights, zero=np.float32(0), six=np.float32(6))


@pytest.mark.parametrize("threads", [1, 2, 3])
def test_values_at_every_level(threads: int):
    size = (int(RNG.integers(9, 20)), int(RNG.integers(9, 20)))
    model = bottlenecks(size, int(RNG.integers(3, 20)), int(RNG.integers(2, 6)))
    x = RNG.standard_normal((1, model.graph.input[0].type.tensor_type.shape.dim[1].dim_value, *size), np.float32)
    (wanted,) = fuseline.compile(model, target="interpreter").run({"x": x}).values()
    for level in ("none", "default", "aggressive"):
        (found,) = fuseline.compile(model, threads=threads, fusion=level).run({"x": x}).values()
        np.testing.assert_allclose(found, wanted, rtol=1e-4, atol=1e-4 * np.abs(wanted).max())


def test_a_projection_joins_the_window_before_it_where_fewer_dispatches_are_wanted():
    model = bottlenecks((56, 56), 24, 6)
    counts = {
        level: fuseline.compile(model, target="null", threads=2, fusion=level).stats["dispatches"]
        for level in ("default", "aggressive")
    }
    assert counts["aggressive"] <= 2 * len(STEPS) - 1 < counts["default"]
