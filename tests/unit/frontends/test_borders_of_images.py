"""Windows over images with borders that repeat them, stored and computed, of known sizes and of any: one dispatch, in
the kernels of windows, and right for images hardly larger than the border."""

from __future__ import annotations

from typing import Any

import numpy as np
import onnxruntime
import pytest

import fuseline
from tests.draws import RNG
from tests.graphs.onnx_text import onnx_model

MODES = ("reflect", "edge", "wrap")
IMAGES = {"stored": "r = Identity(x)", "relu": "r = Relu(x)", "gated": "s = Sigmoid(x)  r = Mul(x, s)"}
WINDOWS = {
    "depthwise": "z = Conv<group = {c}, strides = [{s}, {s}]>(v, w)",
    "maximum": "z = MaxPool<kernel_shape = [{k}, {l}], strides = [{s}, {s}]>(v)",
    "mean": "z = AveragePool<kernel_shape = [{k}, {l}], strides = [{s}, {s}]>(v)",
}
LAYOUTS = {
    "nchw": ("", "y = Identity(z)", "1, {c}, {h}, {w}"),
    "nhwc": ("x = Transpose<perm = [0, 3, 1, 2]>(u)", "y = Transpose<perm = [0, 2, 3, 1]>(z)", "1, {h}, {w}, {c}"),
    "turned": ("", "y = Transpose<perm = [0, 2, 3, 1]>(z)", "1, {c}, {h}, {w}"),
}


class Drawn:
    """A bordered image of random sizes under a window."""

    def __init__(self, mode: str, image: str, window: str, layout: str) -> None:
        self.channels, self.layout = int(RNG.integers(2, 40)), layout
        self.taps = dict(zip("kl", (int(n) for n in RNG.integers(2, 5, 2)), strict=True))
        self.border = [int(n) for n in RNG.integers(1, 4, 4)]
        before, after, self.shape = LAYOUTS[layout]
        line = WINDOWS[window].format(c=self.channels, s=int(RNG.integers(1, 3)), **self.taps)
        self.body = f'{before}  {IMAGES[image]}  v = Pad<mode = "{mode}">(r, border)  {line}  {after}'
        self.input = "u" if before else "x"
        self.weights: dict[str, Any] = {"border": np.array([0, 0, *self.border[:2], 0, 0, *self.border[2:]])}
        if window == "depthwise":
            kernel = (self.channels, 1, self.taps["k"], self.taps["l"])
            self.weights["w"] = (RNG.standard_normal(kernel) / 3).astype(np.float32)

    def model(self, h: int | str, w: int | str) -> Any:
        shape = self.shape.format(c=self.channels, h=h, w=w)
        return onnx_model(f"(float[{shape}] {self.input}) => (y) {{ {self.body} }}", self.weights)

    def size(self, most: int) -> int:
        """More than the border and the window."""
        return int(RNG.choice([5, 6, int(RNG.integers(5, most))]))

    def check(self, program: Any, model: Any, h: int, w: int) -> None:
        shape = (1, h, w, self.channels) if self.layout == "nhwc" else (1, self.channels, h, w)
        feed = {self.input: RNG.standard_normal(shape).astype(np.float32)}
        session = onnxruntime.InferenceSession(model.SerializeToString(), providers=["CPUExecutionProvider"])
        (found,), wanted = program.run(feed).values(), session.run(None, feed)[0]
        np.testing.assert_allclose(found, np.asarray(wanted), rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize("layout", LAYOUTS)
@pytest.mark.parametrize("window", WINDOWS)
@pytest.mark.parametrize("image", IMAGES)
@pytest.mark.parametrize("known", [True, False])
def test_they_are_one_dispatch(known: bool, image: str, window: str, layout: str):
    drawn = Drawn(MODES[int(RNG.integers(3))], image, window, layout)
    model = drawn.model(*((int(n) for n in RNG.integers(30, 60, 2)) if known else "HW"))
    assert fuseline.compile(model, target="null").stats["dispatches"] == 1


@pytest.mark.parametrize("layout", LAYOUTS)
@pytest.mark.parametrize("image", IMAGES)
@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("known", [True, False])
def test_they_are_right_at_any_size(known: bool, mode: str, image: str, layout: str):
    window = list(WINDOWS)[int(RNG.integers(len(WINDOWS)))]
    drawn = Drawn(mode, image, window, layout)
    sizes = [(drawn.size(40), drawn.size(200)) for _ in range(1 if known else 3)]
    model = drawn.model(*(sizes[0] if known else "HW"))
    program = fuseline.compile(model, threads=int(RNG.integers(1, 3)))
    assert known or (program.stats["dispatches"] == 1 and program.stats["fallbacks"] == 0)
    for h, w in sizes:
        drawn.check(program, model, h, w)
