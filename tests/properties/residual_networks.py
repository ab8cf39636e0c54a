"""Residual networks of any size: blocks whose sums may take their operands' places, alike up to extents."""

from __future__ import annotations

import numpy as np
import onnx

from tests.graphs.onnx_text import onnx_model
from tests.properties.near_duplicates import Layers

STAGES, BLOCKS = 3, 2


def residual_network(
    rng: np.random.Generator, size: int, channels: int, batch: int | str = 1, stages: int = STAGES
) -> onnx.ModelProto:
    """Images `x` of `channels` channels of `size` by `size` pixels; stages of half the pixels a side and twice the
    channels each."""
    layers, x, wide = Layers(rng), "x", channels
    for stage in range(stages):
        if stage:
            x, wide = layers.op("Relu", _convolution(layers, x, (wide, 2 * wide), 1, stride=2)), 2 * wide
        for _ in range(BLOCKS):
            x = _block(layers, x, wide, wide // 4 + 3)
    text = f"(float[{batch}, {channels}, {size}, {size}] x) => ({x}) {{ {chr(10).join(layers.lines)} }}"
    return onnx_model(text, layers.weights)


def _block(layers: Layers, x: str, wide: int, narrow: int) -> str:
    """To fewer channels, a window of 3 by 3, back and the sum with where it began."""
    y = layers.op("Relu", _convolution(layers, x, (wide, narrow), 1))
    y = layers.op("Relu", _convolution(layers, y, (narrow, narrow), 3))
    return layers.op("Relu", layers.swapped("Add", _convolution(layers, y, (narrow, wide), 1), x))


def _convolution(layers: Layers, x: str, channels: tuple[int, int], taps: int, stride: int = 1) -> str:
    inside, outside = channels
    filter_ = layers.rng.standard_normal((outside, inside, taps, taps)) / np.sqrt(inside * taps * taps)
    bias = layers.rng.standard_normal(outside)
    operands = [layers.weight(array.astype(np.float32)) for array in (filter_, bias)]
    return layers.op(f"Conv<pads = {[taps // 2] * 4}, strides = {[stride] * 2}>", x, *operands)
