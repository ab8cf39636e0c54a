"""A slice of what a root makes is computed alone: one dispatch, and the numbers of onnxruntime, at sizes that are known
and at others."""

from __future__ import annotations

from typing import Any

import numpy as np
import onnxruntime
import pytest

import fuseline
from tests.draws import RNG
from tests.graphs.onnx_text import onnx_model

IMAGES = [(2, 6, 11, 12), (1, 6, 9, 8)]
STEPS = ("[1, 1]", "[2, 2]", "[3, 1]")


def _weights(*shape: int) -> Any:
    return (RNG.standard_normal(shape) / np.sqrt(np.prod(shape[1:]))).astype(np.float32)


def _compiled(text: str, feeds: list[Any], weights: dict[str, Any], target: str = "cpu", threads: int = 2) -> int:
    """How many dispatches a model of one input is, whose results are onnxruntime's."""
    model = onnx_model(text, weights)
    program = fuseline.compile(model, target=target, threads=threads, cache=False)
    session = onnxruntime.InferenceSession(model.SerializeToString(), providers=["CPUExecutionProvider"])
    for x in feeds:
        (expected,) = session.run(None, {"x": x})
        np.testing.assert_allclose(program.run({"x": x})["y"], np.asarray(expected), atol=1e-5, rtol=1e-5)
    return program.stats["dispatches"]


@pytest.mark.parametrize("strides", STEPS)
@pytest.mark.parametrize(("first", "last"), [([1, 1], [99, -2]), ([0, 2], [-1, 99]), ([1, 0], [99, 99])])
@pytest.mark.parametrize(("group", "made"), [(1, 9), (6, 6), (2, 4)])
def test_a_part_of_a_convolution(strides: str, first: list[int], last: list[int], group: int, made: int):
    text = f"""(float[{{}}] x) => (y) {{{{ c = Conv<pads = [1, 2, 1, 2], strides = {strides}, group = {group}>(x, w, b)
        r = HardSwish(c)  s = Slice(r, first, last, axes)  y = Neg(s) }}}}"""
    weights = {"w": _weights(made, 6 // group, 3, 3), "b": _weights(made), "axes": np.array([2, 3])}
    weights |= {"first": np.array(first), "last": np.array(last)}
    for shape in IMAGES:
        dims = ", ".join(map(str, shape))
        assert _compiled(text.format(dims), [RNG.standard_normal(shape).astype(np.float32)], weights) == 1


@pytest.mark.parametrize(("taps", "dilation"), [(3, 1), (3, 4), (2, 5)])
@pytest.mark.parametrize("length", ["T", "23"])
def test_a_causal_convolution(taps: int, dilation: int, length: str):
    """Padded on both sides, and cut on one; nothing is left of nothing."""
    pad = (taps - 1) * dilation
    text = f"""(float[1, 8, {length}] x) => (y) {{ c = Conv<pads = [{pad}, {pad}], dilations = [{dilation}]>(x, w)
        s = Slice(c, first, last, axes)  y = Relu(s) }}"""
    weights = {"first": np.array([0]), "last": np.array([-pad]), "axes": np.array([2]), "w": _weights(8, 8, taps)}
    lengths = [23, 1, 5, 40, 0] if length == "T" else [23]
    feeds = [RNG.standard_normal((1, 8, size)).astype(np.float32) for size in lengths]
    assert _compiled(text, feeds, weights) == 1


@pytest.mark.parametrize("rows", ["M", "20"])
def test_rows_and_columns_of_products(rows: str):
    """Through a chain of them; of rows that nobody knows, the columns only."""
    first, last = ([3], [23]) if rows == "M" else ([2, 3], [19, 23])
    text = f"""(float[{rows}, 16] x) => (y) {{ c = MatMul(x, w)  r = Relu(c)  d = MatMul(r, v)
        s = Slice(d, first, last, axes)  y = Tanh(s) }}"""
    weights = {"w": _weights(16, 24), "v": _weights(24, 32), "first": np.array(first), "last": np.array(last)}
    axes = np.array([1] if rows == "M" else [0, 1])
    sizes = [20, 1, 7] if rows == "M" else [20]
    feeds = [RNG.standard_normal((size, 16)).astype(np.float32) for size in sizes]
    assert _compiled(text, feeds, {**weights, "axes": axes}) == 1


def test_what_is_left_may_not_come_to_less_than_nothing():
    """Without its borders, an image of unknown size may be smaller than the window: it is cut behind the window."""
    text = """(float[N, 3, H, W] x) => (y) { c = Conv(x, w)  s = Slice(c, first, last, axes)  y = Relu(s) }"""
    weights = {"first": np.array([1, 1]), "last": np.array([-1, -1]), "axes": np.array([2, 3])}
    feeds = [RNG.standard_normal((2, 3, *size)).astype(np.float32) for size in ((5, 6), (9, 7))]
    assert _compiled(text, feeds, {**weights, "w": _weights(8, 3, 3, 3)}) == 2


def test_a_pooling_and_its_borders():
    text = """(float[1, 6, 11, 12] x) => (y) { c = MaxPool<kernel_shape = [3, 3], pads = [1, 1, 1, 1]>(x)
        s = Slice(c, first, last, axes)  y = Exp(s) }"""
    weights = {"first": np.array([1, 2]), "last": np.array([-2, 99]), "axes": np.array([2, 3])}
    assert _compiled(text, [RNG.standard_normal((1, 6, 11, 12)).astype(np.float32)], weights) == 1
