"""ConvTranspose whose phases have different numbers of taps: a convolution for each, one dispatch with what follows."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, cast

import numpy as np
import onnx
import pytest
from numpy.typing import NDArray

import fuseline
from fuseline.analysis.structured import HEAVY, StructuredOp, is_generic, kind
from tests.draws import RNG
from tests.graphs.onnx_text import attributes_of, onnx_model
from tests.native import assert_same, native
from tests.one_node import by_onnxruntime

from .test_onnx_reading import read

Array = NDArray[Any]
Shape = Sequence[int | str]

CASES: Mapping[str, tuple[Shape, tuple[int, ...], dict[str, Any]]] = {
    "even": ((1, 5, 17, 18), (3, 3), {"strides": [2, 2], "pads": [1, 1, 1, 1], "output_padding": [1, 1]}),
    "odd": ((2, 5, 17, 18), (3, 3), {"strides": [2, 2], "pads": [1, 1, 1, 1]}),
    "all": ((1, 5, 16, 19), (3, 3), {"strides": [2, 2]}),
    "cut": ((1, 5, 18, 17), (3, 3), {"strides": [2, 2], "pads": [2, 0, 1, 2]}),
    "one axis strides": ((1, 5, 17, 19), (3, 5), {"strides": [1, 3], "pads": [1, 2, 0, 1]}),
    "thirds": ((1, 5, 17, 17), (4, 4), {"strides": [3, 3], "pads": [1, 1, 0, 0]}),
    "a line": ((2, 5, 65), (3,), {"strides": [2], "pads": [1, 1], "output_padding": [1]}),
    "a volume": ((1, 3, 9, 10, 11), (3, 3, 3), {"strides": [2, 2, 2], "pads": [1] * 6, "output_padding": [1] * 3}),
    "of any size": ((1, 5, "h", "w"), (3, 3), {"strides": [2, 2], "pads": [1] * 4, "output_padding": [1, 1]}),
    "of any size, odd": (("n", 5, "h", "w"), (3, 3), {"strides": [2, 2], "pads": [1] * 4}),
}


def _model(shape: Shape, kernel: Sequence[int], attributes: Mapping[str, Any], then: str = "") -> onnx.ModelProto:
    """A transposed convolution to 20 channels with a bias, and what is done `then` with `t`, to `y`."""
    w, b = (RNG.standard_normal(sizes).astype(np.float32) for sizes in ((cast("int", shape[1]), 20, *kernel), (20,)))
    first = f"{'t' if then else 'y'} = ConvTranspose{attributes_of(attributes)}(x, w, b)"
    return onnx_model(f"(float[{', '.join(map(str, shape))}] x) => (y) {{ {first} {then} }}", w=w, b=b)


def _image(shape: Shape) -> Array:
    sizes = [size if isinstance(size, int) else {"n": 2, "h": 18, "w": 17}[size] for size in shape]
    return RNG.standard_normal(sizes).astype(np.float32)


@pytest.mark.parametrize("then", ["", "y = Relu(t)"])
@pytest.mark.parametrize("name", CASES)
def test_each_phase_has_its_own_taps(name: str, then: str):
    shape, kernel, attributes = CASES[name]
    model, x = _model(shape, kernel, attributes, then), _image(shape)
    assert_same(native(model, {"x": x}), by_onnxruntime(model, {"x": x}), rtol=1e-4, atol=1e-4)


def _roots(model: onnx.ModelProto) -> list[int]:
    """How many taps each root sums up."""
    found = [StructuredOp(op) for op in read(model)[0].walk() if is_generic(op) and kind(op) in HEAVY]
    return sorted(len(one.reduction) for one in found)


def test_no_tap_is_a_zero():
    shape, kernel, attributes = CASES["even"]
    assert len(_roots(_model(shape, kernel, attributes))) == 4
    assert len(_roots(_model(shape, (4, 4), {"strides": [2, 2]}))) == 1  # all have two


@pytest.mark.parametrize("name", ["even", "a line", "a volume", "of any size"])
def test_phases_and_what_follows_are_one_dispatch(name: str):
    shape, kernel, attributes = CASES[name]
    for then in ("", "y = Relu(t)", "u = Sigmoid(t) y = Mul(t, u)"):
        program = fuseline.compile(_model(shape, kernel, attributes, then), target="null", threads=1)
        assert program.stats["dispatches"] == 1, then


@pytest.mark.parametrize("what", ["a number per channel", "an image"])
def test_what_else_is_read_is_cut_as_the_phases_are(what: str):
    shape, kernel, attributes = CASES["even"]
    sizes = (20, 1, 1) if what == "a number per channel" else (1, 20, 34, 36)
    z, x = RNG.standard_normal(sizes).astype(np.float32), _image(shape)
    w = RNG.standard_normal((5, 20, *kernel)).astype(np.float32)
    node = f"t = ConvTranspose{attributes_of(attributes)}(x, w)"
    model = onnx_model(
        f"(float{list(shape)} x, float{list(sizes)} z) => (y) {{ {node} u = Add(z, t) y = Tanh(u) }}", w=w
    )
    feeds = {"x": x, "z": z}
    assert_same(native(model, feeds), by_onnxruntime(model, feeds), rtol=1e-4, atol=1e-4)
    assert fuseline.compile(model, target="null", threads=1).stats["dispatches"] == 1


@pytest.mark.parametrize("filters", ["given", "dequantised"])
def test_a_filter_that_is_computed(filters: str):
    shape, kernel, attributes = CASES["even"]
    node = f"y = ConvTranspose{attributes_of(attributes)}(x, w)"
    x, v = _image(shape), RNG.integers(-128, 128, (5, 20, *kernel)).astype(np.int8)
    if filters == "given":
        w = RNG.standard_normal(v.shape).astype(np.float32)
        model, feeds = (
            onnx_model(f"(float{list(shape)} x, float{list(v.shape)} w) => (y) {{ {node} }}"),
            {"x": x, "w": w},
        )
    else:
        made = "w = DequantizeLinear(v, s)"
        model, feeds = (
            onnx_model(f"(float{list(shape)} x) => (y) {{ {made} {node} }}", v=v, s=np.float32(0.01)),
            {"x": x},
        )
    assert_same(native(model, feeds), by_onnxruntime(model, feeds), rtol=1e-4, atol=1e-4)


def test_an_infinity_meets_no_zero():
    shape, kernel, attributes = CASES["even"]
    model, x = _model(shape, kernel, attributes), _image(shape)
    x[0, 1, 3, 4] = np.inf
    found = native(model, {"x": x})[0][0]
    np.testing.assert_array_equal(np.isfinite(found), np.isfinite(by_onnxruntime(model, {"x": x})[0]))
