"""Depthwise convolutions and max poolings of quantised images, as QDQ models have them, against onnxruntime: known and
symbolic sizes, one to three threads."""

from __future__ import annotations

import numpy as np
import onnx
import onnxruntime
import pytest
from onnx import numpy_helper, parser

import fuseline
from tests.draws import RNG

CHANNELS, SCALE = 20, 0.0625
WINDOWS = {
    "depthwise": f"Conv<group={CHANNELS}, kernel_shape=[3,3], pads=[1,1,1,1], strides=[2,1]>(d, w)",
    "maximum": "MaxPool<kernel_shape=[3,2], pads=[1,0,2,1], strides=[1,2]>(d)",
    "maximum of the same size": 'MaxPool<kernel_shape=[3,3], auto_pad="SAME_LOWER", strides=[2,2]>(d)',
}


def _model(window: str, sizes: str) -> onnx.ModelProto:
    weights = "" if "(d, w)" not in window else "w"
    model = parser.parse_model(f"""<ir_version: 8, opset_import: ["": 17]>
        g (float[2,{CHANNELS},{sizes}] x) => (float[2,{CHANNELS},OH,OW] y)
        <float s = {{{SCALE}}}, int8 z = {{{RNG.integers(-128, 128)}}}> {{
          q = QuantizeLinear(x, s, z)
          d = DequantizeLinear(q, s, z)
          y = {window}
        }}""")
    if weights:
        values = RNG.standard_normal((CHANNELS, 1, 3, 3)).astype(np.float32)
        model.graph.initializer.append(numpy_helper.from_array(values, "w"))
    return model


@pytest.mark.parametrize("symbolic", [False, True])
@pytest.mark.parametrize("name", WINDOWS)
def test_windows_of_quantised_images(name: str, symbolic: bool):
    sizes = [int(size) for size in RNG.integers(3, 30, 2)]
    model = _model(WINDOWS[name], "H,W" if symbolic else ",".join(map(str, sizes)))
    x = (RNG.integers(-300, 300, (2, CHANNELS, *sizes)) * SCALE).astype(np.float32)  # no ties: multiples of the scale
    session = onnxruntime.InferenceSession(model.SerializeToString(), providers=["CPUExecutionProvider"])
    expected = np.asarray(session.run(None, {"x": x})[0])
    for threads in (1, 2, 3):
        found = fuseline.compile(model, target="cpu", threads=threads).run({"x": x})["y"]
        if name == "depthwise":
            np.testing.assert_allclose(found, expected, rtol=1e-4, atol=1e-3)
        else:
            np.testing.assert_array_equal(found, expected)


@pytest.mark.parametrize("symbolic", [False, True])
@pytest.mark.parametrize("element", ["uint8", "int8"])
def test_two_windows_over_one_quantised_image_whose_channels_come_first(element: str, symbolic: bool):
    """The caller's integers are read as they lie, by a convolution and a pooling in one dispatch. Both make their
    results channel by channel again, whatever order their loops have in between."""
    batch, height, width = (int(RNG.integers(low, high)) for low, high in ((1, 3), (8, 40), (8, 40)))
    sizes = "H,W" if symbolic else f"{height},{width}"
    model = parser.parse_model(f"""<ir_version: 8, opset_import: ["": 17]>
        g ({element}[{batch},{CHANNELS},{sizes}] q)
        => (float[{batch},{CHANNELS},H1,W1] y, float[{batch},{CHANNELS},H2,W2] m)
        <float s = {{{SCALE}}}, {element} z = {{{RNG.integers(0, 128)}}}> {{
          d = DequantizeLinear(q, s, z)
          c = Conv<group={CHANNELS}, pads=[1,1,1,1]>(d, w)
          y = Relu(c)
          m = MaxPool<kernel_shape=[2,2], strides=[2,2]>(d)
        }}""")
    values = RNG.standard_normal((CHANNELS, 1, 3, 3)).astype(np.float32)
    model.graph.initializer.append(numpy_helper.from_array(values, "w"))
    info = np.iinfo(element)
    q = RNG.integers(info.min, info.max + 1, (batch, CHANNELS, height, width)).astype(element)
    session = onnxruntime.InferenceSession(model.SerializeToString(), providers=["CPUExecutionProvider"])
    expected = session.run(None, {"q": q})
    for threads in (1, 2, 3):
        program = fuseline.compile(model, target="cpu", threads=threads)
        found = program.run({"q": q})
        np.testing.assert_allclose(found["y"], np.asarray(expected[0]), rtol=1e-4, atol=1e-3)
        np.testing.assert_array_equal(found["m"], np.asarray(expected[1]))
        assert program.stats["dispatches"] <= 2
        assert symbolic or "loop-nest" not in program.stats["families"]
