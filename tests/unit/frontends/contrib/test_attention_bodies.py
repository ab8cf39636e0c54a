"""Bodies of attention, by head in NumPy; and calls that have none."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from fuseline.frontends.onnx.contrib_bodies import attention, contrib_body
from fuseline.frontends.onnx.tensors import NoNativeLowering, Tensor
from fuseline.ir.dim import symbol
from tests.unit.frontends.contrib.bodies import RNG, Array, agrees, call, normal

N = symbol("n")

B, S, T, HEADS, DEPTH = 2, 3, 4, 2, 5
D = HEADS * DEPTH


def _by_head(x: Array) -> Array:
    return x.reshape(*x.shape[:2], HEADS, -1).transpose(0, 2, 1, 3)


def _attended(q: Array, k: Array, v: Array, added: Any = 0.0, scale: float = DEPTH**-0.5) -> Array:
    """softmax(q k^T scale + added) v, all by head."""
    scores = scale * q @ k.swapaxes(2, 3) + added
    shares = np.exp(scores - scores.max(-1, keepdims=True))
    out = (shares / shares.sum(-1, keepdims=True)) @ v
    return out.transpose(0, 2, 1, 3).reshape(B, q.shape[2], -1)


@pytest.mark.parametrize("scale", [None, 0.3])
def test_attention_over_other_keys(scale: float | None) -> None:
    q, k, v, bias = normal(B, S, D), normal(B, T, D), normal(B, T, D), normal(3 * D)
    more: dict[str, Any] = {} if scale is None else {"scale": scale}
    node = call("MultiHeadAttention", [q.shape, k.shape, v.shape, bias.shape], num_heads=HEADS, **more)
    parts = [_by_head(x + b) for x, b in zip((q, k, v), np.split(bias, 3), strict=True)]
    agrees(node, [q, k, v, bias], _attended(*parts, scale=scale or DEPTH**-0.5))


@pytest.mark.parametrize("filler", [-10000.0, -2.0])
def test_a_mask_of_keys(filler: float) -> None:
    q, k, v = normal(B, S, D), normal(B, T, D), normal(B, T, D)
    mask = RNG.integers(0, 2, (B, T)).astype(np.int32)
    mask[:, 0] = 1
    node = call(
        "MultiHeadAttention",
        [q.shape, k.shape, v.shape, None, Tensor(np.dtype(np.int32), (B, T))],
        num_heads=HEADS,
        mask_filter_value=filler,
    )
    added = np.where(mask > 0, 0, filler)[:, None, None, :]
    agrees(node, [q, k, v, None, mask], _attended(_by_head(q), _by_head(k), _by_head(v), added))


def test_attention_of_a_row_to_those_before_it() -> None:
    x, w, bias = normal(B, S, 6), normal(6, 3 * D), normal(3 * D)
    past = normal(2, B, HEADS, T, DEPTH)
    node = call(
        "Attention",
        [x.shape, w.shape, bias.shape, None, past.shape],
        "y present",
        num_heads=HEADS,
        unidirectional=1,
    )
    q, k, v = (_by_head(part) for part in np.split(x @ w + bias, 3, axis=2))
    k, v = np.concatenate([past[0], k], 2), np.concatenate([past[1], v], 2)
    later = np.where(np.arange(T + S) > np.arange(S)[:, None] + T, attention.LOWEST, 0)
    agrees(node, [x, w, bias, None, past], _attended(q, k, v, later), np.stack([k, v]))


X, W3 = (B, S, 6), (6, 3 * D)
ROWS = (B, S, D)


@pytest.mark.parametrize(
    ("op_type", "inputs", "attributes", "words"),
    [
        ("Attention", [X, W3, (3 * D,), None, None, None, (1,)], {}, "unsupported-input: input 6"),
        ("Attention", [(B, S), W3], {}, "unsupported-rank: input 0 has 2"),
        ("Attention", [X, (6, N)], {}, "symbolic-size"),
        ("Attention", [X, W3], {"do_rotary": 1}, "rotary embedding"),
        ("Attention", [X, W3], {"past_present_share_buffer": 1}, "one buffer"),
        ("Attention", [X, (6, 31)], {}, "hidden sizes"),
        ("Attention", [X, (6, 9)], {}, "in 2 heads"),
        ("Attention", [X, W3], {"qkv_hidden_sizes": [10, 10, 8]}, r"hidden sizes \[10, 10, 8\] of 30"),
        ("Attention", [X, W3], {"num_heads": 0}, "num_heads is 0"),
        ("Attention", [X, W3, None, (2, 2, 2, 2)], {}, "a mask of 4 dimensions"),
        ("Attention", [X, W3, None, (N,)], {}, "does not say whether starts follow"),
        ("Attention", [X, W3, None, None, (2, B, HEADS, 4)], {}, "unsupported-rank: input 4"),
        ("MultiHeadAttention", [ROWS, ROWS, ROWS, *[None] * 5, (1,)], {}, "unsupported-input: input 8"),
        ("MultiHeadAttention", [(B, S, HEADS, 3, DEPTH)], {}, "unsupported-rank: input 0"),
        ("MultiHeadAttention", [ROWS], {}, "missing-input: input 1"),
        ("MultiHeadAttention", [ROWS, (B, S), ROWS], {}, "unsupported-rank: input 1"),
        ("MultiHeadAttention", [ROWS, (B, T, D), (B, T, D)], {"unidirectional": 1}, "order of time"),
        ("QAttention", [(B, S), W3], {}, "unsupported-rank: input 0"),
    ],
)
def test_attention_that_has_no_body(op_type: str, inputs: list[Any], attributes: dict[str, Any], words: str) -> None:
    with pytest.raises(NoNativeLowering, match=words):
        contrib_body(call(op_type, inputs, **dict[str, Any]({"num_heads": HEADS, **attributes})))
