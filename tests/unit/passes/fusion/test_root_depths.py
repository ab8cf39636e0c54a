"""Roots on the longest path to a node, and what it is for: of two parts of a sum the later one takes the sum in."""

from __future__ import annotations

import numpy as np
import pytest

import fuseline
from tests.draws import RNG
from tests.graphs.onnx_text import onnx_model


def _block(channels: int, size: tuple[int, int], shortcut_first: bool) -> tuple[str, dict[str, np.ndarray]]:
    """A block with a window in its shortcut: both parts of its sum are as large."""
    weights = {
        "f": RNG.normal(0, 0.1, (2 * channels, channels, 3, 3)).astype(np.float32),
        "g": RNG.normal(0, 0.1, (2 * channels, 2 * channels, 3, 3)).astype(np.float32),
        "h": RNG.normal(0, 0.1, (2 * channels, channels, 1, 1)).astype(np.float32),
    }
    deep = "a = Conv<pads=[1, 1, 1, 1], strides=[2, 2]>(x, f)  b = Relu(a)  c = Conv<pads=[1, 1, 1, 1]>(b, g)"
    parts = ["d = Conv<strides=[2, 2]>(x, h)", deep]
    text = f"(float[1, {channels}, {size[0]}, {size[1]}] x) => (float[] y) {{ "
    return text + "  ".join(parts if shortcut_first else parts[::-1]) + "  e = Add(c, d)  y = Relu(e) }", weights


@pytest.mark.parametrize("shortcut_first", [False, True])
def test_the_later_part_of_a_sum_takes_it_in(shortcut_first: bool):
    """The other one is an arm beside what the later one reads, whatever the weights are and the ops are called."""
    channels, threads = int(RNG.integers(8, 33)), int(RNG.integers(1, 3))
    height, width = (int(n) for n in RNG.integers(10, 31, 2))
    model = onnx_model(*_block(channels, (height, width), shortcut_first))
    program = fuseline.compile(model, threads=threads)
    assert program.stats["dispatches"] == 2
    x = RNG.normal(0, 1, (1, channels, height, width)).astype(np.float32)
    (found,) = program.run({"x": x}).values()
    (wanted,) = fuseline.compile(model, target="interpreter", fusion="none").run({"x": x}).values()
    np.testing.assert_allclose(found, wanted, rtol=1e-3, atol=1e-4)
