"""Attention over any number of keys, as exporters write it: one dispatch each, and the interpreter's and onnxruntime's
numbers at every length."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np
import onnx
import pytest
from onnx import TensorProto

import fuseline
from tests.graphs.onnx_builder import FLOAT, Builder, Shape

ort = pytest.importorskip("onnxruntime")

HEADS, DEPTH = 4, 8
WIDTH = HEADS * DEPTH
Array = np.ndarray[Any, Any]
Inputs = dict[str, tuple[int, Shape]]


def heads_of(b: Builder, x: str, heads: int = HEADS) -> str:
    """A projection of `x`, heads first."""
    wide = b.node("MatMul", x, b.weight(WIDTH, heads * DEPTH, scale=WIDTH**-0.5))
    return b.node("Transpose", b.node("Reshape", wide, b.constant([0, 0, heads, DEPTH])), perm=[0, 2, 1, 3])


def rotated(b: Builder, x: str) -> str:
    """Rotary embedding with `cos` and `sin` of [seq, depth]."""
    low = b.node("Slice", x, b.constant([0]), b.constant([DEPTH // 2]), b.constant([3]))
    high = b.node("Slice", x, b.constant([DEPTH // 2]), b.constant([DEPTH]), b.constant([3]))
    turned = b.node("Concat", b.node("Neg", high), low, axis=-1)
    return b.node("Add", b.node("Mul", x, "cos"), b.node("Mul", turned, "sin"))


def attended(b: Builder, q: str, k: str, v: str, masked: Callable[[str], str], guarded: bool = False) -> str:
    """`softmax(mask(q k^T / sqrt(depth))) v` and the projection behind it."""
    scores = b.node("MatMul", q, b.node("Transpose", k, perm=[0, 1, 3, 2]))
    weights = b.node("Softmax", masked(b.node("Mul", scores, b.constant(np.float32(DEPTH**-0.5)))), axis=-1)
    if guarded:
        weights = b.node("Where", b.node("IsNaN", weights), b.constant(np.float32(0)), weights)
    rows = b.node(
        "Reshape", b.node("Transpose", b.node("MatMul", weights, v), perm=[0, 2, 1, 3]), b.constant([0, 0, WIDTH])
    )
    return b.node("MatMul", rows, b.weight(WIDTH, WIDTH, scale=WIDTH**-0.5))


def encoder() -> onnx.ModelProto:
    """Every token sees those that the mask adds nothing to."""
    b = Builder(1)
    q, k, v = (heads_of(b, "x") for _ in range(3))
    y = attended(b, q, k, v, lambda s: b.node("Add", s, "mask"))
    return b.model({"x": (FLOAT, ("n", "seq", WIDTH)), "mask": (FLOAT, ("n", 1, 1, "seq"))}, [y])


def rotary(guarded: bool = False) -> onnx.ModelProto:
    """Rotary embedding, and a choice by a mask of [seq, seq]."""
    b = Builder(2)
    q, k, v = (heads_of(b, "x") for _ in range(3))
    low = b.constant(np.float32(-np.inf))
    y = attended(b, rotated(b, q), rotated(b, k), v, lambda s: b.node("Where", "keep", s, low), guarded)
    angles = {name: (FLOAT, ("seq", DEPTH)) for name in ("cos", "sin")}
    return b.model({"x": (FLOAT, ("n", "seq", WIDTH)), **angles, "keep": (TensorProto.BOOL, ("seq", "seq"))}, [y])


def decoder() -> onnx.ModelProto:
    """New tokens see those of the past and themselves; keys and values of all go out."""
    b = Builder(3)
    q, k, v = (heads_of(b, "x") for _ in range(3))
    keys, values = (b.node("Concat", past, new, axis=2) for past, new in (("past_k", k), ("past_v", v)))
    y = attended(b, q, keys, values, lambda s: s)
    past = {name: (FLOAT, ("n", HEADS, "past", DEPTH)) for name in ("past_k", "past_v")}
    return b.model({"x": (FLOAT, ("n", "new", WIDTH)), **past}, [y, keys, values])


def normal(shape: Sequence[int], seed: int) -> Array:
    return np.random.default_rng(seed).standard_normal(shape).astype(np.float32)


def feeds_of(model: onnx.ModelProto, sizes: Mapping[str, int]) -> dict[str, Array]:
    """Random inputs; masks hide the last keys, and in a choice by a mask all keys from one query."""
    feeds: dict[str, Array] = {}
    for seed, value in enumerate(model.graph.input):
        shape = [sizes[d.dim_param] if d.dim_param else d.dim_value for d in value.type.tensor_type.shape.dim]
        feeds[value.name] = normal(shape, seed)
        if value.name == "mask":
            feeds[value.name] = np.where(
                np.arange(shape[-1]) * 3 > 2 * shape[-1], np.float32(-np.inf), feeds[value.name]
            ).astype(np.float32)
        if value.name == "keep":
            feeds[value.name] = np.tril(np.ones(shape, bool)) & (np.arange(shape[0]) != 1)[:, None]
    return feeds


CASES: dict[str, tuple[Callable[[], onnx.ModelProto], list[dict[str, int]]]] = {
    "encoder": (encoder, [{"n": n, "seq": seq} for n, seq in ((1, 1), (2, 63), (1, 64), (1, 65), (3, 200))]),
    "rotary": (rotary, [{"n": 1, "seq": seq} for seq in (2, 64, 131)]),
    "guarded": (lambda: rotary(guarded=True), [{"n": 2, "seq": seq} for seq in (2, 131)]),
    "decoder": (
        decoder,
        [{"n": n, "past": past, "new": new} for n, past, new in ((1, 1, 1), (2, 63, 1), (1, 64, 3), (1, 300, 9))],
    ),
}


@pytest.mark.parametrize("threads", [1, 2])
@pytest.mark.parametrize("name", CASES)
def test_any_length(name: str, threads: int):
    make, runs = CASES[name]
    model = make()
    reference = ort.InferenceSession(model.SerializeToString(), providers=["CPUExecutionProvider"])
    ours, oracle = (fuseline.compile(model, target=target, threads=threads) for target in ("cpu", "interpreter"))
    for sizes in runs:
        feeds = feeds_of(model, sizes)
        for expected in (reference.run(None, feeds), list(oracle.run(feeds).values())):
            for found, wanted in zip(ours.run(feeds).values(), expected, strict=True):
                assert np.array_equal(np.isnan(found), np.isnan(wanted))
                np.testing.assert_allclose(found, wanted, rtol=1e-5, atol=1e-5)


@pytest.mark.parametrize("name", CASES)
def test_scores_and_weights_stay_inside_one_dispatch(name: str):
    record = fuseline.compile(CASES[name][0](), target="cpu", threads=2).record
    kinds = [[member.kind for member in dispatch.members] for dispatch in record.dispatches]
    (attention,) = [found for found in kinds if found.count("reduction") == 2]
    assert attention.count("contraction") == 2
    assert any(decision.rule == "streamed-softmax" and decision.verdict == "fused" for decision in record.decisions)


def test_no_keys_at_all():
    """The empty sum, as onnxruntime has it."""
    b = Builder(4)
    scores = b.node("MatMul", "q", b.node("Transpose", "k", perm=[0, 2, 1]))
    y = b.node("MatMul", b.node("Softmax", scores, axis=-1), "v")
    model = b.model({"q": (FLOAT, (2, "m", 8)), "k": (FLOAT, (2, "n", 8)), "v": (FLOAT, (2, "n", 8))}, [y])
    program = fuseline.compile(model, target="cpu", threads=2, shapes={"n": (0, 5000)})
    for keys in (0, 1, 700):
        feeds = feeds_of(model, {"m": 5, "n": keys})
        (found,) = program.run(feeds).values()
        scores = feeds["q"].astype(np.float64) @ feeds["k"].swapaxes(1, 2)
        powers = np.exp(scores - scores.max(-1, keepdims=True, initial=-np.inf))
        np.testing.assert_allclose(found, powers / powers.sum(-1, keepdims=True) @ feeds["v"], rtol=1e-5, atol=1e-6)
