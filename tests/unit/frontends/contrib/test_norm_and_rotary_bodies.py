"""Bodies of norms and rotary embeddings."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from fuseline.frontends.onnx.contrib_bodies import contrib_body
from fuseline.frontends.onnx.tensors import NoNativeLowering, Tensor
from tests.unit.frontends.contrib.bodies import F32, RNG, Array, agrees, call, normal, ran

B, S, HEADS = 2, 3, 2


@pytest.mark.parametrize("interleaved", [0, 1])
@pytest.mark.parametrize("half", [2, 3])
def test_pairs_are_turned(half: int, interleaved: int) -> None:
    """Of the first 2 * half numbers of each head, at the positions that are asked for."""
    x, angles = normal(B, S, HEADS, 6), RNG.uniform(-3, 3, (7, half)).astype(np.float32)
    places = RNG.integers(0, 7, (B, S))
    pairs = x[..., : 2 * half].reshape(B, S, HEADS, *((half, 2) if interleaved else (2, half)))
    first, second = np.moveaxis(pairs, -1 if interleaved else -2, 0)
    turned = (first + 1j * second) * np.exp(1j * angles[places])[:, :, None, :]
    stacked = np.stack([turned.real, turned.imag], -1 if interleaved else -2).reshape(B, S, HEADS, 2 * half)
    wanted = np.concatenate([stacked, x[..., 2 * half :]], -1).reshape(B, S, -1)
    inputs = [(B, S, 6 * HEADS), Tensor(np.dtype(np.int64), (B, S)), angles.shape, angles.shape]
    more: dict[str, Any] = {"num_heads": HEADS, "rotary_embedding_dim": 2 * half, "interleaved": interleaved}
    arrays = [x.reshape(B, S, -1), places, np.cos(angles), np.sin(angles)]
    agrees(call("RotaryEmbedding", inputs, **more), arrays, wanted)
    by_head = [(B, HEADS, S, 6), *inputs[1:]]
    arrays[0] = x.transpose(0, 2, 1, 3)
    wanted = wanted.reshape(B, S, HEADS, 6).transpose(0, 2, 1, 3)
    agrees(call("RotaryEmbedding", by_head, interleaved=interleaved), arrays, wanted)


def test_positions_from_a_first_one_on() -> None:
    x, angles = normal(B, S, 4), RNG.uniform(-3, 3, (9, 2)).astype(np.float32)
    inputs = [x.shape, Tensor(np.dtype(np.int64), (1,)), angles.shape, angles.shape]
    turned = (x[..., :2] + 1j * x[..., 2:]) * np.exp(1j * angles[5 : 5 + S])
    arrays = [x, np.array([5]), np.cos(angles), np.sin(angles)]
    agrees(call("RotaryEmbedding", inputs), arrays, np.concatenate([turned.real, turned.imag], -1))


def test_embeddings_that_have_no_body() -> None:
    packed: dict[str, Any] = {"is_packed_batching": 1}
    for x, more in (((B, S), {}), ((B, S, 4), packed)):
        with pytest.raises(NoNativeLowering, match="packed without padding, or another rank"):
            contrib_body(call("RotaryEmbedding", [x, (1,), (9, 2), (9, 2)], **more))


def _norm(x: Array, gamma: Array, beta: Array | float, epsilon: float) -> Array:
    centred = x - x.mean(-1, keepdims=True)
    return centred / np.sqrt((centred**2).mean(-1, keepdims=True) + epsilon) * gamma + beta


@pytest.mark.parametrize("bias", [True, False])
@pytest.mark.parametrize("more", [{}, {"epsilon": 0.5}])
def test_norms_of_sums(more: dict[str, Any], bias: bool) -> None:
    x, skip, gamma, beta, shift = normal(B, S, 6), normal(S, 6), normal(6), normal(6), normal(6)
    arrays = [x, skip, gamma, beta, shift][: 5 if bias else 4]
    node = call("SkipLayerNormalization", [array.shape for array in arrays], "y - - sum", **more)
    total = x + skip + (shift if bias else 0)
    found = ran(node, *arrays)
    np.testing.assert_allclose(found[0], _norm(total, gamma, beta, more.get("epsilon", 1e-12)), rtol=1e-3, atol=1e-4)
    np.testing.assert_allclose(found[3], total, rtol=1e-5)
    with pytest.raises(NoNativeLowering, match="unsupported-output: output 1"):
        contrib_body(call("SkipLayerNormalization", [array.shape for array in arrays], "y mean"))


@pytest.mark.parametrize("segments", [True, False])
@pytest.mark.parametrize("places", [True, False])
def test_norms_of_embeddings(places: bool, segments: bool) -> None:
    I32 = np.dtype(np.int32)
    ids, kinds, given = (RNG.integers(0, top, (B, S)).astype(np.int32) for top in (9, 2, 7))
    words, positions, parts, gamma, beta = normal(9, 6), normal(7, 6), normal(2, 6), normal(6), normal(6)
    mask = RNG.integers(0, 3, (B, S)).astype(np.int32)
    arrays = [ids, kinds if segments else None, words, positions, parts if segments else None, gamma, beta, mask]
    arrays.append(given if places else None)
    inputs = [None if a is None else Tensor(I32 if a.dtype == np.int32 else F32, a.shape) for a in arrays]
    total = words[ids] + positions[given if places else np.arange(S)] + (parts[kinds] if segments else 0)
    found = ran(call("EmbedLayerNormalization", inputs, "y ones sum", epsilon=0.1), *arrays)
    np.testing.assert_allclose(found[0], _norm(total, gamma, beta, 0.1), rtol=1e-3, atol=1e-4)
    np.testing.assert_array_equal(found[1], (mask == 1).sum(1))
    assert found[1].dtype == np.int32
    np.testing.assert_allclose(found[2], total, rtol=1e-5)
    without = [*inputs[:7], None, inputs[8]]
    assert ran(call("EmbedLayerNormalization", without, "y ones"), *arrays[:7], None, arrays[8])[1].tolist() == [0] * B
    with pytest.raises(NoNativeLowering, match="unsupported-rank: input 0"):
        contrib_body(call("EmbedLayerNormalization", [(B,), *inputs[1:]]))
