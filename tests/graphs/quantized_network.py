"""Small networks as tools quantise them: a pair of QuantizeLinear and DequantizeLinear on every value, or none."""

from __future__ import annotations

from typing import Any

import numpy as np
import onnx
from numpy.typing import NDArray

from tests.draws import RNG
from tests.graphs.onnx_builder import Builder
from tests.graphs.onnx_text import declared, onnx_model

SPREAD = 0.03
"""Scales are around this: 256 steps reach over what the networks compute."""


class Network(Builder):
    """A network while it is written; `element`: the type that values are quantised to, None for f32."""

    def __init__(self, element: Any, channels: int, *, by_channel: bool) -> None:
        super().__init__()
        self.element, self.by_channel = element, by_channel
        self.shape: tuple[int, ...] = (1, channels, int(RNG.integers(14, 23)), int(RNG.integers(14, 23)))
        self.scales: dict[str, tuple[str, ...]] = {}
        self.last = self.x = self.quantized("x", self.parameters())

    def __call__(self, op: str, *inputs: str, **attributes: Any) -> str:
        self.last = self.node(op, *inputs, **attributes)
        return self.last

    def parameters(self) -> tuple[str, ...]:
        """A scale and a zero point."""
        if self.element is None:
            return ()
        least = np.iinfo(self.element).min
        scale = self.constant(np.float32(SPREAD * RNG.uniform(0.7, 1.3)))
        return scale, self.constant(np.asarray(least + int(RNG.integers(90, 170)), self.element))

    def quantized(self, x: str, parameters: tuple[str, ...]) -> str:
        if not parameters:
            return x
        value = self("DequantizeLinear", self("QuantizeLinear", x, *parameters), *parameters)
        self.scales[value] = parameters
        return value

    def moved(self, op: str, x: str, *inputs: str, **attributes: Any) -> str:
        """An operator that moves elements; its result has the scale of what it reads."""
        return self.quantized(self(op, x, *inputs, **attributes), self.scales.get(x, ()))

    def conv(
        self, x: str, inputs: int, outputs: int, size: int = 3, *, around: int | None = None, apart: int = 1
    ) -> str:
        values = RNG.integers(-127, 128, (outputs, inputs, size, size)).astype(np.int8)
        scale = RNG.uniform(0.5, 1.5, outputs if self.by_channel else 1).astype(np.float32) / (90 * size * inputs**0.5)
        if self.element is None:
            filter_ = self.constant(values.astype(np.float32) * scale[:, None, None, None])
        else:
            scales = self.constant(scale if self.by_channel else scale[0])
            filter_ = self("DequantizeLinear", self.constant(values), scales, axis=0)
        bias = self.constant(RNG.normal(0, 0.1, outputs).astype(np.float32))
        pads = [size // 2 * apart if around is None else around] * 4
        conv = self("Conv", x, filter_, bias, pads=pads, dilations=[apart] * 2)
        return self.quantized(self("Relu", conv), self.parameters())

    def whole(self) -> onnx.ModelProto:
        """All that was written, as a model of one image."""
        text = f"({declared({'x': self.shape})}) => (float[] {self.last}) {{ {'  '.join(self.nodes)} }}"
        return onnx_model(text, self.weights, opset=20)


def assert_steps_apart(found: NDArray[np.float32], wanted: NDArray[np.float32]) -> None:
    """Few elements differ, by one step of the quantisation: a product and a sum are rounded once where numerics are not
    strict, and what lies close to the middle between two steps may become the other one, in any layer."""
    step = float(np.diff(np.unique(wanted)).min())
    np.testing.assert_allclose(found, wanted, rtol=0, atol=1.01 * step)
    assert np.mean(np.abs(found - wanted) > step / 2) < 0.01
