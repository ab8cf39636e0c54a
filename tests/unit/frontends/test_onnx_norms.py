"""Norms of images, per channel and per group, in the forms that models have them, against NumPy in float64."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import onnx
import pytest
from numpy.typing import NDArray
from xdsl.dialects import linalg

from fuseline.analysis.structured import StructuredOp
from fuseline.evaluation import evaluate_module
from fuseline.frontends.onnx import read_onnx
from fuseline.ir.context import new_context
from tests.graphs.onnx_text import declared, onnx_model

Array = NDArray[Any]
EPSILON = 1e-3


def normalised(x: Array, groups: int) -> Array:
    """Moments of each group of channels over all its elements."""
    parts = x.astype(np.float64).reshape(x.shape[0], groups, -1)
    mean, variance = parts.mean(axis=2, keepdims=True), parts.var(axis=2, keepdims=True)
    return ((parts - mean) / np.sqrt(variance + EPSILON)).reshape(x.shape)


def per_channel(t: Array, rank: int) -> Array:
    return t.reshape(-1, *[1] * (rank - 2))


def model(nodes: str, inputs: dict[str, Sequence[int | str]], constants: dict[str, Array]) -> onnx.ModelProto:
    return onnx_model(f"({declared(inputs)}) => (y) {{ {nodes} }}", constants, opset=21)


def run(made: onnx.ModelProto, *feeds: Array) -> tuple[Array, list[StructuredOp]]:
    """The result on the interpreter, and the reductions of the program."""
    ctx = new_context()
    module = read_onnx(made, ctx)
    module.verify()
    assert not ctx.records.host_ops
    reductions = [
        StructuredOp(op) for op in module.walk() if isinstance(op, linalg.ops.GenericOp) and StructuredOp(op).reduction
    ]
    return evaluate_module(module, list(feeds), ctx.resources)[0], reductions


def arrays(*shapes: Sequence[int], seed: int = 3) -> list[Array]:
    rng = np.random.default_rng(seed)
    return [(rng.standard_normal(shape) + 2).astype(np.float32) for shape in shapes]


@pytest.mark.parametrize("shape", [(2, 6, 5, 7), (1, 6, 9), (3, 6, 2, 3, 5)])
@pytest.mark.parametrize("groups", [1, 2, 3, 6])
def test_group_normalization(shape: tuple[int, ...], groups: int):
    x, scale, bias = arrays(shape, (6,), (6,))
    node = f"y = GroupNormalization<num_groups = {groups}, epsilon = {EPSILON}>(x, s, b)"
    found, _ = run(model(node, {"x": shape, "b": [6]}, {"s": scale}), x, bias)
    np.testing.assert_allclose(
        found, normalised(x, groups) * per_channel(scale, x.ndim) + per_channel(bias, x.ndim), rtol=1e-4, atol=1e-4
    )


@pytest.mark.parametrize("shape", [(2, 6, 5, 7), (1, 6, 9)])
def test_instance_normalization(shape: tuple[int, ...]):
    x, scale, bias = arrays(shape, (6,), (6,))
    node = f"y = InstanceNormalization<epsilon = {EPSILON}>(x, s, b)"
    found, _ = run(model(node, {"x": shape, "s": [6]}, {"b": bias}), x, scale)
    np.testing.assert_allclose(
        found, normalised(x, 6) * per_channel(scale, x.ndim) + per_channel(bias, x.ndim), rtol=1e-4, atol=1e-4
    )


def exported(
    shape: Sequence[int | str], groups: int, target: Sequence[int], constants: dict[str, Array]
) -> onnx.ModelProto:
    """As exporters write a group norm."""
    nodes = (
        "a = Reshape(x, parts)  "
        f"n = InstanceNormalization<epsilon = {EPSILON}>(a, s, b)  "
        "whole = Shape(x)  "
        "y = Reshape(n, whole)"
    )
    inputs: dict[str, Sequence[int | str]] = {
        "x": shape,
        **{name: [groups] for name in ("s", "b") if name not in constants},
    }
    return model(nodes, inputs, {"parts": np.array(target, np.int64), **constants})


@pytest.mark.parametrize("symbolic", [False, True])
@pytest.mark.parametrize("constant", [False, True])
def test_an_instance_norm_of_joined_channels_sums_channel_by_channel(symbolic: bool, constant: bool):
    shape, groups = (2, 6, 5, 7), 3
    x, scale, bias = arrays(shape, (groups,), (groups,))
    constants = {"s": scale, "b": bias} if constant else {}
    feeds = [x] if constant else [x, scale, bias]
    found, reductions = run(
        exported((2, 6, "h", "w") if symbolic else shape, groups, [0, groups, -1], constants), *feeds
    )
    expected = normalised(x, groups) * per_channel(np.repeat(scale, 2), 4) + per_channel(np.repeat(bias, 2), 4)
    np.testing.assert_allclose(found, expected, rtol=1e-4, atol=1e-4)
    assert [view.rank for view in reductions] == [4, 4, 3, 3]


@pytest.mark.parametrize("groups", [1, 2, 3, 6])
def test_channels_of_a_group_may_lie_far_apart(groups: int):
    """The variance of a group is that of its channels' means, too, and cancels nothing."""
    x, offsets = arrays((2, 6, 5, 7), (6,))
    x += 100 * per_channel(offsets, 4)
    ones = {"s": np.ones(groups, np.float32), "b": np.zeros(groups, np.float32)}
    found, _ = run(exported(x.shape, groups, [0, groups, -1], ones), x)
    parts = x.astype(np.float64).reshape(2, groups, -1)
    expected = (parts - parts.mean(-1, keepdims=True)) / np.sqrt(parts.var(-1, keepdims=True) + EPSILON)
    np.testing.assert_allclose(found, expected.reshape(x.shape), rtol=0, atol=2e-4)


@pytest.mark.parametrize(("target", "groups"), [([2, 6, 35], 6), ([4, 3, 35], 3), ([2, 7, 30], 7), ([1, 12, 35], 12)])
def test_other_reshapes_are_normed_as_they_are(target: list[int], groups: int):
    x, scale, bias = arrays((2, 6, 5, 7), (groups,), (groups,))
    found, reductions = run(exported((2, 6, 5, 7), groups, target, {"s": scale, "b": bias}), x)
    parts = x.reshape(target)
    expected = normalised(parts, groups) * per_channel(scale, 3) + per_channel(bias, 3)
    np.testing.assert_allclose(found, expected.reshape(x.shape), rtol=1e-4, atol=1e-4)
    assert [view.rank for view in reductions] == [3, 3]
