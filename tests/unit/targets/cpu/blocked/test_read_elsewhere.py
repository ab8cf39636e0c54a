"""What a root makes, read at other places of its own block: halves that are multiplied, parts, borders.

product(m, 2 n) ──> [:, :n] · sigmoid([:, n:])      =>      for blocks of m: all 2 n columns lie in scratch
"""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
import onnx
import pytest

import fuseline
from tests.draws import RNG, generator
from tests.graphs.onnx_text import Array, onnx_model

ort = pytest.importorskip("onnxruntime")

BEHIND = {
    "halves": "l, r = Split<axis=-1, num_outputs=2>(t) g = Sigmoid(r) y = Mul(l, g)",
    "every second": "h = Slice(t, zero, end, last, two) y = Tanh(h)",
    "parts with an argument": "c = Concat<axis=-1>(z, t) y = Tanh(c)",
    "a border": "p = Pad(t, border) y = Mul(p, p)",
    "a norm of halves": "l, r = Split<axis=-1, num_outputs=2>(t) m = Mul(l, r) y = Softmax(m)",
}

NUMBERS: Mapping[str, Array] = {
    "zero": np.array([0]), "end": np.array([1 << 40]), "last": np.array([-1]), "two": np.array([2]),
    "border": np.array([0, 0, 1, 0, 0, 2]),
}  # fmt: skip


def _model(root: str, behind: str, batch: int | str, rows: int | str, depth: int, columns: int) -> onnx.ModelProto:
    weights = {"w": RNG.standard_normal((depth, columns)), "b": RNG.standard_normal(columns)}
    product = {"product": "t = MatMul(x, w)", "with a bias": "s = MatMul(x, w) t = Add(s, b)"}[root]
    return onnx_model(
        f"(float[{batch}, {rows}, {depth}] x, float[{batch}, {rows}, {columns}] z) => (y) "
        f"{{ {product} {BEHIND[behind]} }}",
        {**NUMBERS, **{name: value.astype(np.float32) for name, value in weights.items()}},
    )


@pytest.mark.parametrize("behind", BEHIND)
@pytest.mark.parametrize("root", ["product", "with a bias"])
@pytest.mark.parametrize("symbolic", [False, True])
def test_one_dispatch_makes_what_is_read_at_other_places(root: str, behind: str, symbolic: bool):
    rng = generator(f"{root} {behind}")
    rows, depth, columns = int(rng.integers(100, 400)), int(rng.integers(9, 90)), 2 * int(rng.integers(5, 70))
    model = _model(root, behind, *(("n", "rows") if symbolic else (2, rows)), depth, columns)
    assert fuseline.compile(model, target="null", threads=1).stats["dispatches"] == 1
    feeds = {
        "x": RNG.standard_normal((2, rows, depth)).astype(np.float32),
        "z": RNG.standard_normal((2, rows, columns)).astype(np.float32),
    }
    (expected,) = ort.InferenceSession(model.SerializeToString()).run(None, feeds)
    for threads in (1, 2, 3):
        (found,) = fuseline.compile(model, threads=threads).run(feeds).values()
        np.testing.assert_allclose(found, expected, rtol=1e-4, atol=1e-4)


@pytest.mark.parametrize("channels", [(12, 20), (32, 48)])
def test_halves_of_a_depthwise_window(channels: tuple[int, int]):
    """The gate of image restoration: channels in halves behind a depthwise convolution."""
    few, many = channels
    model = onnx_model(
        f"(float[2, {few}, 19, 23] x) => (y) {{ s = Conv(x, u) t = Conv<pads=[1, 1, 1, 1], group={2 * many}>(s, w) "
        "a, b = Split<axis=1, num_outputs=2>(t) y = Mul(a, b) }",
        u=RNG.standard_normal((2 * many, few, 1, 1)).astype(np.float32),
        w=RNG.standard_normal((2 * many, 1, 3, 3)).astype(np.float32),
    )
    feeds = {"x": RNG.standard_normal((2, few, 19, 23)).astype(np.float32)}
    (expected,) = ort.InferenceSession(model.SerializeToString()).run(None, feeds)
    for threads in (1, 2):
        (found,) = fuseline.compile(model, threads=threads).run(feeds).values()
        np.testing.assert_allclose(found, expected, rtol=1e-4, atol=1e-3)
