"""The bytes beside a model, without reading them."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import onnx

from fuseline.interop.external_bytes import external_bytes
from tests.graphs.onnx_text import onnx_model


def test_it_counts_weights_in_other_files_with_and_without_a_length(tmp_path: Path) -> None:
    weights = {"w": np.ones((8, 8), np.float32), "v": np.ones((8, 2), np.float16).astype(np.float32)}
    model = onnx_model("(float[2, 8] x) => (y) { p = MatMul(x, w) y = MatMul(p, v) }", weights)
    assert external_bytes(model) == 0
    onnx.save(model, tmp_path / "m.onnx", save_as_external_data=True, location="m.bin", size_threshold=0)
    light = onnx.load(tmp_path / "m.onnx", load_external_data=False)
    assert external_bytes(light) == 4 * (64 + 16)
    for tensor in light.graph.initializer:
        kept = [entry for entry in tensor.external_data if entry.key != "length"]
        del tensor.external_data[:]
        tensor.external_data.extend(kept)
    assert external_bytes(light) == 4 * (64 + 16)
