"""Products of matrices, attention, recurrent layers, transforms of signals."""

from __future__ import annotations

from typing import Any

import numpy as np

from tests.conformance.node_calls.draw import Call, Draw, calls


def _pair(d: Draw) -> tuple[list[int], list[int]]:
    """Shapes of two operands of MatMul."""
    m, k, n = (d.whole(1, 5) for _ in range(3))
    left, right = d.broadcast(2)
    if d.chance(0.2):
        return ([k], [*right[:2], k, n]) if d.chance() else ([*left[:2], m, k], [k])
    return [*left[-2:], m, k], [*right[-2:], k, n]


@calls("MatMul")
def matmul(d: Draw) -> Call:
    left, right = _pair(d)
    return Call([d.values(left), d.values(right)])


@calls("MatMulInteger")
def matmul_integer(d: Draw) -> Call:
    m, k, n = (d.whole(1, 5) for _ in range(3))
    zeros = [d.values((), place=0) if d.chance() else None, d.values(() if d.chance() else (n,), place=1)]
    return Call([d.values((*d.sizes(0, 2, 3), m, k)), d.values((k, n), place=1), *(zeros if d.chance() else [])])


@calls("Gemm")
def gemm(d: Draw) -> Call:
    m, k, n = (d.whole(1, 5) for _ in range(3))
    left, right = d.whole(0, 1), d.whole(0, 1)
    given = {"transA": left, "transB": right, **d.some(alpha=d.number(), beta=d.number())}
    if d.dtype().kind in "iu":
        given = {"transA": left, "transB": right}
    bias = [d.values(d.one_of((), (1,), (n,), (m, 1), (1, n), (m, n)))] if d.before(11) or d.chance() else []
    return Call([d.values((k, m) if left else (m, k)), d.values((n, k) if right else (k, n)), *bias], given)


@calls("Det")
def det(d: Draw) -> Call:
    n = d.whole(1, 4)
    return Call([d.values((*d.sizes(0, 2), n, n))])


EQUATIONS = (
    "ij,jk->ik",
    "ij,jk",
    "bij,bjk->bik",
    "ii->i",
    "ij->ji",
    "i,j->ij",
    "...ij,...jk->...ik",
    "ij,ij->",
    "bhij,bhkj->bhik",
    "ij,k->jk",
)


@calls("Einsum")
def einsum(d: Draw) -> Call:
    equation = d.one_of(*EQUATIONS)
    size = {letter: d.whole(1, 4) for letter in "bhijk"}
    batch = d.sizes(0, 2, 3)
    shapes = [
        [*(batch if "..." in term else ()), *(size[c] for c in term.replace("...", ""))]
        for term in equation.split("->")[0].split(",")
    ]
    return Call([d.values(shape) for shape in shapes], {"equation": equation})


@calls("RNN", "GRU", "LSTM")
def recurrent(d: Draw) -> Call:
    gates = {"RNN": 1, "GRU": 3, "LSTM": 4}[d.schema.name]
    steps, batch, width, hidden = (d.whole(1, 4) for _ in range(4))
    direction = d.one_of("forward", "reverse", "bidirectional")
    n = 2 if direction == "bidirectional" else 1
    inputs: list[Any] = [
        d.values((steps, batch, width)),
        d.values((n, gates * hidden, width)),
        d.values((n, gates * hidden, hidden)),
    ]
    inputs += [
        d.values((n, 2 * gates * hidden)) if d.chance() else None,
        d.rng.integers(1, steps + 1, batch).astype(np.int32) if d.chance() else None,
    ]
    inputs += [d.values((n, batch, hidden)) if d.chance() else None]
    if d.schema.name == "LSTM":
        inputs += [
            d.values((n, batch, hidden)) if d.chance() else None,
            d.values((n, 3 * hidden)) if d.chance() else None,
        ]
    given = {"GRU": d.some(linear_before_reset=d.whole(0, 1)), "LSTM": d.some(input_forget=d.whole(0, 1))}.get(
        d.schema.name, {}
    )
    return Call(
        inputs,
        {"hidden_size": hidden, "direction": direction, **given, **d.some(clip=d.number(1, 3))},
        3 if gates == 4 else 2,
    )


