"""Dispatches of several roots over one grid, and what they should give."""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np
from xdsl.dialects import arith
from xdsl.dialects import math as mlir_math
from xdsl.ir import SSAValue
from xdsl.ir.affine import AffineExpr, AffineMap

from fuseline.dispatch.view import DispatchView
from fuseline.ir.build import Body, dims_map, identity_map
from tests.graphs.program import Program
from tests.kernels import Array

Size = int | str
EPSILON = 1e-5


def row_norm(p: Program, x: SSAValue, n: int, epsilon: float = EPSILON) -> SSAValue:
    """`x` scaled to mean square 1 in every row of `n`, as RMS norms do."""
    square = p.over(x, body=lambda b: b.op(arith.MulfOp, b.args[0], b.args[0]))
    total = p.reduce(square)

    def scaled(b: Body) -> SSAValue:
        mean = b.op(arith.MulfOp, b.args[1], b.constant(1.0 / n, p.element))
        return b.op(
            arith.DivfOp, b.args[0], b.op(mlir_math.SqrtOp, b.op(arith.AddfOp, mean, b.constant(epsilon, p.element)))
        )

    return p.by_row(x, total, scaled)


def expected_row_norm(x: Array) -> Array:
    """What `row_norm` gives."""
    return x / np.sqrt((x * x).mean(-1, keepdims=True) + EPSILON)


def expected_softmax(x: Array) -> Array:
    """What `softmax` gives."""
    powers = np.exp(x - x.max(-1, keepdims=True))
    return powers / powers.sum(-1, keepdims=True)


def silu(b: Body, x: SSAValue) -> SSAValue:
    """`x / (1 + exp(-x))`."""
    one = b.constant(1.0, x.type)
    return b.op(arith.DivfOp, x, b.op(arith.AddfOp, one, b.op(mlir_math.ExpOp, b.op(arith.NegfOp, x))))


def product_and_norm(m: Size, n: int, k: int, *, constant: bool, keeps_sum: bool = False) -> DispatchView:
    """`norm(x @ w + bias + residual)`, with the sum as a second result on demand."""
    p = Program((m, k), (k, n), (n,), (m, n), constants=[1, 2] if constant else [])
    y = p.add(p.bias(p.matmul(p.x[0], p.x[1]), p.x[2], 1), p.x[3])
    normed = row_norm(p, y, n)
    return p.dispatch(normed, y) if keeps_sum else p.dispatch(normed)


def attention(
    heads: Sequence[Size], queries: Size, keys: Size, depth: int, *, heads_last: bool, masked: bool
) -> DispatchView:
    """`softmax(q k^T / 2 + mask) v`, heads outermost or next to the depth in every tensor.

    `heads` has one size, or two: groups of heads that share keys and values.
    """
    scores_shape, rank = [*heads, queries, keys], len(heads)
    p = Program(*([*s, depth] for s in _laid(heads, queries, keys, heads_last)), *([[queries, keys]] if masked else []))
    every, own, shared = rank + 3, list(range(rank)), [0]
    row, column, inner = rank, rank + 1, rank + 2

    def order(head: Sequence[int], at: int, last: int) -> AffineMap:
        return dims_map(every, [at, *head, last] if heads_last else [*head, at, last])

    maps = [order(own, row, inner), order(shared, column, inner), dims_map(every, [*own, row, column])]
    kinds = "p" * (rank + 2) + "r"
    scores = p.multiply_add(p.x[0], p.x[1], p.zeros(*scores_shape), maps, kinds)

    def scaled(b: Body) -> SSAValue:
        half = b.op(arith.MulfOp, b.args[0], b.constant(0.5, p.element))
        return b.op(arith.AddfOp, half, b.args[1]) if masked else half

    whole = identity_map(rank + 2)
    read = [whole, *([dims_map(rank + 2, [row, column])] if masked else []), whole]
    weights = p.softmax(p.elementwise([scores, *p.x[3:]], p.empty(*scores_shape), scaled, read))
    maps = [dims_map(every, [*own, row, inner]), order(shared, inner, column), order(own, row, column)]
    out = [queries, *heads, depth] if heads_last else [*heads, queries, depth]
    return p.dispatch(p.multiply_add(weights, p.x[2], p.zeros(*out), maps, kinds))


def _laid(heads: Sequence[Size], queries: Size, keys: Size, heads_last: bool) -> list[list[Size]]:
    """The sizes of queries, keys and values but the last."""
    shared = [heads[0]]
    if heads_last:
        return [[queries, *heads], [keys, *shared], [keys, *shared]]
    return [[*heads, queries], [*shared, keys], [*shared, keys]]


