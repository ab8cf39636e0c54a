"""Sums of products over loops as matrix multiplication: what makes the oracle fast enough for whole models."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

Array = NDArray[Any]

COPY_LIMIT_BYTES = 256 * 1024 * 1024
"""A window's unrolled copy is made piecewise above this."""

SHORT_REDUCTION = 64
"""Up to here a matrix-vector product (a depthwise convolution) is summed term by term instead of unrolled and
multiplied."""

EXACT_FLOAT64 = 2**53


@dataclass(frozen=True)
class Axes:
    """Loops by role: shared by both factors and kept, of one factor only, and summed over."""

    batch: tuple[int, ...]
    rows: tuple[int, ...]
    columns: tuple[int, ...]
    summed: tuple[int, ...]


def sum_of_products(a: Array, b: Array, sizes: Sequence[int], reductions: Sequence[int]) -> Array:
    """`sum(a * b)` over the loops in `reductions`, which keep extent 1.

    `a` and `b` have one dimension per loop, of the loop's extent or 1. Floats of 16 bits are summed in float32;
    integers exactly, then wrapped to their dtype.
    """
    a, b = np.asarray(a), np.asarray(b)
    dtype = a.dtype
    if dtype.kind in "biu":
        return _integers(a, b, sizes, reductions)
    if dtype.itemsize < 4:
        return sum_of_products(a.astype(np.float32), b.astype(np.float32), sizes, reductions).astype(dtype)
    return _floats(a, b, sizes, reductions)


def _integers(a: Array, b: Array, sizes: Sequence[int], reductions: Sequence[int]) -> Array:
    """Through float64 where every partial sum is exact there (BLAS has no integers), else in int64."""
    dtype = a.dtype
    terms = math.prod(sizes[d] for d in reductions)
    if _largest(a) * _largest(b) * terms < EXACT_FLOAT64:
        return _floats(a.astype(np.float64), b.astype(np.float64), sizes, reductions).astype(np.int64).astype(dtype)
    return _floats(a.astype(np.int64), b.astype(np.int64), sizes, reductions).astype(dtype)


def _largest(a: Array) -> int:
    return max(abs(int(a.max())), abs(int(a.min()))) if a.size else 0


def _floats(a: Array, b: Array, sizes: Sequence[int], reductions: Sequence[int]) -> Array:
    repeats = math.prod(sizes[d] for d in reductions if a.shape[d] == b.shape[d] == 1)
    alone_a = tuple(d for d in reductions if a.shape[d] != 1 and b.shape[d] == 1)
    alone_b = tuple(d for d in reductions if b.shape[d] != 1 and a.shape[d] == 1)
    a = a.sum(axis=alone_a, keepdims=True) if alone_a else a
    b = b.sum(axis=alone_b, keepdims=True) if alone_b else b
    out = _multiplied(a, b, _roles(a, b, reductions))
    return out if repeats == 1 else out * out.dtype.type(repeats)


def _roles(a: Array, b: Array, reductions: Sequence[int]) -> Axes:
    summed = tuple(d for d in reductions if a.shape[d] != 1)
    kept = [d for d in range(a.ndim) if d not in summed]
    return Axes(
        batch=tuple(d for d in kept if a.shape[d] != 1 and b.shape[d] != 1),
        rows=tuple(d for d in kept if a.shape[d] != 1 and b.shape[d] == 1),
        columns=tuple(d for d in kept if a.shape[d] == 1 and b.shape[d] != 1),
        summed=summed,
    )


def _multiplied(a: Array, b: Array, axes: Axes) -> Array:
    terms = _size(a, axes.summed)
    if terms == 0:
        return np.zeros(
            [1 if d in axes.summed else max(m, n) for d, (m, n) in enumerate(zip(a.shape, b.shape, strict=True))],
            a.dtype,
        )
    if (not axes.rows or not axes.columns) and terms <= SHORT_REDUCTION:
        return _term_by_term(a, b, axes)
    if a.size * a.itemsize > COPY_LIMIT_BYTES and axes.rows:
        return _piecewise(a, b, axes)
    return _matrix_product(a, b, axes)


def _size(a: Array, axes: Sequence[int]) -> int:
    return math.prod(a.shape[d] for d in axes)


def _term_by_term(a: Array, b: Array, axes: Axes) -> Array:
    out: Any = None
    for where in np.ndindex(*(a.shape[d] for d in axes.summed)):
        index: list[Any] = [slice(None)] * a.ndim
        for d, i in zip(axes.summed, where, strict=True):
            index[d] = slice(i, i + 1)
        term = a[tuple(index)] * b[tuple(index)]
        out = term if out is None else np.add(out, term, out=out)
    return out


def _piecewise(a: Array, b: Array, axes: Axes) -> Array:
    axis = max(axes.rows, key=lambda d: a.shape[d])
    half = a.shape[axis] // 2
    first, second = np.split(a, [half], axis)
    return np.concatenate([_multiplied(part, b, _roles_after_split(axes, part)) for part in (first, second)], axis)


def _roles_after_split(axes: Axes, part: Array) -> Axes:
    rows = tuple(d for d in axes.rows if part.shape[d] != 1)
    return Axes(axes.batch, rows, axes.columns, axes.summed)


def _matrix_product(a: Array, b: Array, axes: Axes) -> Array:
    """[batch, rows, summed] @ [batch, summed, columns], put back into loop order."""
    lone = tuple(d for d in range(a.ndim) if d not in (*axes.batch, *axes.rows, *axes.columns, *axes.summed))
    left = a.transpose(*axes.batch, *axes.rows, *axes.summed, *axes.columns, *lone)
    right = b.transpose(*axes.batch, *axes.summed, *axes.columns, *axes.rows, *lone)
    batch, rows, columns, terms = (
        _size(x, d) for x, d in ((a, axes.batch), (a, axes.rows), (b, axes.columns), (a, axes.summed))
    )
    product = np.matmul(left.reshape(batch, rows, terms), right.reshape(batch, terms, columns))
    order = (*axes.batch, *axes.rows, *axes.columns, *axes.summed, *lone)
    extents = [
        *(a.shape[d] for d in (*axes.batch, *axes.rows)),
        *(b.shape[d] for d in axes.columns),
        *(1 for _ in (*axes.summed, *lone)),
    ]
    return product.reshape(extents).transpose(np.argsort(order))
