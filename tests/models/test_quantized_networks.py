"""Small networks as tools quantise them, a pair of QuantizeLinear and DequantizeLinear on every value: they form as
many dispatches as in f32, and values are the interpreter's."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import onnx
import pytest
from numpy.typing import NDArray

import fuseline
from tests.draws import RNG
from tests.graphs.onnx_builder import Builder
from tests.graphs.onnx_text import declared, onnx_model

pytestmark = pytest.mark.sampled(2)

SPREAD = 0.03
"""Scales are around this: 256 steps reach over what the networks compute."""


class Network(Builder):
    """A network while it is written; `element`: the type that values are quantised to, None for f32."""

    def __init__(self, element: Any, channels: int, *, by_channel: bool) -> None:
        super().__init__()
        self.element, self.by_channel = element, by_channel
        self.shape = (1, channels, int(RNG.integers(14, 23)), int(RNG.integers(14, 23)))
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


def _upsampled(n: Network) -> None:
    scales = n.constant(np.array([1, 1, 2, 2], np.float32))
    n.conv(n.moved("Resize", n.conv(n.x, n.shape[1], 24), "", scales, mode="nearest"), 24, 16)


def _stretched(n: Network) -> None:
    size = n.constant(np.array([1, 24, n.shape[2] + 9, n.shape[3] + 4], np.int64))
    way = {"mode": "nearest", "coordinate_transformation_mode": "asymmetric", "nearest_mode": "floor"}
    n.conv(n.moved("Resize", n.conv(n.x, n.shape[1], 24), "", "", size, **way), 24, 16, 1)


def _bordered(mode: str) -> Callable[[Network], None]:
    def build(n: Network) -> None:
        border = n.constant(np.array([0, 0, 1, 1, 0, 0, 1, 1], np.int64))
        first = n.conv(n.moved("Pad", n.x, border, mode=mode), n.shape[1], 24, around=0)
        n.conv(n.moved("Pad", first, border, mode=mode), 24, 16, around=0)

    return build


def _dense(n: Network) -> None:
    joined, channels = n.x, n.shape[1]
    for _ in range(3):
        layer = n.conv(joined, channels, 12)
        joined, channels = n.quantized(n("Concat", joined, layer, axis=1), n.parameters()), channels + 12
    n.conv(joined, channels, 16, 1)


def _skipped(n: Network) -> None:
    high = n.conv(n.x, n.shape[1], 16)
    low = n.conv(n("MaxPool", high, kernel_shape=[2, 2], strides=[2, 2], ceil_mode=1), 16, 32)
    size = n.constant(np.array([1, 32, *n.shape[2:]], np.int64))
    way = {"mode": "nearest", "coordinate_transformation_mode": "asymmetric", "nearest_mode": "floor"}
    joined = n.quantized(n("Concat", high, n.moved("Resize", low, "", "", size, **way), axis=1), n.parameters())
    n.conv(joined, 48, 16)


def _fire(n: Network) -> None:
    few = n.conv(n.x, n.shape[1], 8, 1)
    parts = [n.conv(few, 8, 16, size) for size in (1, 3)]
    joined = n.quantized(n("Concat", *parts, axis=1), n.parameters())
    n.conv(n.moved("MaxPool", joined, kernel_shape=[3, 3], strides=[2, 2]), 32, 16, 1)


def _attended(n: Network) -> None:
    rows = n.moved("Reshape", n.conv(n.x, n.shape[1], 32), n.constant(np.array([2, 2, 8, -1], np.int64)))
    first, second = (n.moved("Gather", rows, n.constant(np.array(i, np.int64)), axis=0) for i in range(2))
    scores = n("MatMul", n.moved("Transpose", first, perm=[0, 2, 1]), second)
    n.quantized(scores, n.parameters())


def _branches(*windows: tuple[int, int]) -> Callable[[Network], None]:
    """Branches over the argument itself, each with a window of its own: a size and how far its taps are apart."""

    def build(n: Network) -> None:
        parts = [n.conv(n.x, n.shape[1], 12, size, apart=apart) for size, apart in windows]
        n.conv(n.quantized(n("Concat", *parts, axis=1), n.parameters()), 12 * len(parts), 16, 1)

    return build


def _residual(n: Network) -> None:
    high = n.conv(n.conv(n.x, n.shape[1], 24), 24, n.shape[1])
    n.quantized(n("Add", n.x, high), n.parameters())


def _chain(n: Network) -> None:
    n.conv(n.conv(n.conv(n.x, n.shape[1], 32), 32, 24, 1), 24, 16)


NETWORKS: dict[str, Callable[[Network], None]] = {
    "dense": _dense, "edge": _bordered("edge"), "skipped": _skipped, "fire": _fire, "attended": _attended,
    "upsampled": _upsampled, "reflect": _bordered("reflect"), "stretched": _stretched, "residual": _residual,
    "chain": _chain, "inception": _branches((1, 1), (3, 1), (5, 1)),
    "dilated": _branches((1, 1), (3, 2), (3, 4)),
}  # fmt: skip
OFTEN = {"skipped": 2, "attended": 2}
"""Dispatches more than in f32: the argument's, and the upsampling, or operands of a product, where reading them in
place would take longer."""

AGGRESSIVE = {"dense": 1, "skipped": 1}
"""The same at `aggressive`: an argument that a later concat reads as well, and the image of a window, are stored."""

QUICK = 5
"""The first of them run by default, the others are slow."""


@pytest.mark.parametrize("element", [np.uint8, np.int8])
@pytest.mark.parametrize("by_channel", [False, True])
@pytest.mark.parametrize(
    "name", [pytest.param(name, marks=() if i < QUICK else pytest.mark.slow) for i, name in enumerate(NETWORKS)]
)
def test_integers_form_as_many_dispatches_as_floats(name: str, by_channel: bool, element: Any):
    """But for the argument, which may be quantised in a dispatch of its own where that is on record: by the price, or
    for several readers. At `aggressive` it never is."""
    channels, threads = 2 * int(RNG.integers(8, 13)), int(RNG.integers(1, 3))
    wide, narrow = (Network(kind, channels, by_channel=by_channel) for kind in (None, element))
    narrow.shape = wide.shape
    NETWORKS[name](wide)
    NETWORKS[name](narrow)
    program = fuseline.compile(narrow.whole(), threads=threads)
    floats = fuseline.compile(wide.whole(), threads=threads)
    assert program.stats["dispatches"] <= floats.stats["dispatches"] + OFTEN.get(name, 1)
    if program.stats["dispatches"] > floats.stats["dispatches"]:
        missed = [word for word in program.record.decisions if word.verdict == "missed"]
        assert {word.code for word in missed if word.rule == "read-in-place"} & {"unprofitable", "multi-use"}
    aggressive = fuseline.compile(narrow.whole(), threads=threads, fusion="aggressive")
    floats = fuseline.compile(wide.whole(), threads=threads, fusion="aggressive")
    assert aggressive.stats["dispatches"] <= floats.stats["dispatches"] + AGGRESSIVE.get(name, 0)
    x = RNG.normal(0, 1, narrow.shape).astype(np.float32)
    (wanted,) = fuseline.compile(narrow.whole(), target="interpreter", fusion="none").run({"x": x}).values()
    (strict,) = fuseline.compile(narrow.whole(), threads=threads, numerics="strict").run({"x": x}).values()
    np.testing.assert_array_equal(strict, wanted)
    for compiled in (program, aggressive):
        (found,) = compiled.run({"x": x}).values()
        _assert_steps_apart(found, wanted)
    assert len(np.unique(wanted)) > 4


def _assert_steps_apart(found: NDArray[np.float32], wanted: NDArray[np.float32]) -> None:
    """Few elements differ, by one step of the quantisation: a product and a sum are rounded once where numerics are not
    strict, and what lies close to the middle between two steps may become the other one, in any layer."""
    step = float(np.diff(np.unique(wanted)).min())
    np.testing.assert_allclose(found, wanted, rtol=0, atol=1.01 * step)
    assert np.mean(np.abs(found - wanted) > step / 2) < 0.01
