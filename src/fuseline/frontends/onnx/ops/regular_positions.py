"""Gathers along an axis whose constant indices follow a rule: no element has to be looked up.

    3 5 7 9          every other element from 3 on                                 a slice
    0 3 1 4 2 5      all of 6, written in 2 rows and read by columns               a transposition

Channel shuffles are written so, too (X. Zhang et al., ShuffleNet, 2018). Along the innermost dimension a shuffle stays
a gather: a product that stores neighbours apart is slower than a reader that takes every so many elements
(`cleanup/folds/transposing_slices.py`).
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from fuseline.frontends.onnx.emission import reshape
from fuseline.frontends.onnx.node import OnnxNode
from fuseline.frontends.onnx.ops.shape import transposed
from fuseline.frontends.onnx.ops.slices import slice_of
from fuseline.frontends.onnx.tensors import Tensor


def taken_by_rule(node: OnnxNode, data: Tensor, axis: int, indices: NDArray[Any]) -> Tensor | None:
    """The elements of `data` along `axis` at `indices` (one dimension) as a slice or a transposition; None where they
    are neither, lie outside, or where the size of the axis is unknown."""
    size = data.dims[axis]
    if indices.ndim != 1 or not isinstance(size, int) or not _is_inside(indices, size):
        return None
    places = np.where(indices < 0, indices + size, indices)
    step = _step(places)
    if step is not None:
        return _every(node, data, axis, (int(places[0]), len(places), step))
    rows = _rows(places, size)
    innermost = all(other == 1 for other in data.dims[axis + 1 :])
    return None if rows is None or innermost else _by_columns(node, data, axis, rows)


def _is_inside(indices: NDArray[Any], size: int) -> bool:
    return bool(indices.size) and bool(((indices >= -size) & (indices < size)).all())


def _step(places: NDArray[Any]) -> int | None:
    """How far the places are apart, where that is the same everywhere and forwards."""
    steps = set(np.diff(places).tolist()) or {1}
    return steps.pop() if len(steps) == 1 and min(steps) > 0 else None


def _rows(places: NDArray[Any], size: int) -> int | None:
    """How many rows there are where `places` are all of `size`, written in rows and read by columns.

    >>> _rows(np.array([0, 3, 1, 4, 2, 5]), 6)
    2
    """
    columns = int(places[1] - places[0]) if len(places) == size > 1 else 0
    if columns <= 1 or size % columns or columns == size:
        return None
    return size // columns if np.array_equal(places, np.arange(size).reshape(-1, columns).T.ravel()) else None


def _every(node: OnnxNode, data: Tensor, axis: int, along: tuple[int, int, int]) -> Tensor:
    """The slice of the first place, the count and the step `along` the axis."""
    first, count, step = along
    at = range(data.rank)
    offsets, steps = [first if i == axis else 0 for i in at], [step if i == axis else 1 for i in at]
    return slice_of(node, data, offsets, [count if i == axis else data.dims[i] for i in at], steps)


def _by_columns(node: OnnxNode, data: Tensor, axis: int, rows: int) -> Tensor:
    size, before, after = data.dims[axis], data.dims[:axis], data.dims[axis + 1 :]
    assert isinstance(size, int)
    order = [*range(axis), axis + 1, axis, *range(axis + 2, data.rank + 1)]
    turned = transposed(node, reshape(node, data, [*before, rows, size // rows, *after]), order)
    return reshape(node, turned, data.dims)
