"""Concats of what one dispatch makes, some of it in another order: each part is written where it lies in the result."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import fuseline
from tests.draws import RNG
from tests.graphs.onnx_text import onnx_model

WINDOW = "b = Conv<group = {c}, pads = [1, 1, 1, 1]>({read}, k2)"
JOINED = {
    "product first": "y = Concat<axis = 1>(a, b)",
    "window first": "y = Concat<axis = 1>(b, a)",
    "product twice": "y = Concat<axis = 1>(a, b, a)",
    "window of the computed": "y = Concat<axis = 1>(a, b)",
}


def _ghost(name: str, channels: int, size: tuple[int, int], type_: str) -> Any:
    """A pointwise convolution beside a depthwise one of its result."""
    computed = name == "window of the computed"
    window = ("  r = Relu(a)" if computed else "") + WINDOW.format(c=channels, read="r" if computed else "a")
    image = f"{type_}[1, {channels}, {size[0]}, {size[1]}] x"
    text = f"({image}) => ({type_}[] y) {{ a = Conv(x, k1) {window} {JOINED[name]} }}"
    dtype = np.float16 if type_ == "float16" else np.float32
    shapes = {"k1": (channels, channels, 1, 1), "k2": (channels, 1, 3, 3)}
    return onnx_model(text, {key: (RNG.standard_normal(shape) / 8).astype(dtype) for key, shape in shapes.items()})


@pytest.mark.parametrize("type_", ["float", "float16"])
@pytest.mark.parametrize("name", JOINED)
def test_no_root_is_left_to_the_loop_nest(name: str, type_: str):
    """However the parts are ordered, and whether or not others read them."""
    channels, size = 8 * int(RNG.integers(2, 7)), (int(RNG.integers(6, 15)), int(RNG.integers(6, 15)))
    model = _ghost(name, channels, size, type_)
    x = RNG.standard_normal((1, channels, *size)).astype(np.float16 if type_ == "float16" else np.float32)
    program = fuseline.compile(model, threads=int(RNG.integers(1, 3)))
    roots = [d.family for d in program.record.dispatches if {m.kind for m in d.members} & {"contraction", "depthwise"}]
    assert roots and "loop-nest" not in roots
    (found,) = program.run({"x": x}).values()
    (wanted,) = fuseline.compile(model, target="interpreter", fusion="none").run({"x": x}).values()
    np.testing.assert_allclose(found, wanted, rtol=2e-3, atol=2e-2 if type_ == "float16" else 1e-4)
