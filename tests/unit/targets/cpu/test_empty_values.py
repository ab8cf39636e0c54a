"""Sizes of zero and tensors of one element, against ONNX's reference."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from tests.graphs.onnx_text import call

from .special_values import check, model, run


def random(*shape: int) -> np.ndarray[Any, np.dtype[np.float32]]:
    return np.random.default_rng(sum(shape) + len(shape)).standard_normal(shape).astype(np.float32)


@pytest.mark.parametrize("shape", [(0, 4), (3, 0)])
@pytest.mark.parametrize(
    "op", ["ReduceSum", "ReduceMean", "ReduceMax", "ReduceMin", "ReduceProd", "ReduceL2", "ReduceLogSumExp"]
)
def test_reductions_of_nothing(op: str, shape: tuple[int, int]):
    """Sums are 0, products 1, maxima -inf, means NaN."""
    check(f"y = {op}(x, axes)", {"x": random(*shape)}, {"axes": np.array([1])})


@pytest.mark.parametrize(
    ("a", "b"), [((0, 4), (4, 5)), ((3, 0), (0, 5)), ((3, 4), (4, 0)), ((2, 0, 4), (4, 5)), ((2, 3, 0), (2, 0, 5))]
)
def test_contractions_of_nothing(a: tuple[int, ...], b: tuple[int, ...]):
    check("y = MatMul(x, z)", {"x": random(*a), "z": random(*b)})


@pytest.mark.parametrize(
    ("op", "attributes"),
    [("MaxPool", {"kernel_shape": [2, 2]}), ("AveragePool", {"kernel_shape": [2, 2]}), ("GlobalAveragePool", {})],
)
def test_windows_over_no_images(op: str, attributes: dict[str, Any]):
    feeds = {"x": random(0, 3, 6, 6)}
    found = run(model(call(op, "x", **attributes), feeds), feeds)
    assert found.shape == (0, 3, *((5, 5) if attributes else (1, 1)))


@pytest.mark.parametrize("batch", [0, 1])
def test_convolutions_of_no_images(batch: int):
    found = run(
        model("y = Conv(x, w)", {"x": random(batch, 8, 6, 6)}, {"w": random(16, 8, 3, 3)}),
        {"x": random(batch, 8, 6, 6)},
    )
    assert found.shape == (batch, 16, 4, 4)


def test_attention_without_keys():
    nodes = "s = MatMul(q, k)  p = Softmax(s)  y = MatMul(p, v)"
    feeds = {"q": random(2, 3, 8), "k": random(2, 8, 0), "v": random(2, 0, 8)}
    np.testing.assert_array_equal(run(model(nodes, feeds), feeds), np.zeros((2, 3, 8), np.float32))


@pytest.mark.parametrize("shape", [(), (1,), (1, 1, 1)])
@pytest.mark.parametrize("op", ["Exp", "ReduceSum", "Transpose", "Identity"])
def test_one_element(op: str, shape: tuple[int, ...]):
    check(f"y = {op}(x)", {"x": random(*shape)})


@pytest.mark.parametrize("op", ["ReduceMin", "ReduceMax", "ReduceSum"])
@pytest.mark.parametrize("largest", [0, 1])
def test_the_place_of_an_extreme_as_a_scalar(op: str, largest: int):
    """A scatter whose result has no dimension: nothing is innermost there."""
    nodes = f"v, i = TopK<axis = -1, largest = {largest}>(x, k)"
    nodes += f"  y = {op}<keepdims = 0>({'i, axes' if op == 'ReduceSum' else 'i'})"
    constants = {"k": np.array([1])} | ({"axes": np.array([0])} if op == "ReduceSum" else {})
    check(nodes, {"x": random(7)}, constants)


@pytest.mark.parametrize("shape", [(0, 3, 8, 8), (2, 3, 0, 8), (2, 3, 8, 0)])
def test_computed_images_of_nothing(shape: tuple[int, ...]):
    """An image that is computed, in the type that no minimal filtering takes: its boxes hold nothing."""
    weights = {"w": np.random.default_rng(3).standard_normal((4, 3, 3, 3))}
    nodes = "e = Exp(x)  y = Conv<pads = [1, 1, 1, 1]>(e, w)"
    check(nodes, {"x": random(*shape).astype(np.float64)}, weights)
