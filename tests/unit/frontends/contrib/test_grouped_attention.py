"""Attention of groups of heads behind a cache, as onnxruntime's generation loop calls it."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from tests.draws import RNG
from tests.unit.frontends.contrib.calls import agree, normal

OP, ALL = "GroupQueryAttention", (0, 1, 2)
HEADS, SHARED, DEPTH, MOST = 4, 2, 16, 40


def _call(
    batch: int,
    new: int,
    past: int | None,
    *,
    total: int = 0,
    lengths: list[int] | None = None,
    packed: bool = False,
    rotary: bool = False,
    shared: int = SHARED,
    bias: tuple[int, int] | None = None,
) -> list[Any]:
    """The inputs: `lengths` are the rows of each sequence afterwards, `total` the most of them."""
    total = total or (past or 0) + new
    q, k, v = (normal(batch, new, heads * DEPTH) for heads in (HEADS, shared, shared))
    given = [np.concatenate([q, k, v], axis=2), None, None] if packed else [q, k, v]
    cache = [None, None] if past is None else [normal(batch, shared, past, DEPTH) for _ in range(2)]
    ends = np.array(lengths or [total] * batch, np.int32) - 1
    inputs: list[Any] = [*given, *cache, ends, np.array(total, np.int32)]
    if rotary:
        angles = normal(MOST, DEPTH // 2)
        inputs += [np.cos(angles), np.sin(angles)]
    if bias is not None:
        inputs += [None] * (10 - len(inputs)) + [normal(*bias, new, max(total, past or 0))]
    return inputs


CALLS: dict[str, tuple[dict[str, Any], dict[str, Any]]] = {
    "a prompt": ({"new": 5, "past": None}, {}),
    "a prompt before an empty cache": ({"new": 5, "past": 0}, {}),
    "a padded prompt": ({"new": 5, "past": None, "lengths": [5, 3]}, {}),
    "a step": ({"new": 1, "past": 7}, {}),
    "a step of sequences of other lengths": ({"new": 1, "past": 7, "lengths": [8, 6]}, {}),
    "all in one": ({"new": 1, "past": 7, "packed": True, "rotary": True}, {"do_rotary": 1}),
    "a turned prompt": ({"new": 6, "past": None, "rotary": True}, {"do_rotary": 1}),
    "pairs side by side": ({"new": 1, "past": 9, "rotary": True}, {"do_rotary": 1, "rotary_interleaved": 1}),
    "a window": ({"new": 1, "past": 17}, {"local_window_size": 4}),
    "a prompt in a window": ({"new": 9, "past": None}, {"local_window_size": 4}),
    "a cap": ({"new": 3, "past": None}, {"softcap": 5.0}),
    "a scale": ({"new": 1, "past": 6, "shared": 1}, {"scale": 0.3}),
    "one head each": ({"new": 2, "past": None, "shared": HEADS}, {}),
    "a bias of all heads": ({"new": 3, "past": None, "bias": (1, 1)}, {}),
    "a bias of each head": ({"new": 3, "past": None, "bias": (2, HEADS)}, {}),
    "a cache with room": ({"new": 1, "past": 32, "total": 9, "lengths": [9, 9]}, {}),
}


@pytest.mark.parametrize("target", ["cpu", "interpreter"])
@pytest.mark.parametrize("name", CALLS)
def test_as_onnxruntime_computes_it(name: str, target: str):
    given, attributes = CALLS[name]
    heads = {"num_heads": HEADS, "kv_num_heads": given.get("shared", SHARED)}
    host = 0 if target == "cpu" else None  # which counts the step that learns a size
    agree(OP, _call(2, **given), asked=ALL, target=target, host=host, **heads, **attributes)


@pytest.mark.parametrize("new", [1, 3])
def test_several_new_rows_of_one_sequence_behind_a_cache(new: int):
    past = int(RNG.integers(2, 20))
    agree(OP, _call(1, new, past), asked=ALL, num_heads=HEADS, kv_num_heads=SHARED)


def test_a_cache_of_any_length():
    inputs = _call(2, 1, 11, rotary=True)
    agree("GroupQueryAttention", inputs, asked=(0, 1, 2), free=(11,), num_heads=HEADS, kv_num_heads=SHARED, do_rotary=1)


def test_what_is_left_to_onnxruntime():
    agree(OP, _call(1, 1, 6), asked=ALL, host=1, num_heads=HEADS, kv_num_heads=SHARED, smooth_softmax=1)
