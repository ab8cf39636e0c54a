"""What is computed of a concat of convolutions is computed behind each of them: no dispatch reads them all again."""

from __future__ import annotations

from typing import Any

import numpy as np
import onnx
import onnxruntime
import pytest

import fuseline
from tests.draws import RNG
from tests.graphs.onnx_text import onnx_model

BEHIND = {
    "scaled": "d = Mul(c, g)  e = Add(d, b)  y = Relu(e)",
    "gated": "d = Sigmoid(c)  y = Mul(c, d)",
    "a residual": "y = Add(c, r)",
    "scaled and clipped": "d = Mul(c, g)  e = Clip(d, low, high)  y = Mul(e, high)",
}
ENDS = {
    "handed over": "z = Identity(y)",
    "a convolution": "z = Conv(y, v)",
    "a mean": "z = ReduceMean<keepdims = 1>(y, at)",
}


def _model(behind: str, end: str, taps: list[int], batch: int | str, *, depthwise: bool) -> onnx.ModelProto:
    """Convolutions with windows of so many taps, each over some channels of `x`, side by side."""
    widths = [int(RNG.integers(2, 20)) for _ in taps]
    made = widths if depthwise else [int(RNG.integers(2, 24)) for _ in taps]
    total, inner = sum(made), sum(widths)
    weights: dict[str, Any] = {
        "sizes": np.array(widths), "at": np.array([2, 3]), "low": np.float32(0), "high": np.float32(6),
        "g": RNG.uniform(0.5, 2, (total, 1, 1)).astype(np.float32),
        "b": RNG.standard_normal((total, 1, 1)).astype(np.float32),
        "v": (RNG.standard_normal((5, total, 1, 1)) / np.sqrt(total)).astype(np.float32),
    }  # fmt: skip
    lines = ""
    for i, k in enumerate(taps):
        shape = (made[i], 1 if depthwise else widths[i], k, k)
        weights[f"w{i}"] = (RNG.standard_normal(shape) / (k * np.sqrt(shape[1]))).astype(np.float32)
        group = f"group = {made[i]}, " if depthwise else ""
        lines += f"k{i} = Conv<{group}pads = [{', '.join([str(k // 2)] * 4)}]>(x{i}, w{i})  "
    parts, joined = (", ".join(f"{x}{i}" for i in range(len(taps))) for x in "xk")
    text = f"""(float[{batch}, {inner}, 11, 9] x, float[{batch}, {total}, 11, 9] r) => (z) {{
        {parts} = Split<axis = 1>(x, sizes)  {lines} c = Concat<axis = 1>({joined})  {BEHIND[behind]}  {ENDS[end]} }}"""
    used = {name: array for name, array in weights.items() if f", {name})" in text or f", {name}," in text}
    return onnx_model(text, used, opset=18)


@pytest.mark.parametrize("end", ENDS)
@pytest.mark.parametrize("behind", BEHIND)
@pytest.mark.parametrize(("taps", "depthwise"), [([3, 5, 7], True), ([1, 1], False), ([3, 1], False)])
def test_it_follows_each_convolution(taps: list[int], depthwise: bool, behind: str, end: str):
    batch = int(RNG.integers(1, 4))
    model = _model(behind, end, taps, "N" if RNG.integers(2) else batch, depthwise=depthwise)
    feeds = {
        value.name: RNG.standard_normal(
            [batch, *(one.dim_value for one in value.type.tensor_type.shape.dim[1:])]
        ).astype(np.float32)
        for value in model.graph.input
    }
    session = onnxruntime.InferenceSession(model.SerializeToString(), providers=["CPUExecutionProvider"])
    wanted: Any = session.run(None, feeds)[0]
    ways: list[dict[str, Any]] = [{"threads": int(RNG.integers(1, 4))}, {"target": "interpreter"}]
    for options in ways:
        found = fuseline.compile(model, **options).run(feeds)["z"]
        np.testing.assert_allclose(found, wanted, rtol=1e-3, atol=1e-4)


def test_a_concat_of_products_is_computed_once():
    """Two dispatches of the convolutions, and one of what reads both, where there was one more."""
    model = _model("scaled", "a convolution", [1, 1], 1, depthwise=False)
    names = [one.name for one in fuseline.compile(model, target="null", threads=1).record.dispatches]
    assert len(names) <= 3 and not any("elementwise" in name for name in names)


@pytest.mark.parametrize(("batch", "channels", "axis"), [(1, 1, 1), (1, 3, 0), (2, 1, 2)])
def test_stacked_images_of_a_quantised_network(batch: int, channels: int, axis: int):
    """A stack puts a dimension in between numbers that are dequantised and quantised again: a reshape of them."""
    lines = ""
    for i in range(3):
        lines += f"c{i} = Conv(x{i}, w)  q{i} = QuantizeLinear(c{i}, s, zero)  d{i} = DequantizeLinear(q{i}, s, zero)"
        lines += f"  u{i} = Unsqueeze(d{i}, at)  e{i} = QuantizeLinear(u{i}, s, zero)"
        lines += f"  y{i} = DequantizeLinear(e{i}, s, zero)  "
    feeds = {f"x{i}": RNG.standard_normal((batch, 5, 7, 9)).astype(np.float32) for i in range(3)}
    given = ", ".join(f"float[{batch}, 5, 7, 9] {name}" for name in feeds)
    text = f"""({given}) => (z) {{ {lines} k = Concat<axis = {axis}>(y0, y1, y2)
        q = QuantizeLinear(k, t, zero)  z = DequantizeLinear(q, t, zero) }}"""
    weights = {
        "w": RNG.standard_normal((channels, 5, 1, 1)).astype(np.float32), "at": np.array([axis]),
        "s": np.float32(0.05), "t": np.float32(0.06), "zero": np.uint8(120),
    }  # fmt: skip
    model = onnx_model(text, weights, opset=20)
    program = fuseline.compile(model, target="null", threads=1)
    assert [one.name for one in program.record.dispatches] == ["000_contraction"]
    (found,) = fuseline.compile(model, threads=2).run(feeds).values()
    (wanted,) = fuseline.compile(model, target="interpreter", fusion="none").run(feeds).values()
    np.testing.assert_allclose(found, wanted, atol=0.0601)  # a step of the last scale, where sums round apart
