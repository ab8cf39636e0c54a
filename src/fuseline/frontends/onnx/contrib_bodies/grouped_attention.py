"""Attention of groups of heads that share keys and values, behind a cache of those: what decoders exported for
onnxruntime's generation loop are made of.

    past    k k k . .        past of each sequence, then the new rows, then nothing
    new     n n         =>   k k k n n 0

Source: onnxruntime, docs/ContribOperators.md (GroupQueryAttention), and its CPU kernel for what that leaves open.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from fuseline.frontends.onnx.contrib_bodies.attention import HEADS_FIRST, LOWEST, rows_of
from fuseline.frontends.onnx.contrib_bodies.body import ContribBody, contrib_op
from fuseline.frontends.onnx.contrib_bodies.rotary import rotated


@dataclass(frozen=True)
class _Rows:
    """Names of int64 values: new rows `count` (a scalar), the places of the cache afterwards `places` [T], how many
    each sequence had `before` [B], the number of each new row `position` [B, S] and that of its last row `ends` [B]."""

    count: str
    places: str
    before: str
    position: str
    ends: str


@contrib_op("GroupQueryAttention")
def group_query_attention(b: ContribBody) -> list[str | None]:
    """query [B, S, N * H], key and value [B, S, K * H] (or all of them in query), past_key and past_value [B, K, P, H],
    seqlens_k [B] (of each sequence the rows afterwards, less one), total_sequence_length (the most rows), cosines and
    sines [positions, H / 2], position_ids [B, S], attention_bias [B or 1, N or 1, S, T]."""
    _refuse(b)
    heads, shared = b.heads(), b.integer("kv_num_heads")
    depth = b.size(0, 2) // (heads if b.input(1) else heads + 2 * shared)
    rows = _rows(b)
    q, k, v = _sections(b, heads, shared, depth)
    if b.integer("do_rotary"):
        q, k = (_turned(b, x, depth, rows) for x in (q, k))
    k, v = (_cached(b, b.input(3 + side), new, rows) for side, new in enumerate((k, v)))
    return [_attended(b, q, k, v, rows, (heads, shared, depth)), k, v]


def _refuse(b: ContribBody) -> None:
    b.refuse_inputs(11, 12, 13, 14, 15, 16)
    b.dims(0, 3)
    if b.integer("smooth_softmax") > 0 or b.integer("qk_output") or b.integer("sliding_window_cache"):
        b.refuse("unsupported-attribute", "a smooth softmax, scores as an output, or a cache of a window")
    if b.text("k_quant_type", "NONE") != "NONE" or b.text("v_quant_type", "NONE") != "NONE":
        b.refuse("unsupported-attribute", "a quantised cache")
    if not b.integer("causal", 1) or b.integer("kv_num_heads") < 1 or b.heads() % b.integer("kv_num_heads"):
        b.refuse("unsupported-attribute", "heads that are no groups, or an order without time")


def _rows(b: ContribBody) -> _Rows:
    count, most = b.sized(b.input(0), 1), b.op("Squeeze", b.cast(b.input(6), np.int64))
    lengths = b.op("Reshape", b.cast(b.input(5), np.int64), b.ints(-1))
    before = b.op("Sub", b.op("Add", lengths, b.ints(1)), count)
    before = b.op("Where", b.op("Equal", most, count), b.ints(0), before)  # a first prompt, padded at its end
    total = b.op("Max", most, b.sized(b.input(3), 2)) if b.input(3) else most
    position = b.op("Add", b.op("Unsqueeze", before, b.ints(1)), b.positions(count, (0,)))
    return _Rows(count, b.positions(total), before, b.input(9) or position, lengths)


def _sections(b: ContribBody, heads: int, shared: int, depth: int) -> list[str]:
    """Queries [B, N, S, H], keys and values [B, K, S, H]."""
    sizes = [heads * depth, shared * depth, shared * depth]
    flat = [b.input(0), b.input(1), b.input(2)] if b.input(1) else b.split(b.input(0), sizes, 2)
    return [b.op("Transpose", b.op("Reshape", value, b.ints(0, 0, -1, depth)), perm=HEADS_FIRST) for value in flat]


def _turned(b: ContribBody, x: str, depth: int, rows: _Rows) -> str:
    """`x` [B, heads, S, H] turned by the angles of its rows."""
    cos, sin = (b.op("Unsqueeze", b.op("Gather", b.input(table), rows.position), b.ints(1)) for table in (7, 8))
    b.attributes["interleaved"] = b.integer("rotary_interleaved")
    return rotated(b, x, depth, cos, sin, b.size(7, 1))


def _cached(b: ContribBody, past: str, new: str, rows: _Rows) -> str:
    """What lies in the cache afterwards [B, K, T, H]: of each sequence its rows, the new ones, and zeros."""
    both = b.op("Concat", past, new, axis=2) if past else new
    held = b.sized(past, 2) if past else b.array(0, np.int64)
    place, before = b.op("Unsqueeze", rows.places, b.ints(0)), b.op("Unsqueeze", rows.before, b.ints(1))
    moved = b.op("Add", b.op("Sub", place, before), held)
    source = b.op("Where", b.op("Less", place, before), place, moved)
    last = b.op("Sub", b.sized(both, 2), b.array(1, np.int64))
    inside = b.op("Less", place, b.op("Add", before, rows.count))
    source = b.op("Unsqueeze", b.op("Min", source, last), b.ints(2))
    found = b.op("Transpose", both, perm=HEADS_FIRST)  # [B, rows, K, H]
    found = b.op("Transpose", b.op("GatherND", found, source, batch_dims=1), perm=HEADS_FIRST)
    return b.op("Where", b.op("Unsqueeze", inside, b.ints(1, 3)), found, b.op("CastLike", b.constant(0.0), new))


def _attended(b: ContribBody, q: str, k: str, v: str, rows: _Rows, sizes: tuple[int, int, int]) -> str:
    """[B, S, N * H]: each group of queries over the keys and values that it shares."""
    heads, shared, depth = sizes
    scale, grouped = b.real_number("scale", 0.0) or depth**-0.5, heads // shared
    q = b.op("Reshape", b.op("Mul", q, b.constant(scale)), b.ints(0, shared, grouped, -1, depth))
    k, v = (b.op("Unsqueeze", x, b.ints(2)) for x in (k, v))
    scores = b.op("MatMul", q, b.op("Transpose", k, perm=[0, 1, 2, 4, 3]))
    cap = b.real_number("softcap", 0.0)
    if cap:
        scores = b.op("Mul", b.op("Tanh", b.op("Div", scores, b.constant(cap))), b.constant(cap))
    if b.input(10):
        scores = b.op("Add", scores, _grouped_bias(b, heads, shared))
    scores = b.op("Where", _seen(b, rows), scores, b.constant(LOWEST))
    made = b.op("MatMul", b.op("Softmax", scores, axis=-1), v)
    return rows_of(b, b.op("Reshape", made, b.ints(0, heads, -1, depth)), heads * depth)


def _grouped_bias(b: ContribBody, heads: int, shared: int) -> str:
    """What is added to the scores, [B or 1, K or 1, N / K or 1, S, T]."""
    if b.dims(10, 4)[1] == 1:
        return b.op("Unsqueeze", b.input(10), b.ints(2))
    rows, keys = (b.op("Shape", b.input(10), start=axis, end=axis + 1) for axis in (2, 3))
    shape = b.op(
        "Concat", b.op("Shape", b.input(10), start=0, end=1), b.ints(shared, heads // shared), rows, keys, axis=0
    )
    return b.op("Reshape", b.input(10), shape)


def _seen(b: ContribBody, rows: _Rows) -> str:
    """Whether a row sees a key, [B, 1, 1, S, T]: none that follows it, nor one further back than a window."""
    new = b.op("Add", b.op("Unsqueeze", rows.before, b.ints(1)), b.positions(rows.count, (0,)))
    new = b.op("Unsqueeze", new, b.ints(1, 2, 4))
    key = b.op("Unsqueeze", rows.places, b.ints(0, 1, 2, 3))
    ends = b.op("Unsqueeze", rows.ends, b.ints(1, 2, 3, 4))
    seen, window = b.op("LessOrEqual", key, b.op("Min", new, ends)), b.integer("local_window_size", -1)
    if window < 0:
        return seen
    return b.op("And", seen, b.op("Greater", key, b.op("Sub", new, b.ints(window))))
