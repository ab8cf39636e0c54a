"""Ops behind an `If` whose branches differ in shape: sizes that only the run tells, asked of moved data."""

from __future__ import annotations

import numpy as np
import onnxruntime as ort
import pytest

import fuseline
from tests.graphs.onnx_text import onnx_model

MODEL = """(float[1, 2, 9, 13] x, bool k) => (y) {
    v = If(k) <then_branch = then () => (float[] o1) { o1 = Tanh(x) },
               else_branch = other () => (float[] o2) { o2 = Transpose(x) }>
    t = Transpose<perm = [0, 3, 1, 2]>(v)
    q = Pad(t, p)
    r = Relu(q)
    r2 = Transpose<perm = [0, 1, 3, 2]>(r)
    y = MatMul(r, r2)
}"""


@pytest.mark.parametrize("fusion", ["none", "default", "aggressive"])
@pytest.mark.parametrize("taken", [True, False])
def test_moved_data_of_unknown_size_is_fused_without_a_cycle(fusion: str, taken: bool):
    model = onnx_model(MODEL, opset=13, p=np.array([2, 2, 0, 0, 0, 0, 0, 1]))
    feeds = {"x": np.random.default_rng(3).standard_normal((1, 2, 9, 13)).astype(np.float32), "k": np.array(taken)}
    got = fuseline.compile(model, threads=1, fusion=fusion).run(feeds)["y"]
    want = np.asarray(
        ort.InferenceSession(model.SerializeToString(), providers=["CPUExecutionProvider"]).run(None, feeds)[0]
    )
    np.testing.assert_allclose(got, want, rtol=1e-4, atol=1e-4)
