"""Attention by the cosine of queries and keys (Liu et al. 2022, "Swin Transformer V2", arXiv:2111.09883): both are read
where their product left them, divided by their length on the way."""

from __future__ import annotations

from typing import Any

import numpy as np
import onnxruntime
import pytest

import fuseline
from tests.draws import RNG
from tests.graphs.onnx_text import onnx_model

LENGTH = "{x}n = ReduceL2<keepdims = 1>({x}, last)  {x}m = Clip({x}n, least)  {x}d = Div({x}, {x}m)  "


@pytest.mark.parametrize("threads", [1, 2])
@pytest.mark.parametrize("order", ["2, 0, 3, 1, 4", "2, 3, 0, 1, 4"])
@pytest.mark.parametrize("normed", ["qk", "q", "k"])
def test_lengths_are_taken_where_the_product_is(normed: str, order: str, threads: int):
    windows, tokens, heads, width = (int(RNG.integers(*ends)) for ends in ((2, 6), (9, 50), (2, 5), (8, 33)))
    inner = heads * width
    weights: dict[str, Any] = {
        "w": (RNG.standard_normal((inner, 3 * inner)) / np.sqrt(inner)).astype(np.float32),
        "b": RNG.standard_normal(3 * inner).astype(np.float32),
        "s": np.array([windows, tokens, 3, heads, width]),
        "last": np.array([-1]),
        "least": np.float32(1e-6),
    }
    lengths = "".join(LENGTH.format(x=x) for x in normed)
    q, k = (f"{x}d" if x in normed else x for x in "qk")
    text = f"""(float[{windows}, {tokens}, {inner}] x) => (y) {{
        m = MatMul(x, w)  l = Add(m, b)  r = Reshape(l, s)  p = Transpose<perm = [{order}]>(r)
        qs, ks, vs = Split<axis = 0, num_outputs = 3>(p)  q = Squeeze(qs)  k = Squeeze(ks)  v = Squeeze(vs)  {lengths}
        t = Transpose<perm = [0, 1, 3, 2]>({k})  a = MatMul({q}, t)  f = Softmax<axis = -1>(a)  y = MatMul(f, v) }}"""
    model = onnx_model(text, weights, opset=18)
    program = fuseline.compile(model, threads=threads)
    assert (program.stats["copies"], program.stats["standalone_transposes"]) == (0, 0)
    x = RNG.standard_normal((windows, tokens, inner)).astype(np.float32)
    session = onnxruntime.InferenceSession(model.SerializeToString(), providers=["CPUExecutionProvider"])
    wanted: Any = session.run(None, {"x": x})[0]
    np.testing.assert_allclose(program.run({"x": x})["y"], wanted, rtol=1e-3, atol=1e-4)
