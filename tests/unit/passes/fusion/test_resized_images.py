"""Interpolated images: each step is stored where what reads it would evaluate the step before again and again."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import fuseline
from tests.draws import RNG
from tests.graphs.onnx_text import onnx_model

RESIZE = '  r = Resize<mode = "{mode}", coordinate_transformation_mode = "half_pixel">({image}, "", "", sizes)'
CONV = "  y = Conv<pads = [1, 1, 1, 1]>(r, k)"
PRODUCED = "  c = Conv(x, p)  a = Relu(c)"


def _resized(mode: str, *, produced: bool, read: bool) -> tuple[Any, np.ndarray]:
    """An image, of a convolution (`produced`), resized, and perhaps read by another convolution."""
    channels, size = 8 * int(RNG.integers(2, 5)), RNG.integers(9, 16, 2)
    larger = [1, channels, *(int(one + RNG.integers(5, 15)) for one in size)]
    weights: dict[str, Any] = {"sizes": np.array(larger, np.int64)}
    if read:
        weights["k"] = (RNG.standard_normal((16, channels, 3, 3)) / 16).astype(np.float32)
    if produced:
        weights["p"] = (RNG.standard_normal((channels, channels, 1, 1)) / 4).astype(np.float32)
    image = f"float[1, {channels}, {size[0]}, {size[1]}] x"
    resize = RESIZE.format(mode=mode, image="a" if produced else "x")
    body = (PRODUCED if produced else "") + (resize + CONV if read else resize.replace("r =", "y ="))
    return onnx_model(f"({image}) => (float[] y) {{ {body} }}", weights), RNG.standard_normal(
        (1, channels, *size)
    ).astype(np.float32)


@pytest.mark.parametrize("read", [False, True])
@pytest.mark.parametrize("produced", [False, True])
@pytest.mark.parametrize("mode", ["linear", "cubic"])
def test_no_two_steps_are_one_dispatch(mode: str, produced: bool, read: bool):
    """Neither as rows, which no kernel would keep, nor in the convolution that reads them."""
    model, x = _resized(mode, produced=produced, read=read)
    dispatches = fuseline.compile(model, target="null", threads=1).record.dispatches
    steps = [sum(member.kind == "gather" for member in d.members) for d in dispatches]
    assert sum(steps) == 2 and max(steps) == 1
    (found,) = fuseline.compile(model, threads=int(RNG.integers(1, 3))).run({"x": x}).values()
    (wanted,) = fuseline.compile(model, target="interpreter", fusion="none").run({"x": x}).values()
    np.testing.assert_allclose(found, wanted, rtol=1e-4, atol=1e-4)
