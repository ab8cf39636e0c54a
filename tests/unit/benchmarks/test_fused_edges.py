"""Programs without one fused edge each."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import onnx
from benchmarks.fused_edges import apart, ratios, slower

import fuseline
from fuseline.verify.inputs import generate
from tests.draws import RNG
from tests.graphs.onnx_text import onnx_model


def test_each_edge_apart(tmp_path: Path):
    rows, columns = (int(n) for n in RNG.integers(20, 60, 2))
    weights = RNG.standard_normal((columns, 9)).astype(np.float32)
    body = f"(float[{rows}, {columns}] x) => (float[{rows}, 9] y) {{ c = MatMul(x, w) r = Relu(c) y = Softmax(r) }}"
    onnx.save(onnx_model(body, w=weights), path := tmp_path / "rows.onnx")
    together = fuseline.compile(path, threads=1)
    found = apart(path, together, 1, most=10)
    assert found and all(program.stats["dispatches"] > together.stats["dispatches"] for program in found.values())
    feeds = generate(together.inputs)
    for program in found.values():
        np.testing.assert_allclose(program.run(feeds)["y"], together.run(feeds)["y"], rtol=1e-4, atol=1e-6)
    taken = ratios({"together": together, **found}, rounds=2)
    assert taken.keys() == {"together", *found} and taken["together"] == 1.0 and min(taken.values()) > 0
    row = slower(path, 1, most=1, rounds=1, below=0.0)
    assert (row["model"], row["edges"], row["slower"]) == ("rows", 1, {})
