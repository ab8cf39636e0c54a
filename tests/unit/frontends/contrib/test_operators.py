"""onnxruntime's fused and renamed operators: native, with onnxruntime's numbers."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from tests.unit.frontends.contrib.calls import Array, agree, ints, normal

B, S, W = 6, 5, 8
free_or_not = pytest.mark.parametrize("free", [(), (B, S)])


def of_bytes(*shape: int) -> Array:
    return ints(256, *shape, dtype=np.uint8)


def number(value: float, dtype: Any = np.float32) -> Array:
    return np.asarray(value, dtype)


def quantized(*shape: int, scale: float = 0.1, zero: int = 120) -> list[Array]:
    """Bytes with scale and zero point."""
    return [of_bytes(*shape), number(scale), number(zero, np.uint8)]


@free_or_not
@pytest.mark.parametrize("skip", [(B, S, W), (1, S, W), (S, W)])
def test_a_norm_of_a_sum(skip: tuple[int, ...], free: tuple[int, ...]):
    agree("SkipLayerNormalization", [normal(B, S, W), normal(*skip), normal(W), normal(W)], constants=(2, 3), free=free)
    agree("SkipLayerNormalization", [normal(B, S, W), normal(*skip), normal(W)], constants=(2,), epsilon=0.1, free=free)


@free_or_not
def test_a_norm_of_a_sum_with_a_bias_that_is_an_output(free: tuple[int, ...]):
    weights = [normal(W) for _ in range(3)]
    agree("SkipLayerNormalization", [normal(B, S, W), normal(B, S, W), *weights], asked=(0, 3), epsilon=1e-5, free=free)
    agree("SkipSimplifiedLayerNormalization", [normal(B, S, W), normal(B, S, W), *weights[:2]], asked=(0, 3), free=free)


@free_or_not
def test_norms_of_embeddings(free: tuple[int, ...]):
    ids, tables, weights = (
        [ints(9, B, S), ints(2, B, S)],
        [normal(9, W), normal(11, W), normal(2, W)],
        [normal(W), normal(W)],
    )
    agree(
        "EmbedLayerNormalization",
        [*ids, *tables, *weights, ints(2, B, S)],
        constants=(2, 3, 4, 5, 6),
        asked=(0, 1, 2),
        free=free,
    )
    inputs = [ids[0], None, *tables[:2], None, *weights, None, ints(11, 1, S)]
    agree("EmbedLayerNormalization", inputs, constants=(2, 3, 5, 6), asked=(0, 1), epsilon=1e-3, free=free)


def test_norms_of_embeddings_in_bytes():
    tables, scales, zeros = (
        [of_bytes(9, W), of_bytes(11, W), of_bytes(2, W)],
        [number(0.02)] * 5,
        [number(128, np.uint8)] * 5,
    )
    inputs = [ints(9, B, S), ints(2, B, S), *tables, of_bytes(W), of_bytes(W), ints(2, B, S), *scales, *zeros]
    agree("QEmbedLayerNormalization", inputs, constants=range(2, 7), asked=(0, 1))


@free_or_not
@pytest.mark.parametrize("interleaved", [0, 1])
def test_rotary_embeddings(interleaved: int, free: tuple[int, ...]):
    def tables(half: int) -> list[Array]:
        return [normal(20, half), normal(20, half)]

    agree(
        "RotaryEmbedding",
        [normal(B, S, W), ints(20, B, S, dtype=np.int64), *tables(2)],
        constants=(2, 3),
        interleaved=interleaved,
        free=free,
    )
    agree(
        "RotaryEmbedding",
        [normal(B, 2, S, W), np.array([6]), *tables(4)],
        constants=(2, 3),
        interleaved=interleaved,
        free=free,
    )
    partly: dict[str, Any] = {"num_heads": 2, "rotary_embedding_dim": 4, "interleaved": interleaved}
    agree("RotaryEmbedding", [normal(B, S, 16), np.array([6]), *tables(2)], constants=(2, 3), free=free, **partly)


@pytest.mark.parametrize(
    ("a", "b", "attributes"),
    [
        ((3, 4, 5), (3, 6, 5), {"alpha": 0.3, "transB": 1}),
        ((4, 3, 5), (3, 6, 5), {"transB": 1, "transBatchA": 1}),
        ((5, 2, 3, 4), (2, 3, 5, 6), {"transA": 1, "transBatchA": 1}),
        ((2, 3, 4, 5), (6, 2, 3, 5), {"transB": 1, "transBatchB": 1}),
        ((5,), (4, 5, 3), {"transA": 1}),
        ((4, 3, 5), (5,), {"transB": 1}),
    ],
)
def test_products_of_turned_matrices(a: tuple[int, ...], b: tuple[int, ...], attributes: dict[str, Any]):
    agree("FusedMatMul", [normal(*a), normal(*b)], **attributes)


def test_the_older_name_of_a_product():
    agree("TransposeMatMul", [normal(4, 3, 5), normal(4, 3, 2)], transA=1, alpha=2.0)


@pytest.mark.parametrize(("activation", "more"), [("Relu", {}), ("LeakyRelu", {"activation_alpha": 0.2}), ("Tanh", {})])
def test_a_product_with_an_activation(activation: str, more: dict[str, Any]):
    agree(
        "FusedGemm",
        [normal(5, 4), normal(5, 6), normal(6)],
        activation=activation,
        transA=1,
        alpha=0.5,
        beta=2.0,
        **more,
    )


@pytest.mark.parametrize(("bits", "block", "inner"), [(4, 16, 40), (4, 32, 64), (8, 16, 32)])
@pytest.mark.parametrize("zeros", ["none", "packed", "real"])
def test_weights_of_few_bits(bits: int, block: int, inner: int, zeros: str):
    blocks = -(-inner // block)
    packed = {"none": None, "packed": of_bytes(6, -(-blocks * bits // 8)), "real": normal(6, blocks)}[zeros]
    if zeros == "real" and bits == 8:  # which onnxruntime does not have
        return
    inputs = [normal(2, 3, inner), of_bytes(6, blocks, block * bits // 8), np.abs(normal(6, blocks)), packed]
    constants = [position for position in (1, 2, 3) if inputs[position] is not None]
    agree("MatMulNBits", inputs, constants=constants, K=inner, N=6, bits=bits, block_size=block)


def test_images_with_channels_last():
    out = [number(0.1), number(100, np.uint8)]
    agree("QLinearGlobalAveragePool", [*quantized(1, 4, 5, 3), *out], channels_last=1)
    agree("QLinearAveragePool", [*quantized(1, 4, 5, 3), *out], channels_last=1, kernel_shape=[2, 3], strides=[1, 2])
    agree("NhwcMaxPool", [of_bytes(1, 6, 6, 3)], kernel_shape=[2, 3], strides=[2, 1])
    filters = quantized(4, 3, 3, 3, zero=128)
    inputs = [*quantized(1, 5, 5, 3), *filters, number(0.9), number(110, np.uint8)]
    agree("QLinearConv", inputs, constants=range(1, 8), channels_last=1, pads=[1, 1, 1, 1])


def test_choices_and_softmax_in_bytes():
    out = [number(0.15), number(9, np.uint8)]
    agree(
        "QLinearWhere",
        [ints(2, 3, 4).astype(bool), *quantized(3, 4), *quantized(3, 4, scale=0.2), *out],
        constants=(2, 3, 5, 6, 7, 8),
    )
    agree("QLinearSoftmax", [*quantized(2, 4, 5), number(1 / 256), number(0, np.uint8)], axis=1, opset=11)


def test_operators_that_the_standard_has_too():
    agree("Trilu", [normal(4, 5), np.array(1)], constants=(1,), upper=0)
    agree("GridSample", [normal(1, 2, 4, 5), normal(1, 3, 3, 2)], mode="bicubic", align_corners=1)
    agree("Pad", [normal(3, 4), np.array([1, 0, 0, 2]), number(2.5).reshape(1)], constants=(1, 2))
    agree("ExpandDims", [normal(3, 4), number(-1, np.int32)], constants=(1,))
    agree("GatherND", [normal(3, 4), ints(3, 5, 1, dtype=np.int64)])
    agree("Range", [number(1), number(6), number(1.5)], constants=(0, 1, 2))


@pytest.mark.parametrize("metric", ["euclidean", "sqeuclidean"])
def test_distances(metric: str):
    agree("CDist", [normal(3, 4), normal(5, 4)], metric=metric)
