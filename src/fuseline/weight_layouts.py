"""How a constant is laid out for a kernel: said by the compiler, applied by it or by the runtime when it loads a
program whose weights are stored as the model has them."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import reduce
from math import prod
from typing import Any

import numpy as np
from numpy.typing import NDArray

from fuseline.errors import FuselineError

Bytes = NDArray[np.uint8]

_MOST_LAYOUTS = 16
"""Layouts of one constant behind each other; there are two at most."""

_PIECE = 512
"""Columns that are multiplied by a layout's matrices at once: they stay in cache, and BLAS does not share them out
among threads."""


@dataclass(frozen=True, slots=True)
class PackedLayout:
    """How a constant is laid out for a kernel: transform, zero-pad each dimension to `pad_to`, reshape, permute, store
    contiguously.

    `matrices`, where given, has a matrix (rows x size of the dimension) or None per dimension: along it the constant is
    replaced by the matrix times it, all in float64, rounded once at the end. `then` is a second layout of the same
    constant, right behind the first. `shape`: the sizes that the constant is seen with, where a kernel takes several of
    its dimensions as one; (): those that the kernel is handed it with.
    """

    pad_to: tuple[int, ...]
    reshape: tuple[int, ...]
    permutation: tuple[int, ...]
    matrices: tuple[tuple[tuple[float, ...], ...] | None, ...] = ()
    then: PackedLayout | None = None
    shape: tuple[int, ...] = ()

    @property
    def elements(self) -> int:
        """Elements of all that is laid out."""
        return prod(self.pad_to) + (self.then.elements if self.then is not None else 0)


@dataclass(frozen=True, slots=True)
class LayoutKey:
    """A layout of a constant seen with `dims` (a reshape may lie between the constant and the kernel)."""

    dims: tuple[int, ...]
    layout: PackedLayout


def key_of(layout: PackedLayout, dims: tuple[int, ...]) -> LayoutKey:
    """How a constant of sizes `dims` lies for a kernel that asks for `layout`."""
    return LayoutKey(layout.shape or dims, replace(layout, shape=()))


@dataclass(frozen=True, slots=True)
class SharedLayout:
    """How a kernel reads a constant that lies as another kernel asked for it: `key` says how, `axes[i]` is the reader's
    dimension behind dimension `i` of `key.dims`."""

    axes: tuple[int, ...]
    key: LayoutKey


@dataclass(frozen=True, eq=False)
class WeightSource:
    """What a packed constant is made from: `data`, row-major elements of `dtype` in `shape` as the model has them,
    transposed by `axes`, laid out as `key` says."""

    data: Bytes
    dtype: np.dtype[Any]
    shape: tuple[int, ...]
    axes: tuple[int, ...]
    key: LayoutKey

    @property
    def array(self) -> NDArray[Any]:
        """The constant before it is laid out; a view of `data`."""
        return self.data.view(self.dtype).reshape(self.shape).transpose(self.axes)


def weight_source(array: NDArray[Any], key: LayoutKey) -> WeightSource | None:
    """What `array` in that layout is made from, without a copy; None where its elements are not all of a block of
    memory: a slice of a weight, or one that repeats."""
    order = sorted(range(array.ndim), key=lambda axis: -array.strides[axis])
    whole = array.transpose(order)
    if not whole.flags.c_contiguous:
        return None
    axes = tuple(order.index(axis) for axis in range(array.ndim))
    return WeightSource(whole.reshape(-1).view(np.uint8), array.dtype, whole.shape, axes, key)


def digits_of(layout: PackedLayout) -> list[range] | None:
    """For each dimension of the constant the extents of `reshape` that it is cut into, outermost first; None where
    elements have no place of their own: they are transformed, or an extent spans dimensions."""
    if any(layout.matrices):
        return None
    found: list[range] = []
    start = 0
    for size in layout.pad_to:
        end, extent = start, 1
        while end < len(layout.reshape) and extent < size:
            extent *= layout.reshape[end]
            end += 1
        if extent != size:
            return None
        found.append(range(start, end))
        start = end
    return found if all(extent == 1 for extent in layout.reshape[start:]) else None


def step_along(layout: PackedLayout, axis: int) -> int:
    """Elements between neighbours along a dimension of the constant, most of them; 0 along one of size 1."""
    digits = [i for i in (digits_of(layout) or [])[axis] if layout.reshape[i] != 1]
    if not digits:
        return 0
    behind = layout.permutation[layout.permutation.index(digits[-1]) + 1 :]
    return prod(layout.reshape[i] for i in behind)


def packed_bytes(array: NDArray[Any], key: LayoutKey | None) -> int:
    """Bytes of `array` in the wanted layout."""
    return array.nbytes if key is None else key.layout.elements * array.dtype.itemsize


def fill(array: NDArray[Any], key: LayoutKey | None, target: Bytes) -> None:
    """Write `array` in the wanted layout (None: row-major) to `target`. Raises FuselineError (E0901) for a layout that
    does not fit."""
    if key is not None:
        _pack(array, key, target)
    elif array.nbytes:
        np.copyto(target.view(array.dtype).reshape(array.shape), array)


def is_plain(array: NDArray[Any], key: LayoutKey) -> bool:
    """Whether the layout leaves the bytes of `array` as they are in row-major order."""
    layout = key.layout
    moved = [i for i in layout.permutation if layout.reshape[i] != 1]
    return (
        moved == sorted(moved) and _seen(array, key) == layout.pad_to and not any(layout.matrices) and not layout.then
    )


def fits(array: NDArray[Any], key: LayoutKey) -> bool:
    """Whether `array` can be laid out so."""
    layout: PackedLayout | None = key.layout
    layouts: list[PackedLayout] = []
    for _ in range(_MOST_LAYOUTS):
        if layout is None:
            break
        layouts.append(layout)
        layout = layout.then
    return layout is None and all(_fits(_seen(array, LayoutKey(key.dims, one)), one) for one in layouts)


def _seen(array: NDArray[Any], key: LayoutKey) -> tuple[int, ...]:
    """The sizes that `array` is laid out with."""
    fits = prod(key.dims) == array.size and len(key.dims) == len(key.layout.pad_to)
    return key.dims if fits else array.shape


def _pack(array: NDArray[Any], key: LayoutKey, target: Bytes) -> None:
    """Apply a layout, written once. The source, cut at the real sizes, goes into the permuted view of `target`."""
    layout = key.layout
    if layout.then is not None:
        end = prod(layout.pad_to) * array.dtype.itemsize
        _pack(array, replace(key, layout=layout.then), target[end:])
        layout, target = replace(layout, then=None), target[:end]
    dims = _seen(array, key)
    if not _fits(dims, layout):
        raise FuselineError("E0901", f"layout {layout} does not fit a constant of shape {dims}")
    packed = target.view(array.dtype).reshape([layout.reshape[i] for i in layout.permutation])
    axis, size = _outermost(layout) or (None, 0)
    if axis is None:
        np.copyto(packed, _laid_out(array.reshape(dims), layout))
        return
    array, first = array.reshape(dims), layout.permutation[0]
    pad_to = tuple(size if i == axis else extent for i, extent in enumerate(layout.pad_to))
    step = replace(
        layout, pad_to=pad_to, reshape=tuple(1 if i == first else extent for i, extent in enumerate(layout.reshape))
    )
    for i, where in enumerate(packed):
        box = tuple(slice(i * size, (i + 1) * size) if other == axis else slice(None) for other in range(array.ndim))
        np.copyto(where, _laid_out(array[box], step)[0])


def _laid_out(array: NDArray[Any], layout: PackedLayout) -> NDArray[Any]:
    array = transformed(array, layout)
    if array.shape != layout.pad_to:
        array = np.pad(array, [(0, padded - size) for size, padded in zip(array.shape, layout.pad_to, strict=True)])
    return array.reshape(layout.reshape).transpose(layout.permutation)


def _outermost(layout: PackedLayout) -> tuple[int, int] | None:
    """The dimension of the constant whose steps are outermost once it is laid out, and how much of it is one step. A
    step at a time stays in cache while it is transformed, padded and permuted. None where the outermost steps are not
    steps of one untransformed dimension.
    """
    axis, product = 0, 1
    places: list[tuple[int, int]] = []
    for extent in layout.reshape:
        if axis == len(layout.pad_to) or extent == 0:
            return None
        places.append((axis, product))
        product *= extent
        if layout.pad_to[axis] % product:
            return None
        if product == layout.pad_to[axis]:
            axis, product = axis + 1, 1
    axis, before = places[layout.permutation[0]]
    if before != 1 or (layout.matrices and layout.matrices[axis] is not None):
        return None
    return axis, layout.pad_to[axis] // layout.reshape[layout.permutation[0]]


def _fits(dims: tuple[int, ...], layout: PackedLayout) -> bool:
    matrices = layout.matrices or (None,) * len(dims)
    if len(dims) != len(layout.pad_to) or len(dims) != len(matrices):
        return False
    if any(m is not None and len(m[0]) != size for m, size in zip(matrices, dims, strict=True)):
        return False
    sizes = [size if m is None else len(m) for m, size in zip(matrices, dims, strict=True)]
    padded = all(size <= to for size, to in zip(sizes, layout.pad_to, strict=True))
    return (
        padded
        and prod(layout.reshape) == prod(layout.pad_to)
        and sorted(layout.permutation) == list(range(len(layout.reshape)))
    )


def transformed(array: NDArray[Any], layout: PackedLayout) -> NDArray[Any]:
    """`array` times the layout's matrices, computed in float64 a piece at a time: the whole in float64 would be several
    times the result."""
    axes = [axis for axis, matrix in enumerate(layout.matrices) if matrix is not None]
    if not axes:
        return array
    matrices = [np.array(layout.matrices[axis], np.float64) for axis in axes]
    front = np.moveaxis(array, axes, range(len(axes)))
    columns = front.reshape(prod(front.shape[: len(axes)]), -1)
    matrix = reduce(np.kron, matrices)
    out = np.empty((len(matrix), columns.shape[1]), array.dtype)
    with np.errstate(over="ignore", invalid="ignore"):  # weights may be infinite, or become so
        for start in range(0, columns.shape[1], _PIECE):
            piece = slice(start, start + _PIECE)
            out[:, piece] = matrix @ columns[:, piece].astype(np.float64)
    sizes = [len(matrix) for matrix in matrices]
    return np.moveaxis(out.reshape(*sizes, *front.shape[len(axes) :]), range(len(axes)), axes)
