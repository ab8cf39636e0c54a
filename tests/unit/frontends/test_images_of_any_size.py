"""Windows over images whose height and width only the run knows: as many dispatches as where they are known, in the
kernels of windows, and right for sizes below the window, and beyond what a strip has."""

from __future__ import annotations

from typing import Any

import numpy as np
import onnxruntime
import pytest

import fuseline
from tests.draws import RNG
from tests.graphs.onnx_text import onnx_model

IMAGES = {
    "stored": "v = Identity(x)",
    "gated": "s = Sigmoid(x)  v = Mul(x, s)",
    "normalised": "m = Mul(x, scale)  b = Add(m, scale)  v = Relu(b)",
    "cut": "r = Slice(x, one, end, axes)  v = Relu(r)",
}
WINDOWS = {
    "depthwise": "z = Conv<group = {c}, kernel_shape = [{k}, {l}], {at}, dilations = [{d}, {d}]>(v, w)",
    "maximum": "z = MaxPool<kernel_shape = [{k}, {l}], {at}, dilations = [{d}, {d}]>(v)",
    "mean": "z = AveragePool<kernel_shape = [{k}, {l}], {at}>(v)",
}
LAYOUTS = {
    "nchw": ("y = Identity(z)", "{n}, {c}, {h}, {w}"),
    "nhwc": ("y = Transpose<perm = [0, 2, 3, 1]>(z)", "{n}, {h}, {w}, {c}"),
    "turned": ("y = Transpose<perm = [0, 2, 3, 1]>(z)", "{n}, {c}, {h}, {w}"),
}
"""Channels first, last, and an image with channels first of which the result has them last."""

LOWEST = np.finfo(np.float32).min


class Drawn:
    """A window of random sizes over an image of any."""

    def __init__(self, image: str, window: str, layout: str, stride: int = 1, dilation: int = 1) -> None:
        self.layout, self.channels = layout, int(RNG.integers(2, 40))
        self.window = int(RNG.integers(2, 6)), int(RNG.integers(2, 6))
        self.reach = [(taps - 1) * dilation + 1 for taps in self.window]
        self.pads = [int(RNG.integers(0, taps)) for taps in (*self.window, *self.window)]
        at = f"pads = {self.pads}, strides = [{stride}, {stride}]"
        taps = dict(zip("kl", self.window, strict=True))
        line = WINDOWS[window].format(c=self.channels, at=at, d=dilation, **taps)
        turned = "x = Transpose<perm = [0, 3, 1, 2]>(u)" if layout == "nhwc" else ""
        self.body = f"{turned}  {IMAGES[image]}  {line}  {LAYOUTS[layout][0]}"
        self.input = "u" if turned else "x"
        weights = {
            "w": (RNG.standard_normal((self.channels, 1, *self.window)) / 3).astype(np.float32),
            "scale": RNG.uniform(0.5, 2.0, (1, self.channels, 1, 1)).astype(np.float32),
            "one": np.array([1, 1]), "end": np.array([2**40, 2**40]), "axes": np.array([2, 3]),
        }  # fmt: skip
        self.weights = {name: array for name, array in weights.items() if name in self.body.replace("w = ", "")}

    def model(self, **sizes: Any) -> Any:
        shape = LAYOUTS[self.layout][1].format(c=self.channels, **sizes)
        used = {name: array for name, array in self.weights.items() if f", {name}" in self.body}
        return onnx_model(f"(float[{shape}] {self.input}) => (y) {{ {self.body} }}", used)

    def size(self, at: int, most: int) -> int:
        """Of height or width, such that the window fits the image with its padding, and what is cut."""
        least = max(2, self.reach[at] - self.pads[at] - self.pads[at + 2] + 1)
        return int(RNG.choice([least, least + 1, int(RNG.integers(least, most))]))

    def feed(self, *sizes: int) -> Any:
        n, h, w = sizes
        shape = (n, h, w, self.channels) if self.layout == "nhwc" else (n, self.channels, h, w)
        return {self.input: RNG.standard_normal(shape).astype(np.float32)}


@pytest.mark.parametrize("layout", LAYOUTS)
@pytest.mark.parametrize("window", WINDOWS)
@pytest.mark.parametrize("image", IMAGES)
def test_as_many_dispatches_as_of_known_sizes(image: str, window: str, layout: str):
    """The strips of an image of any size are as good as those of the sizes that are assumed."""
    drawn = Drawn(image, window, layout)
    models = drawn.model(n=1, h="H", w="W"), drawn.model(n=1, h=128, w=128)
    assert [fuseline.compile(model, target="null").stats["dispatches"] for model in models] == [1, 1]


