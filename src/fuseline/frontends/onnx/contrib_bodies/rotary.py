"""Rotary embeddings, with the cosines and sines of all positions given."""

from __future__ import annotations

from fuseline.frontends.onnx.contrib_bodies.attention import HEADS_FIRST
from fuseline.frontends.onnx.contrib_bodies.body import ContribBody, contrib_op


@contrib_op("RotaryEmbedding")
def rotary_embedding(b: ContribBody) -> list[str | None]:
    """input [B, S, N * H] or [B, N, S, H], position_ids [1] (that of the first) or [B, S], cosines and sines
    [positions, rotated / 2]."""
    if b.integer("is_packed_batching") or b.tensor(0).rank not in (3, 4):
        b.refuse("unsupported-attribute", "rows packed without padding, or another rank")
    flat, half = b.tensor(0).rank == 3, b.size(2, 1)
    depth = _depth(b, flat, half)
    x = (
        b.op("Transpose", b.op("Reshape", b.input(0), b.ints(0, 0, -1, depth)), perm=HEADS_FIRST)
        if flat
        else b.input(0)
    )
    turned = rotated(b, x, depth, *_at_positions(b, x), half)
    if not flat:
        return [turned]
    return [b.op("Reshape", b.op("Transpose", turned, perm=HEADS_FIRST), b.ints(0, 0, b.size(0, 2)))]


def _depth(b: ContribBody, flat: bool, half: int) -> int:
    if not flat:
        return b.size(0, 3)
    return b.size(0, 2) // b.heads() if b.integer("rotary_embedding_dim") or b.integer("num_heads") else 2 * half


def _at_positions(b: ContribBody, x: str) -> tuple[str, str]:
    """Cosines and sines [B or 1, 1, S, half] for `x` [B, N, S, H]."""
    positions = b.input(1)
    if b.tensor(1).rank == 1:
        positions = b.op("Add", b.positions(b.sized(x, 2), (0,)), b.input(1))
    cos, sin = (b.op("Unsqueeze", b.op("Gather", b.input(table), positions), b.ints(1)) for table in (2, 3))
    return cos, sin


def rotated(b: ContribBody, x: str, depth: int, cos: str, sin: str, half: int) -> str:
    """The first 2 * half of `x` [B, N, S, depth] turned, the rest as it is; pairs lie side by side where
    `interleaved`."""
    whole, rest = b.split(x, (2 * half, depth - 2 * half), 3) if depth > 2 * half else (x, "")
    if b.integer("interleaved"):
        paired = b.op("Reshape", whole, b.ints(0, 0, 0, half, 2))
        first, second = (b.op("Squeeze", section, b.ints(4)) for section in b.split(paired, (1, 1), 4))
    else:
        first, second = b.split(whole, (half, half), 3)
    low = b.op("Sub", b.op("Mul", first, cos), b.op("Mul", second, sin))
    high = b.op("Add", b.op("Mul", first, sin), b.op("Mul", second, cos))
    if b.integer("interleaved"):
        pairs = b.op("Concat", *(b.op("Unsqueeze", section, b.ints(4)) for section in (low, high)), axis=4)
        out = b.op("Reshape", pairs, b.ints(0, 0, 0, 2 * half))
    else:
        out = b.op("Concat", low, high, axis=3)
    return b.op("Concat", out, rest, axis=3) if rest else out