def expected_attention(arrays: Sequence[Array], *, heads_last: bool) -> Array:
    """What `attention` gives."""
    q, k, v = (np.moveaxis(a, 0, -2) if heads_last else a for a in arrays[:3])
    if q.ndim > k.ndim:
        k, v = k[:, None], v[:, None]
    scores = q.astype(np.float64) @ np.swapaxes(k, -1, -2) / 2 + (arrays[3] if len(arrays) > 3 else 0)
    out = expected_softmax(scores) @ v
    return np.moveaxis(out, -2, 0) if heads_last else out


def gate_and_up(m: Size, n: int, k: int, *, constant: bool) -> DispatchView:
    """`silu(x @ g) * (x @ u)`."""
    p = Program((m, k), (k, n), (k, n), constants=[1, 2] if constant else [])
    gate = p.elementwise([p.matmul(p.x[0], p.x[1])], p.empty(m, n), lambda b: silu(b, b.args[0]), [identity_map(2)] * 2)
    up = p.matmul(p.x[0], p.x[2])
    return p.dispatch(
        p.elementwise(
            [gate, up], p.empty(m, n), lambda b: b.op(arith.MulfOp, b.args[0], b.args[1]), [identity_map(2)] * 3
        )
    )


def expected_gate_and_up(x: Array, gate: Array, up: Array) -> Array:
    """What `gate_and_up` gives."""
    g = x.astype(np.float64) @ gate
    return g / (1 + np.exp(-g)) * (x.astype(np.float64) @ up)


def window(rank: int, at: Sequence[int | tuple[int, int, int]]) -> AffineMap:
    """A map of `rank` loops; `(pixel, step, tap)` is `pixel * step + tap`."""
    dims = [AffineExpr.dimension(i) for i in range(rank)]
    return AffineMap(rank, 0, tuple(dims[a] if isinstance(a, int) else dims[a[0]] * a[1] + dims[a[2]] for a in at))


def convolved(p: Program, x: SSAValue, filter_: SSAValue, *shape: Size) -> SSAValue:
    """A 3x3 convolution of an image, channels last, with padding 1 read in place; `shape` is that of the result."""
    padded = p.pad(x, [0, 1, 1, 0], [0, 1, 1, 0])
    maps = [window(7, [0, (1, 1, 4), (2, 1, 5), 6]), dims_map(7, [4, 5, 6, 3]), dims_map(7, [0, 1, 2, 3])]
    return p.multiply_add(padded, filter_, p.zeros(*shape), maps, "pppprrr")


def depthwise(p: Program, x: SSAValue, filter_: SSAValue, *shape: Size) -> SSAValue:
    """A 3x3 depthwise convolution, channels last, with padding 1 read in place."""
    padded = p.pad(x, [0, 1, 1, 0], [0, 1, 1, 0])
    maps = [window(6, [0, (1, 1, 4), (2, 1, 5), 3]), dims_map(6, [4, 5, 3]), dims_map(6, [0, 1, 2, 3])]
    return p.multiply_add(padded, filter_, p.zeros(*shape), maps, "pppprr")


def pooled(p: Program, x: SSAValue, size: int, *shape: Size) -> SSAValue:
    """The largest element of every `size` by `size` window, side by side; `shape` is that of the result."""
    taps = p.empty(size, size)
    maps = [window(6, [0, (1, size, 4), (2, size, 5), 3]), dims_map(6, [4, 5]), dims_map(6, [0, 1, 2, 3])]
    kinds = ["parallel"] * 4 + ["reduction"] * 2
    init = p.zeros(*shape, value=-math.inf)
    return p.emit.generic(
        [x, taps], [init], maps, kinds, lambda b: [b.op(arith.MaximumfOp, b.args[2], b.args[0])]
    ).results[0]


def over_image(p: Program, x: SSAValue, n: Size, channels: Size) -> SSAValue:
    """The sum of every channel over the image."""
    maps = [identity_map(4), dims_map(4, [0, 3])]
    kinds = ["parallel", "reduction", "reduction", "parallel"]
    return p.emit.generic(
        [x], [p.zeros(n, channels)], maps, kinds, lambda b: [b.op(arith.AddfOp, b.args[1], b.args[0])]
    ).results[0]


def expected_convolution(x: Array, filter_: Array) -> Array:
    """What `convolved` and (for a filter without output channels) `depthwise` give."""
    x = np.pad(x.astype(np.float64), ((0, 0), (1, 1), (1, 1), (0, 0)))
    h, w = x.shape[1] - 2, x.shape[2] - 2
    taps = [(i, j, x[:, i : i + h, j : j + w]) for i in range(3) for j in range(3)]
    return sum(part @ filter_[i, j] if filter_.ndim == 4 else part * filter_[i, j] for i, j, part in taps)  # pyright: ignore[reportReturnType]


def expected_pool(x: Array, size: int) -> Array:
    """What `pooled` gives."""
    n, h, w, c = x.shape
    cut = x[:, : h // size * size, : w // size * size]
    return cut.reshape(n, h // size, size, w // size, size, c).max((2, 4))
