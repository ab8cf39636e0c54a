"""Rows that are put back into an image behind a chain of products: the last dispatch writes the image."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import fuseline
from tests.draws import RNG
from tests.graphs.onnx_text import element_of, onnx_model

ATTENTION = """
  q0 = MatMul(x, wq)  q1 = Reshape(q0, heads)  q = Transpose<perm = [0, 2, 1, 3]>(q1)
  kt = Transpose<perm = [0, 1, 3, 2]>(q)
  s = MatMul(q, kt)  p = Softmax<axis = -1>(s)  o0 = MatMul(p, q)  o1 = Transpose<perm = [0, 2, 1, 3]>(o0)
  o2 = Reshape(o1, rows)  o = MatMul(o2, wq)  r = Add(o, x)"""
PERCEPTRON = """
  l = LayerNormalization<axis = -1>(r, g)  m0 = MatMul(l, w1)  m1 = Relu(m0)  m2 = MatMul(m1, w2)  t = Add(m2, r)"""
IMAGE = """
  u = LayerNormalization<axis = -1>(t, g)  v = MatMul(u, w)  v2 = Reshape(v, patches)
  i = Transpose<perm = [0, 5, 1, 3, 2, 4]>(v2)  y = Reshape(i, image)"""
ROWS = """
  u = LayerNormalization<axis = -1>(t, g)  v = MatMul(u, w)  y = Relu(v)"""


def _model(dtype: Any, grid: tuple[int, int], count: int, *, image: bool = True) -> tuple[Any, Any]:
    """Attention, a perceptron, and patches of 2 x 2 pixels; without `image`, in rows as they are."""
    heads, width, channels = int(RNG.integers(2, 4)), 8, int(RNG.integers(3, 7))
    c, (h, w) = heads * width, grid
    sizes = {
        "heads": (count, h * w, heads, width),
        "rows": (count, h * w, c),
        "patches": (count, h, w, 2, 2, channels),
        "image": (count, channels, 2 * h, 2 * w),
    }
    weights: dict[str, Any] = {name: np.array(size, np.int64) for name, size in sizes.items()}
    for name, shape in {"wq": (c, c), "w1": (c, 2 * c), "w2": (2 * c, c), "w": (c, 4 * channels), "g": (c,)}.items():
        weights[name] = (RNG.standard_normal(shape) / 4).astype(dtype)
    body = ATTENTION + PERCEPTRON + (IMAGE if image else ROWS)
    text = f"({element_of(dtype)}[{count}, {h * w}, {c}] x) => ({element_of(dtype)}[] y) {{ {body} }}"
    return onnx_model(text, weights), RNG.standard_normal((count, h * w, c)).astype(dtype)


@pytest.mark.parametrize("count", [1, 3])
@pytest.mark.parametrize("grid", [(4, 6), (5, 3), (1, 7)])
@pytest.mark.parametrize("dtype", [np.float32, np.float16, np.float64])
def test_the_chain_behind_attention_writes_the_image(dtype: Any, grid: tuple[int, int], count: int) -> None:
    """The residual connection comes from before attention, where it lies in memory."""
    state = RNG.bit_generator.state
    model, x = _model(dtype, grid, count)
    RNG.bit_generator.state = state
    rows, _ = _model(dtype, grid, count, image=False)
    made, plain = (fuseline.compile(one, target="null", threads=1).record.dispatches for one in (model, rows))
    assert len(made) == len(plain)
    assert not any(member.kind == "transpose" for member in made[-1].members)
    (found,) = fuseline.compile(model, threads=int(RNG.integers(1, 3))).run({"x": x}).values()
    (wanted,) = fuseline.compile(model, target="interpreter", fusion="none").run({"x": x}).values()
    limit = 2e-2 if dtype is np.float16 else 1e-4
    np.testing.assert_allclose(found, wanted, rtol=limit, atol=limit * abs(wanted).max())


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_the_reader_of_an_image_is_part_of_the_chain(dtype: Any) -> None:
    """It takes the transpose into its own maps; the rows are split for it all the same."""
    model, x = _model(dtype, (4, 5), 2)
    model.graph.node[-1].output[0] = "before"
    model.graph.node.add(op_type="Sigmoid", input=["before"], output=["y"])
    made = fuseline.compile(model, target="null", threads=1).record.dispatches
    assert len(made) == 3
    (found,) = fuseline.compile(model, threads=int(RNG.integers(1, 3))).run({"x": x}).values()
    (wanted,) = fuseline.compile(model, target="interpreter", fusion="none").run({"x": x}).values()
    np.testing.assert_allclose(found, wanted, rtol=1e-4, atol=1e-4)


def test_lines_that_threads_cannot_share_stay_rows() -> None:
    """Of 5 x 7 rows one of two threads would have 20; of 6 x 7 both have 21."""
    for grid, apart in (((5, 7), True), ((6, 7), False)):
        model, _ = _model(np.float32, grid, 1)
        alone = len(fuseline.compile(model, target="null", threads=1).record.dispatches)
        two = len(fuseline.compile(model, target="null", threads=2).record.dispatches)
        assert two == alone + apart
