"""Keys and values of quantised attention are widened where a block of queries packs them: once per workgroup."""

from __future__ import annotations

from typing import Any

import numpy as np
import onnx
import pytest

import fuseline
from tests.draws import RNG
from tests.graphs.onnx_text import onnx_model


def _attention(heads: int, rows: int, width: int) -> onnx.ModelProto:
    """Of integers of 8 bits: queries, keys and values side by side, as one product makes them."""
    names = {"scale": np.float32(0.03), "half": np.float32(1 / 255), "zero": np.uint8(131), "none": np.uint8(0)}
    text = f"""(uint8[{rows}, {3 * heads * width}] x) => (y) {{
        r = Reshape(x, parts)  t = Transpose<perm=[1, 2, 0, 3]>(r)
        a, b, c = Split<axis=0, num_outputs=3>(t)
        q = DequantizeLinear(a, scale, zero)  k = DequantizeLinear(b, scale, zero)  v = DequantizeLinear(c, scale, zero)
        kt = Transpose<perm=[0, 1, 3, 2]>(k)  s = MatMul(q, kt)
        sq = QuantizeLinear(s, wide, zero)  sd = DequantizeLinear(sq, wide, zero)  p = Softmax(sd)
        pq = QuantizeLinear(p, half, none)  pd = DequantizeLinear(pq, half, none)
        m = MatMul(pd, v)  y = QuantizeLinear(m, scale, zero) }}"""
    return onnx_model(
        text, {**names, "wide": np.float32(0.2), "parts": np.array([rows, 3, heads, width], np.int64)}, opset=19
    )


@pytest.mark.parametrize("threads", (1, 2))
@pytest.mark.parametrize("rows", (64, 197, 250))
def test_attention_in_bytes_is_one_dispatch(rows: int, threads: int):
    heads, width = int(RNG.integers(2, 5)), 16 * int(RNG.integers(2, 5))
    rows += int(RNG.integers(0, 5))
    model = _attention(heads, rows, width)
    x = RNG.integers(100, 160, (rows, 3 * heads * width)).astype(np.uint8)
    found, wanted = (
        next(iter(fuseline.compile(model, cache=False, **options).run({"x": x}).values()))
        for options in _programs(threads)
    )
    off = np.abs(found.astype(np.int32) - wanted)
    assert off.max() <= 1 and (off != 0).mean() < 0.01
    assert fuseline.compile(model, target="null", threads=threads).stats["dispatches"] == 1


def _programs(threads: int) -> list[dict[str, Any]]:
    return [{"threads": threads}, {"target": "interpreter", "fusion": "none"}]
