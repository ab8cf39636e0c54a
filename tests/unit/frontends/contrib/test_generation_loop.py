"""A decoder as onnxruntime's generation loop has it: weights of 4 bits, grouped attention behind a cache, norms of
residuals. One program for prompts and steps, and nothing of it on the host."""

from __future__ import annotations

from typing import Any

import numpy as np
import onnxruntime
import pytest

import fuseline
from tests.draws import RNG
from tests.graphs.onnx_text import onnx_model

LAYERS, HEADS, SHARED, DEPTH, WORDS, INNER, BLOCK = 2, 4, 2, 16, 50, 96, 32
WIDTH = HEADS * DEPTH


class _Decoder:
    """Collects the nodes and weights of the network."""

    def __init__(self) -> None:
        self.lines: list[str] = []
        self.weights: dict[str, Any] = {
            "words": RNG.standard_normal((WORDS, WIDTH)).astype(np.float32),
            "scale": np.ones(WIDTH, np.float32), "columns": np.array([1]), "one": np.array([1]), "place": np.array(1),
            "cos": np.cos(RNG.standard_normal((64, DEPTH // 2))).astype(np.float32),
            "sin": np.sin(RNG.standard_normal((64, DEPTH // 2))).astype(np.float32),
        }  # fmt: skip

    def product(self, out: str, value: str, rows: int, columns: int) -> str:
        """`value` by a matrix of 4 bits, of `rows` outputs."""
        blocks = columns // BLOCK
        self.weights[f"{out}_w"] = RNG.integers(0, 256, (rows, blocks, BLOCK // 2)).astype(np.uint8)
        self.weights[f"{out}_s"] = (RNG.random(rows * blocks) * 0.02).astype(np.float32)
        options = f"N = {rows}, K = {columns}, bits = 4, block_size = {BLOCK}"
        self.lines.append(f"{out} = com.microsoft.MatMulNBits <{options}> ({value}, {out}_w, {out}_s)")
        return out

    def layer(self, i: int, value: str, normed: str) -> tuple[str, str]:
        """What a layer makes of the residual `value` and its norm."""
        q, k, v = (
            self.product(f"{name}_{i}", normed, heads * DEPTH, WIDTH)
            for name, heads in (("q", HEADS), ("k", SHARED), ("v", SHARED))
        )
        options = f"num_heads = {HEADS}, kv_num_heads = {SHARED}, do_rotary = 1"
        read = f"{q}, {k}, {v}, pk{i}, pv{i}, last, total, cos, sin"
        self.lines.append(f"a{i}, k{i}, v{i} = com.microsoft.GroupQueryAttention <{options}> ({read})")
        value, normed = self.norm(f"m{i}", value, self.product(f"o{i}", f"a{i}", WIDTH, WIDTH))
        gate, up = (self.product(f"{name}_{i}", normed, INNER, WIDTH) for name in ("g", "u"))
        self.lines.append(f"t{i} = Sigmoid({gate})  w{i} = Mul({gate}, t{i})  h{i} = Mul(w{i}, {up})")
        return self.norm(f"z{i}", value, self.product(f"d{i}", f"h{i}", WIDTH, INNER))

    def norm(self, out: str, value: str, more: str) -> tuple[str, str]:
        """The sum of both, and its norm."""
        call = f"com.microsoft.SkipSimplifiedLayerNormalization <epsilon = 0.00001> ({value}, {more}, scale)"
        self.lines.append(f"{out}, , , {out}_sum = {call}")
        return f"{out}_sum", out

    def model(self) -> Any:
        """The network, of any batch, new rows and rows of the cache."""
        self.lines.append(
            "x = Gather(words, ids)  count = ReduceSum <keepdims = 1> (mask, columns)  less = Sub(count, one)"
            "  last = Cast <to = 6> (less)  shape = Shape(mask)  all = Gather <axis = 0> (shape, place)"
            "  total = Cast <to = 6> (all)"
            "  n = SimplifiedLayerNormalization <axis = -1, epsilon = 0.00001, stash_type = 1> (x, scale)"
        )
        value, normed = "x", "n"
        for i in range(LAYERS):
            value, normed = self.layer(i, value, normed)
        self.product("logits", normed, WORDS, WIDTH)
        cache = f"float[B, {SHARED}, P, {DEPTH}]"
        given = "".join(f", {cache} pk{i}, {cache} pv{i}" for i in range(LAYERS))
        out = "".join(f", k{i}, v{i}" for i in range(LAYERS))
        text = f"(int64[B, S] ids, int64[B, T] mask{given}) => (logits{out}) {{ {'  '.join(self.lines)} }}"
        return onnx_model(text, self.weights, imports={"": 17, "com.microsoft": 1})


def _feeds(batch: int, new: int, past: int, lengths: list[int]) -> dict[str, Any]:
    rows = np.arange(past + new)[None]
    feeds: dict[str, Any] = {
        "ids": RNG.integers(0, WORDS, (batch, new)),
        "mask": (rows < np.array(lengths or [past + new] * batch)[:, None]).astype(np.int64),
    }
    for i in range(LAYERS):
        for name in ("pk", "pv"):
            feeds[f"{name}{i}"] = RNG.standard_normal((batch, SHARED, past, DEPTH)).astype(np.float32)
    return feeds


CALLS = [(1, 7, 0, []), (1, 1, 7, []), (2, 5, 0, [5, 3]), (2, 1, 9, []), (2, 1, 9, [10, 8]), (1, 3, 4, [])]


@pytest.mark.parametrize("threads", [1, 3])
def test_prompts_and_steps_of_one_program(threads: int):
    model = _Decoder().model()
    program = fuseline.compile(model, threads=threads)
    assert not program.record.host_ops and program.stats["host_ops"] == 0
    assert threads > 1 or program.stats["dispatches"] <= 6 * LAYERS + 1  # several share out the rows of one step
    session = onnxruntime.InferenceSession(model.SerializeToString(), providers=["CPUExecutionProvider"])
    for batch, new, past, lengths in CALLS:
        feeds = _feeds(batch, new, past, lengths)
        wanted: Any = session.run(None, feeds)
        for found, expected in zip(program.run(feeds).values(), wanted, strict=True):
            np.testing.assert_allclose(found, expected, rtol=1e-3, atol=1e-3)
