"""The image of a convolution that is converted or computed cheaply on the way: one dispatch, whatever the element type
of the model; and where that would take too long, a reason."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import ml_dtypes
import numpy as np
import onnx
import onnxruntime
import pytest
from numpy.typing import NDArray

import fuseline
from tests.draws import RNG
from tests.graphs.onnx_text import element_of, onnx_model
from tests.kernels import assert_close

HALVES: list[Any] = [np.float16, ml_dtypes.bfloat16]


@dataclass(frozen=True)
class Net:
    """A convolution with bias and relu of an image of `channels` and random size, then one that reads its result."""

    window: int
    stride: int
    pads: int
    channels: int = 3
    filters: int = 32

    @property
    def text(self) -> str:
        """Of elements `{t}`, over an image of `{size}`."""
        w, s, p = self.window, self.stride, self.pads
        return (
            f"({{t}}[1, {self.channels}, {{size}}] x) => ({{t}}[] y) {{{{"
            f" a = Conv<kernel_shape=[{w}, {w}], strides=[{s}, {s}], pads=[{p}, {p}, {p}, {p}]>(x, f, b)"
            f" c = Relu(a)  y = Conv(c, g) }}}}"
        )

    def model(self, size: tuple[int, int], dtype: Any, seed: int) -> onnx.ModelProto:
        """The same numbers in any element type."""
        rng = np.random.default_rng(seed)
        shapes = {"f": (self.filters, self.channels, self.window, self.window), "b": (self.filters,)}
        shapes["g"] = (8, self.filters, 1, 1)
        weights = {
            name: (rng.standard_normal(shape) / np.sqrt(np.prod(shape[1:]))).astype(HALVES[0]).astype(dtype)
            for name, shape in shapes.items()
        }
        text = self.text.format(t=element_of(dtype), size=f"{size[0]}, {size[1]}")
        return onnx_model(text, weights, opset=22, ir_version=10)


NETS = {
    "resnet": Net(7, 2, 3, filters=64),
    "mobilenet": Net(3, 2, 1),
    "squeezenet": Net(3, 2, 0, filters=64),
    "digits": Net(5, 1, 2, channels=1, filters=8),
    "patches": Net(16, 16, 0, filters=96),
    "super resolution": Net(3, 1, 1, filters=64),
    "pointwise": Net(1, 1, 0, channels=40),
}


SMALL = {
    "digits": (Net(5, 1, 2, channels=1, filters=8), 28),
    "one block": (Net(3, 1, 1, filters=16), 20),
    "few blocks": (Net(3, 1, 1, filters=24), 33),
    "steps": (Net(7, 2, 3, filters=16), 24),
}


@pytest.mark.parametrize("name", SMALL)
def test_a_small_image_is_quantised_in_the_dispatch_of_its_convolution(name: str):
    """It has few blocks, so that hardly a line is rounded twice."""
    net, size = SMALL[name]
    scale, filters = np.float32(0.05), RNG.integers(-9, 9, (net.filters, net.channels, net.window, net.window))
    steps = f"strides=[{net.stride}, {net.stride}], pads=[{net.pads}, {net.pads}, {net.pads}, {net.pads}]"
    text = f"""(float[1, {net.channels}, {size}, {size}] x) => (y) {{
        q = QuantizeLinear(x, s, z)  d = DequantizeLinear(q, s, z)  f = DequantizeLinear(w, s)
        c = Conv<{steps}>(d, f)  y = Relu(c) }}"""
    model = onnx_model(text, {"s": scale, "z": np.uint8(128), "w": filters.astype(np.int8)}, opset=19)
    x = RNG.standard_normal((1, net.channels, size, size)).astype(np.float32)
    program = fuseline.compile(model, threads=int(RNG.integers(1, 3)))
    (wanted,) = fuseline.compile(model, target="interpreter").run({"x": x}).values()
    assert_close(program.run({"x": x})["y"], wanted, bits=20)
    assert program.stats["dispatches"] == 1


@pytest.mark.parametrize("threads", (1, 2))
@pytest.mark.parametrize("window", (8, 16))
def test_patches_of_three_channels_are_quantised_on_the_way(window: int, threads: int):
    """Three neighbours are a pair and one, and sixteen pixels of a line eight pairs: .76 of the time."""
    side, filters = (window * int(n) for n in RNG.integers(160 // window, 224 // window, 2)), int(RNG.integers(6, 12))
    shape = (1, 3, *side)
    text = f"""(float[{", ".join(map(str, shape))}] x) => (y) {{
        q = QuantizeLinear(x, s, z)  d = DequantizeLinear(q, s, z)  f = DequantizeLinear(w, s)
        y = Conv<strides=[{window}, {window}]>(d, f) }}"""
    taps = RNG.integers(-9, 9, (16 * filters, 3, window, window)).astype(np.int8)
    model = onnx_model(text, {"s": np.float32(0.05), "z": np.uint8(119), "w": taps}, opset=19)
    x = RNG.standard_normal(shape).astype(np.float32)
    program = fuseline.compile(model, target="cpu", threads=threads)
    (wanted,) = fuseline.compile(model, target="interpreter", fusion="none").run({"x": x}).values()
    assert_close(program.run({"x": x})["y"], wanted, bits=19)
    assert fuseline.compile(model, target="null", threads=threads).stats["dispatches"] == 1


@pytest.mark.parametrize("dtype", HALVES)
@pytest.mark.parametrize("name", NETS)
def test_a_model_in_halves_has_as_many_dispatches(name: str, dtype: Any):
    size = (int(RNG.integers(6, 15)) * 16, int(RNG.integers(6, 15)) * 16)
    whole, half = (NETS[name].model(size, t, seed=1) for t in (np.float32, dtype))
    x = RNG.standard_normal((1, NETS[name].channels, *size)).astype(dtype)
    threads = int(RNG.integers(1, 3))  # patches take one dispatch on one thread, and two where they are few, on two
    programs = [fuseline.compile(model, threads=threads) for model in (whole, half)]
    (found,) = programs[1].run({"x": x}).values()
    wanted = onnxruntime.InferenceSession(whole.SerializeToString()).run(None, {"x": x.astype(np.float32)})[0]
    assert_close(np.asarray(found, np.float64), np.asarray(wanted), bits=6 if dtype != np.float16 else 9)
    assert programs[0].stats["dispatches"] == programs[1].stats["dispatches"]


@pytest.mark.parametrize("size", ["1, 3, 41, 57", "n, 3, 41, 57", "1, 3, h, w"])
@pytest.mark.parametrize("mode", ["constant", "reflect", "edge", "wrap"])
def test_an_image_with_a_border(mode: str, size: str):
    """Sizes that only the run knows, too. Where an element is costly to find, the image may be stored: for a reason."""
    weights: dict[str, NDArray[Any]] = {
        "pads": np.array([0, 0, 1, 2, 0, 0, 2, 1]), "f": RNG.standard_normal((24, 3, 4, 4)).astype(np.float16)
    }  # fmt: skip
    text = f'a = Pad<mode = "{mode}">(x, pads)  y = Conv<strides = [2, 2]>(a, f)'
    text = f"(float16[{size}] x) => (float16[] y) {{ {text} }}"
    program = fuseline.compile(onnx_model(text, weights, opset=19), threads=2)
    x = RNG.standard_normal((1, 3, 41, 57)).astype(np.float16)
    (found,) = program.run({"x": x}).values()
    padded = np.pad(x.astype(np.float64), [(0, 0), (0, 0), (1, 2), (2, 1)], mode=mode)  # pyright: ignore[reportCallIssue, reportArgumentType]
    windows = np.lib.stride_tricks.sliding_window_view(padded, (4, 4), axis=(2, 3))[:, :, ::2, ::2]
    assert_close(np.asarray(found, np.float64), np.einsum("ncyxij,fcij->nfyx", windows, weights["f"]), bits=9)
    missed = [one.code for one in program.decisions if one.verdict == "missed"]
    assert missed == ([] if mode == "constant" else ["unprofitable"] * (program.stats["dispatches"] - 1))


@pytest.mark.parametrize("fusion", ["none", "default", "aggressive"])
@pytest.mark.parametrize("name", ["mobilenet", "digits", "patches"])
def test_outputs_are_those_of_the_interpreter(name: str, fusion: str):
    model = NETS[name].model((48, 64), np.float16, seed=2)
    x = RNG.standard_normal((1, NETS[name].channels, 48, 64)).astype(np.float16)
    native, exact = (
        next(iter(fuseline.compile(model, target=target, fusion=fusion).run({"x": x}).values()))
        for target in ("cpu", "interpreter")
    )
    assert_close(np.asarray(native, np.float64), np.asarray(exact, np.float64), bits=9)


QUANTIZED = """(float[1, 3, 97, 113] x) => (float[] y) {
  q = QuantizeLinear(x, s, z)  d = DequantizeLinear(q, s, z)
  w = DequantizeLinear<axis = 0>(f, t, u)
  c = Conv<kernel_shape = [7, 7], strides = [2, 2], pads = [3, 3, 3, 3]>(d, w)
  r = Relu(c)  p = QuantizeLinear(r, s, z)  y = DequantizeLinear(p, s, z)
}"""


@pytest.mark.parametrize("zero", [0, 117])
def test_an_image_that_is_quantized(zero: int):
    weights: dict[str, NDArray[Any]] = {
        "s": np.array(0.02, np.float32), "z": np.array(zero, np.uint8),
        "f": RNG.integers(-64, 65, (64, 3, 7, 7)).astype(np.int8),  # onnxruntime's pairs saturate on some machines
        "t": RNG.uniform(0.002, 0.004, 64).astype(np.float32), "u": np.zeros(64, np.int8),
    }  # fmt: skip
    model = onnx_model(QUANTIZED, weights)
    x = RNG.standard_normal((1, 3, 97, 113)).astype(np.float32)
    program = fuseline.compile(model, threads=2)
    (found,) = program.run({"x": x}).values()
    wanted = onnxruntime.InferenceSession(model.SerializeToString()).run(None, {"x": x})[0]
    assert program.stats["dispatches"] == 1
    assert np.abs(found - np.asarray(wanted)).max() <= 0.0201  # one step, where a sum lies between two


def test_what_takes_much_longer_twice_is_stored():
    """Rows between two blocks are evaluated by both, and so is all of it by each block of columns."""
    text = """(float[1, 3, 40, 4000] x) => (float[] y) {
      a = Sin(x)  b = Exp(a)  c = Tanh(b)  d = Erf(c)  e = Cos(d)  y = Conv<pads = [1, 1, 1, 1]>(e, f) }"""
    model = onnx_model(text, f=RNG.standard_normal((4, 3, 3, 3)).astype(np.float32))
    program = fuseline.compile(model, threads=1)
    missed = [one for one in program.decisions if one.verdict == "missed"]
    assert program.stats["dispatches"] == 2 and [one.code for one in missed] == ["unprofitable"]
    assert missed[0].numbers["evaluation_ns"] > missed[0].numbers["saved_ns"]
