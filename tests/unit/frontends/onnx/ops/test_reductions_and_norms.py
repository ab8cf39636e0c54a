"""Reductions, norms and means: axes, types, odd and symbolic sizes; and what is refused."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import pytest

from fuseline.frontends.onnx.emission import mapped, result
from fuseline.frontends.onnx.ops import (
    arg_extremes,
    counts,
    experimental,
    group_norm,
    normalization,
    reduction,
    softmax,
)
from tests.graphs.custom_lowering import computed
from tests.unit.frontends.onnx.ops.lowerings import RNG, agree, error, ints, normal, operators_of, refusal

SYMBOLS = pytest.mark.parametrize("free", [(), (0,)])


def test_what_is_lowered_here() -> None:
    assert operators_of(reduction) >= {"CumSum", "LpNormalization", "ReduceMean"}
    assert operators_of(arg_extremes) == {"ArgMax", "ArgMin", "Hardmax"}
    assert operators_of(softmax) == {"LogSoftmax", "Softmax"}
    assert operators_of(normalization) == set(
        "BatchNormalization GroupNormalization InstanceNormalization LRN LayerNormalization "
        "MeanVarianceNormalization RMSNormalization".split()
    )
    assert operators_of(experimental) == set(
        "Affine Crop ImageScaler MeanVarianceNormalization ParametricSoftplus Scale ScaledTanh "
        "SimplifiedLayerNormalization".split()
    )
    assert not operators_of(group_norm) and not operators_of(counts)


KINDS = "L1 L2 LogSum LogSumExp Max Mean Min Prod Sum SumSquare".split()


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("keep", [0, 1])
@SYMBOLS
def test_reductions(kind: str, keep: int, free: Sequence[int]) -> None:
    x = RNG.uniform(0.2, 2, (2, 3, 5)).astype(np.float32)
    for axes in ([1], [0, -1]):
        inputs = [x, np.array(axes)]
        agree(f"Reduce{kind}", inputs, {"keepdims": keep}, constants=(1,), free=free, rtol=3e-5)
        agree(f"Reduce{kind}", [x], {"keepdims": keep, "axes": axes}, opset=11, rtol=3e-5)
    agree(f"Reduce{kind}", [x], {"keepdims": keep}, rtol=3e-5)
    agree(f"Reduce{kind}", [x], {"keepdims": keep, "noop_with_empty_axes": 1}, rtol=3e-5)


@pytest.mark.parametrize("dtype", ["int32", "int64", "float64"])
def test_reductions_of_other_types(dtype: str) -> None:
    x = ints(-9, 10, 3, 4, dtype=dtype)
    for kind, wanted in (("Sum", x.sum(1)), ("Max", x.max(1)), ("Min", x.min(1)), ("SumSquare", (x * x).sum(1))):
        inputs, attributes = [x, np.array([1])], {"keepdims": 0}
        agree(f"Reduce{kind}", inputs, attributes, wanted=[wanted.astype(dtype)], constants=(1,))


@pytest.mark.parametrize("op_type", ["ArgMax", "ArgMin"])
@pytest.mark.parametrize("last", [0, 1])
def test_places_of_extremes(op_type: str, last: int) -> None:
    x = ints(0, 3, 4, 6, dtype=np.float32)  # with equals
    for axis in (0, 1, -1):
        agree(op_type, [x], {"axis": axis, "select_last_index": last, "keepdims": int(axis > 0)})
    agree(op_type, [x], {"axis": 1}, free=(0,))


@pytest.mark.parametrize(("exclusive", "reverse"), [(0, 0), (1, 0), (0, 1), (1, 1)])
@SYMBOLS
def test_running_sums(exclusive: int, reverse: int, free: Sequence[int]) -> None:
    for axis in (0, 1, -1):
        inputs = [normal(3, 5), np.array(axis)]
        agree("CumSum", inputs, {"exclusive": exclusive, "reverse": reverse}, constants=(1,), free=free, atol=1e-5)


@pytest.mark.parametrize("opset", [11, 13])
@pytest.mark.parametrize("axis", [0, 1, 2, -1])
def test_shares_of_a_whole(opset: int, axis: int) -> None:
    x = 3 * normal(2, 3, 5)
    for op_type in ("Softmax", "LogSoftmax", "Hardmax"):
        agree(op_type, [x], {"axis": axis}, opset=opset, rtol=3e-5)
        agree(op_type, [x], opset=opset, rtol=3e-5)
        agree(op_type, [x], {"axis": axis}, opset=opset, free=(0,), rtol=3e-5)
    large = np.array([[1e4, 1e4 - 1, -1e4]], np.float32)
    agree("Softmax", [large], opset=opset)


@pytest.mark.parametrize("p", [1, 2])
@pytest.mark.parametrize("axis", [0, -1])
def test_rows_over_their_length(p: int, axis: int) -> None:
    x = normal(3, 4)
    x[1], x[:, 2] = 0, 0
    size = np.abs(x).sum(axis, keepdims=True) if p == 1 else np.sqrt((x * x).sum(axis, keepdims=True))
    agree(
        "LpNormalization",
        [x],
        {"p": p, "axis": axis},
        wanted=[np.where(size == 0, 0, x / np.where(size == 0, 1, size))],
    )


# -- norms -------------------------------------------------------------------------------------------------------------

X = (2, 6, 3, 5)


def _weights(count: int = 6) -> list[Any]:
    return [normal(count), normal(count)]


@pytest.mark.parametrize("constants", [(1, 2, 3, 4), ()])
@pytest.mark.parametrize("epsilon", [1e-5, 0.1])
def test_norms_of_a_trained_batch(constants: Sequence[int], epsilon: float) -> None:
    inputs = [normal(*X), *_weights(), normal(6), RNG.uniform(0.5, 2, 6).astype(np.float32)]
    agree("BatchNormalization", inputs, {"epsilon": epsilon}, constants=constants, opset=15, rtol=1e-4, atol=1e-4)
    agree("BatchNormalization", inputs, opset=9, constants=constants, free=(0,), rtol=1e-4, atol=1e-4)


def test_norms_of_a_batch_that_are_refused() -> None:
    inputs = [normal(*X), *_weights(), normal(6), np.ones(6, np.float32)]
    assert refusal("BatchNormalization", inputs, {"training_mode": 1}, outputs=3, opset=15).startswith("training")
    error(
        "E0107",
        r"bias has sizes \[5\], the input has 6 channels",
        "BatchNormalization",
        [*inputs[:2], normal(5), *inputs[3:]],
    )
    error("E0107", r"scale has sizes \[1, 6\]", "InstanceNormalization", [inputs[0], normal(1, 6), inputs[2]])


@pytest.mark.parametrize("shape", [X, (2, 6, 7), (1, 6, 2, 3, 2)])
@SYMBOLS
def test_norms_of_each_channel(shape: tuple[int, ...], free: Sequence[int]) -> None:
    inputs = [normal(*shape), *_weights()]
    agree("InstanceNormalization", inputs, {"epsilon": 0.01}, free=free, rtol=1e-4, atol=1e-4)


def _grouped(x: Any, groups: int, scale: Any, bias: Any, epsilon: float) -> Any:
    parts = x.reshape(x.shape[0], groups, -1).astype(np.float64)
    parts = (parts - parts.mean(-1, keepdims=True)) / np.sqrt(parts.var(-1, keepdims=True) + epsilon)
    lead = (1, -1, *[1] * (x.ndim - 2))
    return (parts.reshape(x.shape) * scale.reshape(lead) + bias.reshape(lead)).astype(np.float32)


@pytest.mark.parametrize("groups", [1, 2, 3, 6])
@SYMBOLS
def test_norms_of_groups(groups: int, free: Sequence[int]) -> None:
    x, scale, bias = normal(*X), *_weights()
    attributes = {"num_groups": groups, "epsilon": 0.01}
    wanted = _grouped(x, groups, scale, bias, 0.01)
    if not free:  # all sizes, channels among them
        agree("GroupNormalization", [x, scale, bias], attributes, wanted=[wanted], opset=21, rtol=1e-4, atol=1e-4)
    else:
        assert "symbolic" in refusal("GroupNormalization", [x, scale, bias], attributes, opset=21, free=free)


@pytest.mark.parametrize(("groups", "weights"), [(4, 6), (0, 6), (2, 5)])
def test_groups_that_do_not_divide(groups: int, weights: int) -> None:
    inputs = [normal(*X), *_weights(weights)]
    error("E0107", f"{groups} groups of 6 channels", "GroupNormalization", inputs, {"num_groups": groups}, opset=21)


@pytest.mark.parametrize("groups", [2, 3])
def test_an_instance_norm_of_joined_channels_is_one_of_groups(groups: int) -> None:
    text = "(float[2, 6, 3, 5] x) => (y) { g = Reshape(x, to) y = InstanceNormalization(g, s, b) }"
    x, weights = normal(*X), _weights(groups)
    to = np.array([2, groups, -1])
    found = computed(text, lambda node: node[0], x, to=to, s=weights[0], b=weights[1])[0]
    joined = x.reshape(2, groups, -1)
    np.testing.assert_allclose(found, _grouped(joined, groups, weights[0], weights[1], 1e-5), rtol=1e-4, atol=1e-4)


def test_images_of_groups() -> None:
    def lowering(node: Any) -> Any:
        (x,) = node.present()
        image = result(node.ssa(x), (2, 6, 5), x.dtype)
        assert group_norm.image_of_groups(image) == (None, 0)
        for dims, groups in (((2, 3, 10), 3), ((2, 6, 5), 0), ((2, 4, 15), 0), ((4, 3, 5), 0)):
            image_of = group_norm.image_of_groups(type(x)(x.dtype, dims, value=x.value, reshaped=image))
            assert image_of == ((image, groups) if groups else (None, 0))
        return x

    computed("(float[2, 6, 5] x) => (y) { y = test.Op (x) }", lowering, normal(2, 6, 5))


@pytest.mark.parametrize("axis", [-1, 1, 2])
@pytest.mark.parametrize("outputs", [1, 3])
@SYMBOLS
def test_norms_of_rows(axis: int, outputs: int, free: Sequence[int]) -> None:
    x = normal(2, 3, 4)
    width = x.shape[axis:] if axis > 0 else x.shape[-1:]
    inputs = [x, normal(*width), normal(*width)]
    agree(
        "LayerNormalization",
        inputs,
        {"axis": axis, "epsilon": 0.01},
        outputs=outputs,
        opset=17,
        free=free,
        rtol=1e-4,
        atol=1e-4,
    )
    agree("LayerNormalization", inputs[:2], {"axis": axis}, opset=17, rtol=1e-4, atol=1e-4)


def test_norms_without_a_mean() -> None:
    x, scale = normal(2, 3, 4), normal(4)
    root = np.sqrt((x.astype(np.float64) ** 2).mean(-1, keepdims=True) + 0.01)
    wanted = [(x / root * scale).astype(np.float32)]
    agree("RMSNormalization", [x, scale], {"epsilon": 0.01}, opset=23, wanted=wanted, rtol=1e-4, atol=1e-4)
    agree("SimplifiedLayerNormalization", [x, scale], {"epsilon": 0.01}, wanted=wanted, rtol=1e-4, atol=1e-4)


@pytest.mark.parametrize("size", [1, 3, 5])
@pytest.mark.parametrize(
    "more", [{}, {"alpha": 0.5, "beta": 0.5, "bias": 2.0}, {"beta": 0.25}, {"beta": 0.6, "alpha": 0.1}]
)
def test_norms_over_neighbouring_channels(size: int, more: Mapping[str, Any]) -> None:
    agree("LRN", [normal(*X)], {"size": size, **more}, rtol=3e-5)


def test_an_even_number_of_neighbours_has_one_more_behind() -> None:
    x = normal(2, 5, 3)
    squares = np.pad(x * x, [(0, 0), (0, 1), (0, 0)])
    wanted = x / (1 + 0.25 * (squares[:, :-1] + squares[:, 1:])) ** 0.75
    agree("LRN", [x], {"size": 2, "alpha": 0.5}, wanted=[wanted.astype(np.float32)], rtol=3e-5)


# -- counts ------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("dtype", ["float", "int32"])
@pytest.mark.parametrize("sizes", ["n, 4", "3, 4"])
def test_sums_over_how_many(dtype: str, sizes: str) -> None:
    def lowering(node: Any) -> Any:
        return counts.count_divided(node, node[0], node[0].dims)

    x = ints(-99, 100, 3, 4, dtype=np.float32 if dtype == "float" else np.int32)
    found = computed(f"({dtype}[{sizes}] x) => (y) {{ y = test.Op (x) }}", lowering, x)[0]
    wanted = x / np.float32(12) if dtype == "float" else np.trunc(x / 12)
    np.testing.assert_allclose(found, wanted, rtol=1e-6)


@pytest.mark.parametrize(
    ("sizes", "count", "wanted"), [("n, 4", 3, 1 / 12), ("3, 4", 3, 1 / 12), ("0, 4", 0, np.inf), ("n, 4", 0, np.inf)]
)
def test_one_over_how_many(sizes: str, count: int, wanted: float) -> None:
    def lowering(node: Any) -> Any:
        share = counts.inverse_count(node, node[0].dims, node[0].dtype)
        return mapped(node, [], [2], node[0].dtype, share)

    with np.errstate(divide="ignore"):
        found = computed(f"(float[{sizes}] x) => (y) {{ y = test.Op (x) }}", lowering, normal(count, 4))[0]
    np.testing.assert_allclose(found, [wanted] * 2, rtol=1e-6)


# -- operators of the first versions -----------------------------------------------------------------------------------


def test_lines_and_curves_of_the_first_versions() -> None:
    x = normal(2, 3, 4, 5)
    agree("Affine", [x], {"alpha": 0.5, "beta": 2.0}, wanted=[x * np.float32(0.5) + 2], opset=7)
    agree("Affine", [x], wanted=[x], opset=7)
    agree("Scale", [x], {"scale": 3.0}, wanted=[x * 3], opset=7)
    curve = (0.5 * np.log1p(np.exp(2.0 * x))).astype(np.float32)
    agree("ParametricSoftplus", [x], {"alpha": 0.5, "beta": 2.0}, wanted=[curve], opset=7)
    agree("ScaledTanh", [x], {"alpha": 0.5, "beta": 2.0}, wanted=[(0.5 * np.tanh(2 * x)).astype(np.float32)], opset=7)
    for op_type in ("ParametricSoftplus", "ScaledTanh"):
        error("E0105", f"{op_type} has no beta", op_type, [x], {"alpha": 0.5}, opset=7)


def test_images_of_the_first_versions() -> None:
    x = normal(2, 3, 6, 7)
    bias = [0.5, -1.0, 2.0]
    wanted = x * np.float32(2) + np.array(bias, np.float32)[:, None, None]
    agree("ImageScaler", [x], {"scale": 2.0, "bias": bias}, wanted=[wanted], opset=7)
    error("E0105", "2 biases for 3 channels", "ImageScaler", [x], {"bias": bias[:2]}, opset=7)
    agree("Crop", [x], {"border": [1, 2, 3, 1]}, wanted=[x[:, :, 2:5, 1:4]], opset=7)
    agree("Crop", [x], {"border": [1, 2, 0, 0], "scale": [3, 4]}, wanted=[x[:, :, 2:5, 1:5]], opset=7)
    for border, size in (([1, 2, 3], []), ([1, -2, 3, 1], []), ([0] * 4, [1]), ([0] * 4, [-1, 2])):
        attributes = {"border": border, **({"scale": size} if size else {})}
        error("E0105", "are no four and two sizes", "Crop", [x], attributes, opset=7)


@pytest.mark.parametrize("across", [0, 1])
@pytest.mark.parametrize("deviation", [0, 1])
def test_moments_of_the_first_versions(across: int, deviation: int) -> None:
    x = normal(2, 3, 4, 5)
    axes = (0, 1, 2, 3) if across else (0, 2, 3)
    wanted = x - x.mean(axes, keepdims=True)
    wanted = wanted / x.std(axes, keepdims=True) if deviation else wanted
    attributes = {"across_channels": across, "normalize_variance": deviation}
    agree("MeanVarianceNormalization", [x], attributes, wanted=[wanted], opset=7, rtol=1e-4, atol=1e-4)