@calls("Attention")
def attention(d: Draw) -> Call:
    batch, heads, queries, keys, width = d.whole(1, 2), d.whole(1, 2), d.whole(1, 4), d.whole(1, 4), d.whole(1, 4)
    group = d.whole(1, 2)
    inputs: list[Any] = [
        d.values((batch, heads * group, queries, width)),
        d.values((batch, heads, keys, width)),
        d.values((batch, heads, keys, width), place=2),
    ]
    inputs += [d.values((queries, keys), d.dtype(3)) if d.chance() else None]
    return Call(inputs, d.some(is_causal=d.whole(0, 1), scale=d.number(0.2, 1), softcap=d.number(1, 3)))


@calls("RotaryEmbedding")
def rotary(d: Draw) -> Call:
    batch, heads, length, half, longest = d.whole(1, 2), d.whole(1, 3), d.whole(1, 4), d.whole(1, 3), 6
    caches = [d.values((longest, half)) for _ in range(2)]
    places = d.rng.integers(0, longest, (batch, length)).astype(np.int64)
    return Call([d.values((batch, heads, length, 2 * half)), *caches, places], d.some(interleaved=d.whole(0, 1)))


@calls("DFT")
def dft(d: Draw) -> Call:
    sizes, parts = d.sizes(2, 3), d.whole(1, 2)
    axis = d.whole(1, len(sizes) - 1)
    inverse = d.whole(0, 1) if parts == 2 else 0
    given = {"inverse": inverse, "onesided": d.whole(0, 1) if parts == 1 else 0}
    length = np.array(d.whole(1, 7)) if d.chance() else None
    x = d.values((*sizes, parts))
    return Call([x, length], {**given, "axis": axis}) if d.before(20) else Call([x, length, np.array(axis)], given)


@calls("STFT")
def stft(d: Draw) -> Call:
    frame = d.whole(2, 6)
    signal = d.values((d.whole(1, 2), d.whole(8, 16), 1))
    window = d.positive((frame,)) if d.chance() else None
    return Call(
        [signal, np.array(d.whole(1, 4), d.dtype(1)), window, np.array(frame, d.dtype(1))], {"onesided": d.whole(0, 1)}
    )


@calls("BlackmanWindow", "HannWindow", "HammingWindow")
def window(d: Draw) -> Call:
    return Call(
        [np.asarray(d.whole(1, 12), d.dtype())], d.some(periodic=d.whole(0, 1), output_datatype=d.one_of(1, 11))
    )


@calls("MelWeightMatrix")
def mel(d: Draw) -> Call:
    inputs = [
        np.asarray(d.whole(2, 6), d.dtype()),
        np.asarray(d.one_of(16, 32), d.dtype(1)),
        np.asarray(8000, d.dtype(2)),
    ]
    return Call([*inputs, np.asarray(d.number(0, 100), d.dtype(3)), np.asarray(d.number(2000, 4000), d.dtype(4))])


@calls("NonMaxSuppression")
def nms(d: Draw) -> Call:
    batch, boxes, classes = d.whole(1, 2), d.whole(1, 6), d.whole(1, 3)
    corner = d.rng.uniform(0, 1, (batch, boxes, 2))
    given = np.concatenate([corner, corner + d.rng.uniform(0.2, 1, (batch, boxes, 2))], -1).astype(np.float32)
    scores = d.rng.uniform(0, 1, (batch, classes, boxes)).astype(np.float32)
    limits = [
        np.array([d.whole(1, 4)]),
        np.array([d.number(0.1, 0.7)], np.float32),
        np.array([d.number(0, 0.5)], np.float32),
    ]
    return Call([given, scores, *limits], d.some(center_point_box=d.whole(0, 1)))
