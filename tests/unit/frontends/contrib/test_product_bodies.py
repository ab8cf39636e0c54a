"""Bodies of products: turned, activated, of weights in a few bits."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from fuseline.errors import FuselineError
from fuseline.frontends.onnx.contrib_bodies import contrib_body, products
from fuseline.frontends.onnx.node import OnnxNode
from fuseline.frontends.onnx.tensors import NoNativeLowering, Tensor
from tests.unit.frontends.contrib.bodies import RNG, agrees, call, normal


@pytest.mark.parametrize(("bits", "codes"), [(2, [3, 0, 2, 1]), (4, [3, 6]), (8, [99])])
def test_bits_are_unpacked_lowest_first(bits: int, codes: list[int]) -> None:
    byte = sum(code << (bits * position) for position, code in enumerate(codes))
    found = products.unpacked(np.array([[byte, 0], [255, byte]], np.uint8), bits)
    assert found.tolist() == [codes + [0] * len(codes), [2**bits - 1] * len(codes) + codes]
    assert products.unpacked(np.zeros((3, 0), np.uint8), bits).shape == (3, 0)


@pytest.mark.parametrize("alpha", [1.0, 0.5])
@pytest.mark.parametrize("batch", [0, 1])
@pytest.mark.parametrize("turned", [0, 1])
def test_turned_products(turned: int, batch: int, alpha: float) -> None:
    a, b = normal(2, 3, 4, 5), normal(2, 3, 5, 6)
    node = call("FusedMatMul", [(2, 3, 4, 5), (2, 3, 5, 6)], alpha=alpha)
    agrees(node, [a, b], alpha * (a @ b))
    if turned:
        node = call("FusedMatMul", [(2, 3, 5, 4), (2, 3, 6, 5)], transA=1, transB=1, alpha=alpha)
        agrees(node, [a.swapaxes(2, 3), b.swapaxes(2, 3)], alpha * (a @ b))
    if batch:  # [d, a, b, e] is the matrix [d, e] of the batch [a, b]
        node = call("FusedMatMul", [(4, 2, 3, 5), (2, 3, 5, 6)], transBatchA=1, alpha=alpha)
        agrees(node, [np.moveaxis(a, 2, 0), b], alpha * (a @ b))


def test_an_activation_behind_a_product() -> None:
    x, w, bias = normal(3, 4), normal(5, 4), normal(5)
    product = 0.5 * x @ w.T + 2 * bias
    more: dict[str, Any] = {"alpha": 0.5, "beta": 2.0, "transB": 1}
    shapes = [(3, 4), (5, 4), (5,)]
    leaky: dict[str, Any] = {"activation": "LeakyRelu", "activation_alpha": 0.25, "activation_beta": 9.0}
    agrees(call("FusedGemm", shapes, **more), [x, w, bias], product)
    agrees(call("FusedGemm", shapes, activation="Tanh", **more), [x, w, bias], np.tanh(product))
    agrees(call("FusedGemm", shapes, **leaky, **more), [x, w, bias], np.where(product < 0, 0.25 * product, product))
    with pytest.raises(NoNativeLowering, match="the activation Gelu"):
        contrib_body(call("FusedGemm", shapes, activation="Gelu"))


BITS: dict[str, Any] = {"K": 6, "N": 3, "bits": 4, "block_size": 4}
CODES, SCALES = RNG.integers(0, 256, (3, 2, 2)).astype(np.uint8), np.abs(normal(6)) + 0.1


def _bits(x: Any = (2, 6), codes: Any = CODES, scales: Any = SCALES, *more: Any, **attributes: Any) -> OnnxNode:
    return call("MatMulNBits", [x, codes, scales, *more], **{**BITS, **attributes})


@pytest.mark.parametrize("zeros", ["half", "packed", "real"])
def test_weights_in_blocks(zeros: str) -> None:
    x, bias = normal(2, 6), normal(3)
    packed, real = RNG.integers(0, 256, (3, 1)).astype(np.uint8), normal(3, 2)
    given = {"half": None, "packed": packed, "real": real}[zeros]
    offsets = {"half": np.full((3, 2), 8.0), "packed": np.hstack([packed & 15, packed >> 4]), "real": real}[zeros]
    numbers = np.stack([CODES & 15, CODES >> 4], axis=-1).reshape(3, 2, 4)
    weight = ((numbers.astype(float) - offsets[..., None]) * SCALES.reshape(3, 2, 1)).reshape(3, 8)[:, :6]
    node = _bits((2, 6), CODES, SCALES, given, None, (3,))
    agrees(node, [x, CODES, SCALES, given, None, bias], x @ weight.T + bias)
    without = _bits((2, 6), CODES, SCALES, given)
    agrees(without, [x, CODES, SCALES, given], x @ weight.T)


@pytest.mark.parametrize(
    ("attributes", "words"),
    [
        ({"bits": 3}, "weights of 3 bits in blocks of 4"),
        ({"block_size": 0}, "blocks of 0"),
        ({"weight_prepacked": 1}, "packed"),
    ],
)
def test_weights_that_have_no_body(attributes: dict[str, int], words: str) -> None:
    with pytest.raises(NoNativeLowering, match=f"unsupported-attribute: .*{words}"):
        contrib_body(_bits(**attributes))
    with pytest.raises(NoNativeLowering, match="in another order"):
        contrib_body(_bits((2, 6), CODES, SCALES, None, np.zeros(6, np.int32)))
    with pytest.raises(NoNativeLowering, match="runtime-value"):
        contrib_body(_bits((2, 6), Tensor(np.dtype(np.uint8), (3, 2, 2))))


@pytest.mark.parametrize(
    ("node", "words"),
    [
        (_bits(K=0), "a weight of 0 rows and 3 columns"),
        (_bits(N=0), "a weight of 6 rows and 0 columns"),
        (_bits((2, 6), CODES[:2]), "input 1 has 8 elements, 12 are needed"),
        (_bits((2, 6), CODES, SCALES[:5]), "input 2 has 5 elements, 6 are needed"),
        (_bits((2, 6), CODES, SCALES, np.zeros(4, np.uint8)), "input 3 has 4 elements, 3 are needed"),
        (_bits((2, 6), CODES, SCALES, np.zeros(4, np.float32)), "input 3 has 4 elements, 6 are needed"),
    ],
)
def test_weights_of_wrong_sizes(node: OnnxNode, words: str) -> None:
    with pytest.raises(FuselineError, match=words) as caught:
        contrib_body(node)
    assert (caught.value.code, caught.value.node) == ("E0107", "call")
