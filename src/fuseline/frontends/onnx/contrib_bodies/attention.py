"""Attention over heads: softmax(q k^T * scale + mask) v, as matrix products around a softmax.

Source: onnxruntime, docs/ContribOperators.md, and its CPU kernels for what that leaves open (masks count as `mask > 0`,
what is hidden gets `mask_filter_value` added, and what lies in the future the lowest number).
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from fuseline.frontends.onnx.contrib_bodies.body import ContribBody, contrib_op
from fuseline.ir.dim import Dim, mul, sub

LOWEST = float(np.finfo(np.float32).min)
HEADS_FIRST = [0, 2, 1, 3]


@contrib_op("Attention")
def attention(b: ContribBody) -> list[str | None]:
    """input [B, S, D_i], weights [D_i, D + D + D_v], bias, mask_index, past [2, B, N, P, H], attention_bias [B or 1, N
    or 1, S, T]."""
    b.refuse_inputs(6)
    b.dims(0, 3)
    joined = b.op("MatMul", b.input(0), b.input(1))
    joined = b.op("Add", joined, b.input(2)) if b.input(2) else joined
    return self_attention(b, joined, b.size(1, 1), mask=3, past=4, bias=5)


@contrib_op("QAttention")
def quantized_attention(b: ContribBody) -> list[str | None]:
    """input and weight in 8 bits, bias, scales of both, mask_index, zero points of both, past [2, B, N, P, H]."""
    b.dims(0, 3)
    product = b.op("MatMulInteger", b.input(0), b.input(1), b.input(6), b.input(7))
    real = b.op("Mul", b.cast(product, np.float32), b.op("Mul", b.input(3), b.input(4)))
    return self_attention(b, b.op("Add", real, b.input(2)), b.size(1, 1), mask=5, past=8, bias=9)


def self_attention(b: ContribBody, joined: str, width: int, *, mask: int, past: int, bias: int) -> list[str | None]:
    """The outputs for queries, keys and values side by side in `joined` [B, S, width]; `mask`, `past` and `bias` are
    places of inputs."""
    if b.integer("do_rotary") or b.integer("past_present_share_buffer"):
        b.refuse("unsupported-attribute", "rotary embedding, or one buffer for past and present")
    sizes = [int(size) for size in b.attributes.get("qkv_hidden_sizes", ())] or [width // 3] * 3
    if sum(sizes) != width or any(size % b.heads() for size in sizes):
        b.refuse("unsupported-size", f"hidden sizes {sizes} of {width} in {b.heads()} heads")
    q, k, v = (
        heads_first(b, section, size // b.heads())
        for section, size in zip(b.split(joined, sizes, 2), sizes, strict=True)
    )
    batch, rows = b.dims(0)[:2]
    before: Dim = b.dims(past, 5)[3] if b.input(past) else 0
    if b.input(past):
        k, v = (
            _behind(b, b.op("Gather", b.input(past), b.array(side, np.int64), axis=0), new)
            for side, new in enumerate((k, v))
        )
    added = [b.input(bias), merged_mask(b, mask, (batch, rows, rows), k, before)]
    out = rows_of(b, attended(b, q, k, v, added, sizes[0] // b.heads())[0], sizes[2])
    if not b.wanted(1):
        return [out]
    stacked = [b.op("Unsqueeze", section, b.ints(0)) for section in (k, v)]
    return [out, b.op("Concat", *stacked, axis=0)]


@contrib_op("MultiHeadAttention")
def multi_head_attention(b: ContribBody) -> list[str | None]:
    """query [B, S, D], key and value [B, L, D] or [B, N, L, H], bias, key_padding_mask, attention_bias, past_key and
    past_value [B, N, P, H]."""
    b.refuse_inputs(8, 9)
    width, depth = b.size(0, 2) if len(b.dims(0, 3)) == 3 else 0, b.size(0, 2) // b.heads()
    by_head = b.tensor(1).rank == 4
    rows = b.dims(1)[2 if by_head else 1]
    if by_head:
        value_width = b.size(2, 1) * b.size(2, 3)
        q, k, v = heads_first(b, _shifted(b, 0, 0, width), depth), b.input(1), b.input(2)
        b.dims(2, 4)
    else:
        b.dims(1, 3)
        value_width = b.size(2, 2) if len(b.dims(2, 3)) == 3 else 0
        widths = (width, width, value_width)
        q, k, v = (
            heads_first(b, _shifted(b, i, sum(widths[:i]), size), size // b.heads()) for i, size in enumerate(widths)
        )
    before: Dim = b.dims(6, 4)[2] if b.input(6) else 0
    if b.input(6):
        k, v = _behind(b, b.input(6), k), _behind(b, b.input(7), v)
    added = [b.input(5), merged_mask(b, 4, (b.dims(0)[0], b.dims(0)[1], rows), k, before)]
    out, scores = attended(b, q, k, v, added, depth)
    return [rows_of(b, out, value_width), k, v, scores]


def _shifted(b: ContribBody, index: int, first: int, size: int) -> str:
    """Input `index` plus its part of the bias, which starts at `first`."""
    if not b.input(3):
        return b.input(index)
    return b.op("Add", b.input(index), b.op("Slice", b.input(3), b.ints(first), b.ints(first + size), b.ints(0)))


def _behind(b: ContribBody, past: str, new: str) -> str:
    return b.op("Concat", past, new, axis=2)


def heads_first(b: ContribBody, value: str, depth: int) -> str:
    """[B, S, N * depth] as [B, N, S, depth]."""
    return b.op("Transpose", b.op("Reshape", value, b.ints(0, 0, b.heads(), depth)), perm=HEADS_FIRST)


def rows_of(b: ContribBody, value: str, width: int) -> str:
    """[B, N, S, depth] as [B, S, width]."""
    return b.op("Reshape", b.op("Transpose", value, perm=HEADS_FIRST), b.ints(0, 0, width))


def attended(b: ContribBody, q: str, k: str, v: str, added: Sequence[str], depth: int) -> tuple[str, str]:
    """softmax(q k^T * scale + added) v for [B, N, rows, depth], and what the softmax is of; of what is `added` in turn,
    an empty name is nothing."""
    scale = b.real_number("scale", 0.0) or depth**-0.5
    scores = b.op(
        "MatMul", b.op("Mul", q, b.op("CastLike", b.constant(scale), q)), b.op("Transpose", k, perm=[0, 1, 3, 2])
    )
    for more in filter(None, added):
        scores = b.op("Add", scores, more)
    return b.op("MatMul", b.op("Softmax", scores, axis=-1), v), scores


def merged_mask(b: ContribBody, mask: int, sizes: tuple[Dim, Dim, Dim], keys: str, before: Dim) -> str:
    """What a mask and the order of time add to the scores, [B or 1, 1, S or 1, T]; empty for nothing.

    `sizes` are B, S and L, `keys` [B, N, T, H] tells T, of which `before` are of the past.
    """
    batch, rows, new = sizes
    seen = _visible(b, mask, batch, rows, keys)
    hidden = (
        b.op("Where", seen, b.constant(0.0), b.constant(b.real_number("mask_filter_value", -10000.0))) if seen else ""
    )
    if not b.integer("unidirectional"):
        return hidden
    if rows != new:
        b.refuse("unsupported-size", "the order of time between queries and other keys")
    return _causal(b, hidden, keys, before)


def _visible(b: ContribBody, mask: int, batch: Dim, rows: Dim, keys: str) -> str:
    """Whether a query sees a key, [B or 1, 1, S or 1, T]; empty where all are seen."""
    if not b.input(mask):
        return ""
    dims = b.dims(mask)
    if len(dims) == 1:
        return _within(b, mask, batch, keys)
    if len(dims) == 2 and dims[1] == 1 and rows != 1:
        return ""  # a stand-in for no mask
    if len(dims) not in (2, 3):
        b.refuse("unsupported-rank", f"a mask of {len(dims)} dimensions")
    seen = b.op("Greater", b.input(mask), b.array(0, b.tensor(mask).dtype))
    return b.op("Unsqueeze", seen, b.ints(*((1, 2) if len(dims) == 2 else (1,))))


def _within(b: ContribBody, mask: int, batch: Dim, keys: str) -> str:
    """Keys before an end [B], and not before a start where the mask goes on with those [2 B]."""
    (count,) = b.dims(mask)
    starts = count == mul(batch, 2)
    if count != batch and not starts and count != sub(mul(batch, 3), -2):
        b.refuse("symbolic-size", "a mask of ends whose length does not say whether starts follow")
    position = b.positions(b.sized(keys, 2), (0, 1, 2))
    size = b.op("Unsqueeze", b.sized(b.input(0), 0), b.ints(0))
    limits = b.op(
        "Reshape", b.cast(b.op("Slice", b.input(mask), b.ints(0), size, b.ints(0)), np.int64), b.ints(-1, 1, 1, 1)
    )
    seen = b.op("Less", position, limits)
    if not starts:
        return seen
    first = b.op("Slice", b.input(mask), size, b.op("Mul", size, b.ints(2)), b.ints(0))
    return b.op(
        "And", seen, b.op("GreaterOrEqual", position, b.op("Reshape", b.cast(first, np.int64), b.ints(-1, 1, 1, 1)))
    )


def _causal(b: ContribBody, hidden: str, keys: str, before: Dim) -> str:
    """`hidden` (empty: nothing), and the lowest number where a key lies behind its query."""
    row = b.positions(b.sized(b.input(0), 1), (0, 1, 3))
    if before != 0:
        row = b.op("Add", row, b.op("Sub", b.sized(keys, 2), b.sized(b.input(0), 1)))
    behind = b.op("Greater", b.positions(b.sized(keys, 2), (0, 1, 2)), row)
    return b.op("Where", behind, b.constant(LOWEST), hidden or b.constant(0.0))
