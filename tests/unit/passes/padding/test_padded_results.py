"""A padded result is written by the dispatch that makes its interior, on the null target and, with NumPy's numbers, on
the CPU."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import onnx
import pytest

import fuseline
from tests.graphs.onnx_text import declared, onnx_model

SHAPE, WEIGHT = (6, 11), (11, 7)


def _padded_product(
    low: tuple[int, int], high: tuple[int, int], value: float, turned: bool | None = None
) -> tuple[onnx.ModelProto, np.ndarray]:
    """`pad(relu(x @ w))`, with its other reader where it is said whether that is `turned`; and the weight."""
    rng = np.random.default_rng(17)
    w = rng.standard_normal(WEIGHT).astype(np.float32)
    pads = np.array([*low, *high], np.int64)
    nodes = "p = MatMul(x, w)  q = Relu(p)  y = Pad(q, pads, value)"
    results: dict[str, Sequence[int]] = {"y": [SHAPE[0] + low[0] + high[0], WEIGHT[1] + low[1] + high[1]]}
    if turned is not None:
        nodes += f"  r = Exp(q)  z = Transpose<perm = {[1, 0] if turned else [0, 1]}>(r)"
        results["z"] = [WEIGHT[1], SHAPE[0]] if turned else [SHAPE[0], WEIGHT[1]]
    text = f"({declared({'x': SHAPE})}) => ({declared(results)}) {{ {nodes} }}"
    return onnx_model(text, w=w, pads=pads, value=np.float32(value)), w


@pytest.mark.parametrize(("low", "high"), [((0, 0), (0, 3)), ((2, 0), (1, 0)), ((1, 2), (3, 1)), ((0, 1), (5, 0))])
def test_one_dispatch_writes_interior_and_border(low: tuple[int, int], high: tuple[int, int]):
    model, w = _padded_product(low, high, -1.5)
    assert fuseline.compile(model, target="null").stats["dispatches"] == 1
    compiled = fuseline.compile(model, target="cpu", threads=2)
    assert compiled.stats["dispatches"] == 1 and compiled.stats["copies"] == 0
    x = np.random.default_rng(18).standard_normal(SHAPE).astype(np.float32)
    expected = np.pad(np.maximum(x @ w, 0), list(zip(low, high, strict=True)), constant_values=-1.5)
    np.testing.assert_allclose(compiled.run({"x": x})["y"], expected, rtol=1e-5, atol=1e-5)


@pytest.mark.parametrize("turned", [False, True])
def test_what_is_padded_is_read_beside_it(turned: bool):
    """One dispatch with the padded result and that of the other reader, which may write it turned."""
    model, w = _padded_product((1, 2), (3, 1), 0.5, turned)
    assert fuseline.compile(model, target="null").stats["dispatches"] == 1
    compiled = fuseline.compile(model, target="cpu", threads=2)
    assert compiled.stats["dispatches"] == 1 and compiled.stats["copies"] == 0
    x = np.random.default_rng(19).standard_normal(SHAPE).astype(np.float32)
    q = np.maximum(x @ w, 0)
    found = compiled.run({"x": x})
    np.testing.assert_allclose(found["y"], np.pad(q, [(1, 3), (2, 1)], constant_values=0.5), rtol=1e-5, atol=1e-5)
    np.testing.assert_allclose(found["z"], np.exp(q.T if turned else q), rtol=1e-4)