@pytest.mark.parametrize("layout", LAYOUTS)
@pytest.mark.parametrize(("stride", "dilation"), [(1, 1), (2, 1), (1, 2)])
@pytest.mark.parametrize("window", WINDOWS)
def test_they_are_right_at_any_size(window: str, stride: int, dilation: int, layout: str):
    image = list(IMAGES)[int(RNG.integers(len(IMAGES)))]
    drawn = Drawn(image, window, layout, stride, 1 if window == "mean" else dilation)
    known = [{}, {"h": int(RNG.integers(30, 60))}, {"w": int(RNG.integers(30, 60))}][int(RNG.integers(3))]
    model = drawn.model(**{"n": "N", "h": "H", "w": "W"} | known)
    program = fuseline.compile(model, threads=int(RNG.integers(1, 3)))
    assert program.stats["dispatches"] == 1 and program.stats["fallbacks"] == 0
    session = onnxruntime.InferenceSession(model.SerializeToString(), providers=["CPUExecutionProvider"])
    for most in (12, 70, 200):
        h, w = (known.get(name, drawn.size(at, most)) for at, name in enumerate("hw"))
        feed = drawn.feed(int(RNG.integers(1, 3)), h, w)
        (found,), wanted = program.run(feed).values(), session.run(None, feed)[0]
        # the maximum of padding alone is infinitely low here, the lowest number there
        found, wanted = (np.maximum(np.asarray(one), LOWEST) for one in (found, wanted))
        np.testing.assert_allclose(found, wanted, rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize("layout", LAYOUTS)
@pytest.mark.parametrize("window", WINDOWS)
def test_lines_longer_than_a_strip(window: str, layout: str):
    drawn = Drawn("gated", window, layout, int(RNG.integers(1, 3)))
    model = drawn.model(n=1, h="H", w="W")
    program = fuseline.compile(model, threads=2)
    session = onnxruntime.InferenceSession(model.SerializeToString(), providers=["CPUExecutionProvider"])
    feed = drawn.feed(1, drawn.size(0, 30), int(RNG.integers(2500, 3000)))
    (found,), wanted = program.run(feed).values(), session.run(None, feed)[0]
    found, wanted = (np.maximum(np.asarray(one), LOWEST) for one in (found, wanted))
    np.testing.assert_allclose(found, wanted, rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize("border", ["", 'v = Pad<mode = "edge">(x, border)'])
@pytest.mark.parametrize("known", [True, False])
@pytest.mark.parametrize("channels", [1, 5, 16])
def test_gradients_are_windows(channels: int, known: bool, border: str):
    """Two windows over one image whose channels come first are a dispatch each: in blocks of points both would go with
    the loop nest. Not so those over one channel, whose pixels lie innermost in the result, too."""
    sizes = [int(n) for n in RNG.integers(20, 90, 2)]
    pads, image = ("", "v") if border else ("pads = [1, 1, 1, 1], ", "x")
    down, across = (f"{y} = Conv<{pads}group = {channels}>({image}, {w})" for y, w in (("d", "w"), ("e", "u")))
    text = f"{border} {down} {across}  f = Mul(d, d)  g = Mul(e, e)  h = Add(f, g)  y = Sqrt(h)"
    shape = f"1, {channels}, {', '.join(map(str, sizes)) if known else 'H, W'}"
    weights: dict[str, Any] = {
        name: RNG.standard_normal((channels, 1, 3, 3)).astype(np.float32) for name in ("w", "u")
    }  # fmt: skip
    weights |= {"border": np.array([0, 0, 1, 1, 0, 0, 1, 1])} if border else {}
    model = onnx_model(f"(float[{shape}] x) => (y) {{ {text} }}", weights)
    program = fuseline.compile(model, threads=int(RNG.integers(1, 3)))
    together = channels == 1 and known and not border
    assert program.stats["fallbacks"] == 0 and (program.stats["dispatches"] == 1 or not together)
    feed = {"x": RNG.standard_normal((1, channels, *sizes)).astype(np.float32)}
    session = onnxruntime.InferenceSession(model.SerializeToString(), providers=["CPUExecutionProvider"])
    (found,), wanted = program.run(feed).values(), session.run(None, feed)[0]
    np.testing.assert_allclose(found, np.asarray(wanted), rtol=1e-3, atol=1e-4)


@pytest.mark.parametrize("groups", [2, 4])
@pytest.mark.parametrize("stride", [1, 2])
@pytest.mark.parametrize("layout", ["nchw", "nhwc"])
def test_narrow_groups_of_any_size(layout: str, stride: int, groups: int):
    each, taps = int(RNG.choice([4, 8, 16])), int(RNG.integers(2, 5))
    before, after = ("x = Transpose<perm = [0, 3, 1, 2]>(u)  ", "  y = Transpose<perm = [0, 2, 3, 1]>(z)")
    before, after = (before, after) if layout == "nhwc" else ("x = Identity(u)  ", "  y = Identity(z)")
    line = f"z = Conv<group = {groups}, strides = [{stride}, {stride}], pads = [1, 1, 1, 1]>(x, w)"
    c = groups * each
    shape = f"1, H, W, {c}" if layout == "nhwc" else f"1, {c}, H, W"
    weights = {"w": (RNG.standard_normal((c, each, taps, taps)) / taps).astype(np.float32)}
    model = onnx_model(f"(float[{shape}] u) => (y) {{ {before}{line}{after} }}", weights)
    program = fuseline.compile(model, threads=int(RNG.integers(1, 3)))
    session = onnxruntime.InferenceSession(model.SerializeToString(), providers=["CPUExecutionProvider"])
    assert program.stats["dispatches"] == 1 and program.stats["fallbacks"] == 0
    for most in (6, 50, 150):
        sizes = [int(n) for n in RNG.integers(3, most, 2)]
        feed = {"u": RNG.standard_normal((1, *sizes, c) if layout == "nhwc" else (1, c, *sizes)).astype(np.float32)}
        (found,), wanted = program.run(feed).values(), session.run(None, feed)[0]
        np.testing.assert_allclose(found, np.asarray(wanted), rtol=1e-4, atol=1e-4)
