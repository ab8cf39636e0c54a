"""AffineGrid: the places of a regular grid under affine maps, as one product with a constant."""

from __future__ import annotations

from collections.abc import Sequence
from math import prod
from typing import Any

import numpy as np
from numpy.typing import NDArray

from fuseline.errors import FuselineError
from fuseline.frontends.onnx.emission import contract, reshape
from fuseline.frontends.onnx.node import OnnxNode
from fuseline.frontends.onnx.registry import onnx_op
from fuseline.frontends.onnx.tensors import NoNativeLowering, Tensor, known
from fuseline.ir.constant_budget import folded_name

MOST_PLACES = 1 << 20
"""Larger grids would be large constants; their places are computed on the host."""


@onnx_op("AffineGrid", since=20, in_f32=True)
def affine_grid(node: OnnxNode) -> Tensor:
    """`theta` [batch, rank, rank + 1] and sizes [batch, channels, *sizes] give [batch, *sizes, rank]; the last axis of
    an image comes first. Raises FuselineError: E0107 for maps of another shape, and negative sizes."""
    theta, sizes = node[0], [int(size) for size in node[1].numbers().reshape(-1)[2:]]
    rank = len(sizes)
    if theta.rank != 3 or theta.dims[1:] != (rank, rank + 1):
        raise FuselineError(
            "E0107",
            f"maps of shape {theta.dims} for {rank} spatial axes",
            node=node.label,
            hint="[batch, rank, rank + 1]",
        )
    if min(sizes, default=0) < 0:
        raise FuselineError("E0107", f"a grid of {sizes}", node=node.label, hint="sizes are not negative")
    if prod(sizes) > MOST_PLACES or not node.program.may_make(prod(sizes) * (rank + 1), theta.dtype):
        raise NoNativeLowering("large-constant", f"a grid of {sizes}")
    positions = known(
        _positions(sizes, bool(node.integer("align_corners"))).astype(theta.dtype), name=folded_name("grid")
    )
    batch, count = theta.dims[0], positions.dims[0]
    product = contract(
        node, (positions, [1, 3]), (theta, [0, 2, 3]), (batch, count, rank, rank + 1), (0, 1, 2), theta.dtype
    )
    return reshape(node, product, (batch, *sizes, rank))


def _positions(sizes: Sequence[int], align: bool) -> NDArray[Any]:
    """Homogeneous coordinates [places, rank + 1] from -1 to 1: of the elements' centres, or with `align` up to those of
    the outermost."""
    lines = [_line(size, align) for size in sizes]
    mesh = np.meshgrid(*lines, indexing="ij")
    return np.stack([*reversed(mesh), np.ones(sizes)], -1).reshape(-1, len(sizes) + 1)


def _line(size: int, align: bool) -> NDArray[np.float64]:
    if not align:
        return (2 * np.arange(size) + 1) / max(size, 1) - 1
    return np.linspace(-1, 1, size) if size > 1 else np.zeros(size)
