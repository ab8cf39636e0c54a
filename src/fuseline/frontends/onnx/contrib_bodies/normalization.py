"""Layer normalisation of sums: of a value and what skips it, or of embeddings."""

from __future__ import annotations

import numpy as np

from fuseline.frontends.onnx.contrib_bodies.body import ContribBody, contrib_op
from fuseline.ir.dim import to_text

EPSILON = 1e-12
"""What onnxruntime's schemas say where a node does not."""


@contrib_op("SkipLayerNormalization")
def skip_layer_norm(b: ContribBody) -> list[str | None]:
    """input, skip, gamma, beta, bias: LayerNormalization of input + skip + bias; the sum is output 3."""
    _check_skip(b, 2, 3, 4)
    total = _sum(b, 4)
    return [
        b.op("LayerNormalization", total, b.input(2), b.input(3), axis=-1, epsilon=b.real_number("epsilon", EPSILON)),
        None,
        None,
        total,
    ]


@contrib_op("SkipSimplifiedLayerNormalization")
def skip_simplified_layer_norm(b: ContribBody) -> list[str | None]:
    """input, skip, gamma, bias: the same without a mean."""
    _check_skip(b, 2, 3)
    total = _sum(b, 3)
    return [
        b.op("SimplifiedLayerNormalization", total, b.input(2), axis=-1, epsilon=b.real_number("epsilon", EPSILON)),
        None,
        None,
        total,
    ]


def _check_skip(b: ContribBody, *vectors: int) -> None:
    """Refuse (E0107) what onnxruntime does: input is [B, S, H] or [S, H], with H of 1 or more; skip has its sizes, or,
    for [B, S, H], those of one batch; any other input is [H]."""
    dims, skip = b.dims(0), b.dims(1)
    if len(dims) not in (2, 3) or len(skip) not in (2, len(dims)) or dims[-1] == 0:
        shapes = " and ".join(f"[{', '.join(map(to_text, sizes))}]" for sizes in (dims, skip))
        raise b.wrong_size(f"input and skip have sizes {shapes}: 2 or 3 dimensions are needed, the last one not empty")
    for position in range(-len(skip), 0):
        if position != -3 or skip[0] != 1:
            b.check_size(1, position, dims[position])
    for index in vectors:
        b.check_vector(index)


def _sum(b: ContribBody, bias: int) -> str:
    total = b.op("Add", b.input(0), b.input(1))
    return b.op("Add", total, b.input(bias)) if b.input(bias) else total


@contrib_op("EmbedLayerNormalization")
def embed_layer_norm(b: ContribBody) -> list[str | None]:
    """input_ids and segment_ids [B, S], embeddings of words, positions and segments, gamma, beta, mask [B, S],
    position_ids [B or 1, S]."""
    tables = [b.input(index) for index in (2, 3, 4)]
    return _embedded(b, tables, b.input(5), b.input(6), 7, 8)


@contrib_op("QEmbedLayerNormalization")
def quantized_embed_layer_norm(b: ContribBody) -> list[str | None]:
    """As EmbedLayerNormalization with tables, gamma and beta in 8 bits: their scales follow the mask, their zero points
    those."""
    real = [
        "" if not b.input(2 + i) else b.op("DequantizeLinear", b.input(2 + i), b.input(8 + i), b.input(13 + i))
        for i in range(5)
    ]
    return _embedded(b, real[:3], real[3], real[4], 7, 18)[:2]


def _embedded(
    b: ContribBody, tables: list[str], gamma: str, beta: str, mask: int, position_ids: int
) -> list[str | None]:
    """The normalised sum of embeddings, how many ones the mask has in each row, and the sum."""
    b.dims(0, 2)
    positions = b.input(position_ids) or b.positions(b.sized(b.input(0), 1), (0,))
    total = b.op("Add", b.op("Gather", tables[0], b.input(0)), b.op("Gather", tables[1], positions))
    if b.input(1) and tables[2]:
        total = b.op("Add", total, b.op("Gather", tables[2], b.input(1)))
    out = b.op("LayerNormalization", total, gamma, beta, axis=-1, epsilon=b.real_number("epsilon", EPSILON))
    return [out, _ones(b, mask) if b.wanted(1) else None, total]


def _ones(b: ContribBody, mask: int) -> str:
    """How many ones each row of the mask has, int32; zeros without a mask."""
    if not b.input(mask):
        return b.op("Expand", b.array(0, np.int32), b.op("Shape", b.input(0), start=0, end=1))
    ones = b.cast(b.op("Equal", b.input(mask), b.array(1, b.tensor(mask).dtype)), np.int32)
    return b.op("ReduceSum", ones, b.ints(1), keepdims=0)
