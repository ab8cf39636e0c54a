"""Borders that repeat the tensor itself: Pad's reflect, edge and wrap modes as reads through a table of positions per
axis."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray
from xdsl.ir import SSAValue

from fuseline.frontends.onnx import scalars
from fuseline.frontends.onnx.node import OnnxNode
from fuseline.frontends.onnx.ops.indexing import gather_at
from fuseline.frontends.onnx.tensors import NoNativeLowering, Tensor, known, static_sizes
from fuseline.ir.build import Body


def bordered(node: OnnxNode, x: Tensor, low: Sequence[int], high: Sequence[int], mode: str) -> Tensor:
    """`x` with `low` and `high` more elements per axis, read from inside by `mode`."""
    sizes = static_sizes(x.dims)
    changed = [axis for axis in range(x.rank) if low[axis] or high[axis]]
    tables = {axis: known(_positions(sizes[axis], low[axis], high[axis], mode)) for axis in changed}
    dims = [size + before + after for size, before, after in zip(sizes, low, high, strict=True)]

    def place(b: Body, *elements: SSAValue) -> list[SSAValue]:
        found = dict(zip(changed, elements, strict=True))
        return [
            scalars.as_index(b, found[axis]) if axis in found else scalars.loop_index(b, axis) for axis in range(x.rank)
        ]

    return gather_at(node, x, [(tables[axis], [axis]) for axis in changed], dims, place)


def _positions(size: int, low: int, high: int, mode: str) -> NDArray[np.int64]:
    """For every output position along an axis the input position that it repeats."""
    at = np.arange(-low, size + high, dtype=np.int64)
    if size == 0:
        raise NoNativeLowering("empty-border", "nothing to repeat")
    if mode == "edge":
        return np.clip(at, 0, size - 1)
    if mode == "wrap":
        return at % size
    if mode != "reflect":
        raise NoNativeLowering("pad-mode", mode)
    period = max(2 * (size - 1), 1)
    folded = at % period
    return np.minimum(folded, period - folded) if size > 1 else np.zeros_like(at)
