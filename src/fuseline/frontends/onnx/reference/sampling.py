"""Samples between the elements of an image, as the ONNX standard defines them.

GridSample    every mode by both its names; each element that a sample reads is clamped or reflected by itself, in
              images of any size
AffineGrid    the element type of `theta`
"""

from __future__ import annotations

from itertools import product
from typing import Any

import numpy as np
from onnx.reference.op_run import OpRun

from fuseline.frontends.onnx.reference.corrections import Node

CUBIC = -0.75


class GridSample(Node):
    """`x` [batch, channels, *sizes] at the places of `grid` [batch, *places, rank], which says the last axis first,
    from -1 to 1."""

    def _run(
        self, x: Any, grid: Any, align_corners: Any = None, mode: Any = None, padding_mode: Any = None, **_: Any
    ) -> tuple[Any, ...]:
        rank, align = x.ndim - 2, bool(align_corners)
        positions = [_position(grid[..., rank - 1 - axis], x.shape[2 + axis], align) for axis in range(rank)]
        taps = [_taps(position, str(mode)) for position in positions]
        out = np.zeros((x.shape[0], x.shape[1], *grid.shape[1:-1]), np.float32 if x.dtype.itemsize < 4 else x.dtype)
        for chosen in product(*taps):
            indices = [index for index, _ in chosen]
            weight = np.prod(np.stack([w for _, w in chosen]), 0)
            out += _elements(x, indices, str(padding_mode), align) * weight[:, None]
        return (out.astype(x.dtype),)


def _position(grid: Any, size: int, align: bool) -> Any:
    return (grid + 1) / 2 * (size - 1) if align else ((grid + 1) * size - 1) / 2


def _taps(position: Any, mode: str) -> list[tuple[Any, Any]]:
    """The elements along one axis that a sample reads, each with its weight."""
    if mode == "nearest":
        return [(np.rint(position).astype(np.int64), np.ones_like(position))]
    low = np.floor(position)
    rest, first = position - low, low.astype(np.int64)
    if mode in ("linear", "bilinear"):
        return [(first, 1 - rest), (first + 1, rest)]
    return [(first - 1 + i, _cubic(np.abs(rest + 1 - i))) for i in range(4)]


def _cubic(t: Any) -> Any:
    inner = ((CUBIC + 2) * t - (CUBIC + 3)) * t * t + 1
    outer = ((CUBIC * t - 5 * CUBIC) * t + 8 * CUBIC) * t - 4 * CUBIC
    return np.where(t <= 1, inner, outer)


def _elements(x: Any, indices: list[Any], padding: str, align: bool) -> Any:
    """`x` at integer places: zero, clamped or reflected where they lie outside."""
    inside = np.ones(indices[0].shape, bool)
    found: list[Any] = []
    for index, size in zip(indices, x.shape[2:], strict=True):
        inside &= (index >= 0) & (index < size)
        found.append(np.clip(_reflected(index, size, align) if padding == "reflection" else index, 0, size - 1))
    batch = np.arange(x.shape[0]).reshape(-1, *[1] * (indices[0].ndim - 1))
    picked = np.moveaxis(x[(batch, slice(None), *found)], -1, 1)
    return np.where(inside[:, None], picked, 0) if padding == "zeros" else picked


def _reflected(index: Any, size: int, align: bool) -> Any:
    """At the centres of the outermost elements (`align`), or at their outer edges."""
    if align:
        period = max(2 * (size - 1), 1)
        turned = index % period
        return np.minimum(turned, period - turned) if size > 1 else np.zeros_like(index)
    turned = index % (2 * size)
    return np.minimum(turned, 2 * size - 1 - turned)


class AffineGrid(Node):
    """The places of a grid of `size` under the affine maps `theta` [batch, rank, rank + 1]."""

    def _run(self, theta: Any, size: Any, align_corners: Any = None, **_: Any) -> tuple[Any, ...]:
        sizes = [int(n) for n in size[2:]]
        lines = [np.linspace(-1, 1, n) if align_corners and n > 1 else (2 * np.arange(n) + 1) / n - 1 for n in sizes]
        lines = [np.zeros(1) if align_corners and n == 1 else line for line, n in zip(lines, sizes, strict=True)]
        positions = np.stack([*[*np.meshgrid(*lines, indexing="ij")][::-1], np.ones(sizes)], -1)
        return (np.einsum("bij,...j->b...i", theta.astype(np.float64), positions).astype(theta.dtype),)


SAMPLING: tuple[type[OpRun], ...] = (GridSample, AffineGrid)
"""What to give `ReferenceEvaluator` as `new_ops`."""
