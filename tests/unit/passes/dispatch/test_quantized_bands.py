"""Inverted bottlenecks of 8 bits over bands of rows: the argument is quantised, with its channels last, where a band
reads it."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import onnx
import pytest

import fuseline
from tests.draws import RNG
from tests.graphs.onnx_text import onnx_model

CHEAP = "image_bytes_limit = 1000\n[costs]\nmemory_bytes_per_ns = 0.001\nstored_bytes_per_ns = 0.001\n"
"""No block of channels is small enough, and nothing is dearer than to store."""


def _chain(rows: int, columns: int, channels: tuple[int, int, int], stride: int, element: Any) -> onnx.ModelProto:
    """Quantised: the argument, a convolution 3x3 of it, a depthwise window, a product."""
    inputs, inner, outputs = channels
    shapes = {"p": (inner, inputs, 3, 3), "q": (inner, 1, 3, 3), "r": (outputs, inner, 1, 1)}
    zero = np.asarray(np.iinfo(element).min + 100, element)
    values: dict[str, Any] = {name: RNG.integers(-90, 90, shape).astype(np.int8) for name, shape in shapes.items()}
    values |= {f"{name}s": np.float32(0.01 / np.sqrt(np.prod(shape[1:]))) for name, shape in shapes.items()}
    values |= {"s": np.float32(0.03), "z": zero, "w": np.int8(0)}
    given = {"p": f"pads = [1, 1, 1, 1], strides = [{stride}, {stride}]", "q": f"pads = [1, 1, 1, 1], group = {inner}"}
    lines = ["x0 = QuantizeLinear(x, s, z)  a0 = DequantizeLinear(x0, s, z)"]
    for number, name in enumerate(shapes):
        said = f"<{given[name]}>" if name in given else ""
        lines += [
            f"w{name} = DequantizeLinear({name}, {name}s, w)  c{name} = Conv{said}(a{number}, w{name})",
            f"q{name} = QuantizeLinear(c{name}, s, z)  a{number + 1} = DequantizeLinear(q{name}, s, z)",
        ]
    lines.append("y = Transpose<perm = [0, 2, 3, 1]>(a3)")
    text = f"(float[1, {inputs}, {rows}, {columns}] x) => (float[] y) {{ {'  '.join(lines)} }}"
    return onnx_model(text, values, opset=20)


def _floats(rows: int, columns: int, channels: tuple[int, int, int], stride: int) -> onnx.ModelProto:
    """The same in f32, without quantising."""
    inputs, inner, outputs = channels
    shapes = {"p": (inner, inputs, 3, 3), "q": (inner, 1, 3, 3), "r": (outputs, inner, 1, 1)}
    lines = [
        f"a = Conv<pads = [1, 1, 1, 1], strides = [{stride}, {stride}]>(x, p)  b = Relu(a)",
        f"c = Conv<pads = [1, 1, 1, 1], group = {inner}>(b, q)  d = Relu(c)  e = Conv(d, r)",
        "y = Transpose<perm = [0, 2, 3, 1]>(e)",
    ]
    text = f"(float[1, {inputs}, {rows}, {columns}] x) => (float[] y) {{ {'  '.join(lines)} }}"
    return onnx_model(text, {name: RNG.normal(size=shape).astype(np.float32) for name, shape in shapes.items()})


@pytest.mark.parametrize("element", [np.uint8, np.int8])
@pytest.mark.parametrize("stride", [1, 2])
@pytest.mark.parametrize("threads", [1, 2])
def test_a_quantised_argument_is_read_by_bands(threads: int, stride: int, element: Any, tmp_path: Path):
    rows, columns = stride * int(RNG.integers(40, 56)), stride * int(RNG.integers(40, 56))
    channels = int(RNG.integers(2, 6)), int(RNG.integers(17, 40)), int(RNG.integers(8, 24))
    model = _chain(rows, columns, channels, stride, element)
    (tmp_path / "machine.toml").write_text(CHEAP)
    banded = fuseline.compile(model, target=f"cpu:{tmp_path}/machine.toml", threads=threads)
    assert banded.stats["dispatches"] == 1 and any("bands of" in note for note in banded.record.notes)
    x = RNG.normal(0, 1, (1, channels[0], rows, columns)).astype(np.float32)
    (found,) = banded.run({"x": x}).values()
    (wanted,) = fuseline.compile(model, target="interpreter", fusion="none").run({"x": x}).values()
    steps = np.abs(found - wanted) / 0.03
    assert steps.max() < 1.01 and np.mean(steps > 0.5) < 0.01 and len(np.unique(wanted)) > 20


@pytest.mark.parametrize("threads", [1, 2])
@pytest.mark.parametrize("element", [np.uint8, np.int8])
def test_a_stem_has_as_many_dispatches_as_in_f32(element: Any, threads: int) -> None:
    rows = 2 * int(RNG.integers(104, 116))
    channels = 3, int(RNG.integers(3, 6)) * 8, int(RNG.integers(1, 4)) * 8
    quantised = fuseline.compile(_chain(rows, rows, channels, 2, element), target="null", threads=threads)
    floats = fuseline.compile(_floats(rows, rows, channels, 2), target="null", threads=threads)
    assert quantised.stats["dispatches"] == floats.stats["dispatches"]
