"""Feeds that are generated for a compiled program: sizes from bounds, from other feeds and from the model."""

from __future__ import annotations

from pathlib import Path

import numpy as np

import fuseline
from fuseline.verify.inputs import Hints
from fuseline.verify.model_feeds import complete_feeds, default_sizes, model_hints
from tests.graphs.onnx_text import onnx_model


def test_sizes_that_are_not_given(tmp_path: Path) -> None:
    """One of a batch, sixteen of a length, within bounds; what a feed has by name the others have, too."""
    text = """(float[b, s] x, float[s, b] y, float[b, t] z, float[b, u] v) => (w, e) {
        h = MatMul(x, y) w = MatMul(h, z) e = Exp(v)
    }"""
    program = fuseline.compile(onnx_model(text), target="interpreter", shapes={"s": (2, 9), "t": (20, 40)})
    assert default_sizes(program) == {"b": 1, "s": 2, "t": 20, "u": 16}
    feeds = complete_feeds(program, {"x": np.zeros((5, 3), np.float32)}, Hints(), 0)
    assert {name: array.shape for name, array in feeds.items()} == {
        "x": (5, 3),
        "y": (3, 5),
        "z": (5, 20),
        "v": (5, 16),
    }
    alike = complete_feeds(program, {}, Hints(), 0, like={"x": np.zeros((4, 7), np.float32)})
    assert alike["x"].shape == (4, 7) and alike["y"].shape == (7, 4)
    assert model_hints(Path("m.fuse")) == model_hints(Path("m.mlir")) == Hints()
    (tmp_path / "m.onnx").write_bytes(onnx_model(text).SerializeToString())
    assert model_hints(tmp_path / "m.onnx") == Hints()
