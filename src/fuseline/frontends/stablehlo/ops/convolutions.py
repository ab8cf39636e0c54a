"""Convolutions in any layout: the maps say which axis is which, so that nothing is transposed.

[b, 0, 1, f]x[0, 1, i, o]->[b, 0, 1, f]        loops: batch, positions, filters | channels, window
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TypeAlias, TypeVar

import numpy as np
from xdsl.ir.affine import AffineExpr, AffineMap

from fuseline.errors import FuselineError
from fuseline.frontends.onnx.dtypes import accumulator
from fuseline.frontends.onnx.emission import cast, filled, multiply_add_body, reshape, result
from fuseline.frontends.onnx.ops.shape import transposed
from fuseline.frontends.onnx.ops.slicing import Cut, taken
from fuseline.frontends.onnx.tensors import Tensor, known, static_size
from fuseline.frontends.stablehlo.hlo import Hlo
from fuseline.frontends.stablehlo.ops.padding import padded
from fuseline.frontends.stablehlo.registry import hlo_op
from fuseline.frontends.stablehlo.types import DType
from fuseline.ir.build import PARALLEL, REDUCTION
from fuseline.ir.dim import Dim, add, floor_div, sub

_LISTS = re.compile(r"\[([^\]]*)\]")


Axes: TypeAlias = tuple[int, int, tuple[int, ...]]
ItemT = TypeVar("ItemT")


@dataclass(frozen=True)
class Layout:
    """Which axis of each tensor is which: batch (of the filter: input channels), features (output channels), space."""

    image: Axes
    filters: Axes
    out: Axes


def layout_of(hlo: Hlo) -> Layout:
    """What `dim_numbers` say. Raises FuselineError (E0302) where they make no sense."""
    lists = [[name.strip() for name in item.split(",")] for item in _LISTS.findall(hlo.text("dimension_numbers"))]
    try:
        image, filters, out = lists
        space = [str(axis) for axis in range(len(image) - 2)]
        return Layout(
            (image.index("b"), image.index("f"), tuple(image.index(axis) for axis in space)),
            (filters.index("i"), filters.index("o"), tuple(filters.index(axis) for axis in space)),
            (out.index("b"), out.index("f"), tuple(out.index(axis) for axis in space)),
        )
    except ValueError as error:
        raise FuselineError(
            "E0302", f"{hlo.op.name}: dimension numbers that make no sense", node=hlo.location
        ) from error


@dataclass(frozen=True)
class Settings:
    """The window along each spatial axis."""

    strides: Sequence[int]
    pads: Sequence[tuple[int, int]]
    spread: Sequence[int]
    dilations: Sequence[int]
    turned: Sequence[int]


def settings_of(hlo: Hlo, rank: int) -> Settings:
    """The attributes of the window, with what they are where they are left out."""
    ones = [1] * rank
    return Settings(
        hlo.integers("window_strides", ones),
        hlo.paddings("padding", rank),
        hlo.integers("lhs_dilation", ones),
        hlo.integers("rhs_dilation", ones),
        hlo.integers("window_reversal", [0] * rank),
    )


@hlo_op("convolution")
def convolution(hlo: Hlo) -> Tensor:
    """A convolution of any rank and layout, grouped by features or by batch, of a spread image or with a dilated
    window."""
    layout = layout_of(hlo)
    settings = settings_of(hlo, len(layout.image[2]))
    groups, batches = hlo.integer("feature_group_count", 1), hlo.integer("batch_group_count", 1)
    if groups > 1 and batches > 1:
        raise FuselineError("E0302", f"{hlo.op.name}: groups of features and of the batch", node=hlo.location)
    filters = _turned(hlo, hlo[1], layout, settings)
    if max(settings.spread, default=1) > 1 and batches == 1 and filters.is_constant:
        found = _by_transposed(hlo, filters, layout, settings, groups)
        if found is not None:
            return found
    image = _framed(hlo, hlo[0], layout, settings)
    return _Emission(hlo, image, filters, layout, settings).emit(groups, batches)


def _turned(hlo: Hlo, w: Tensor, layout: Layout, settings: Settings) -> Tensor:
    """The filter with its window the other way round where the op says so."""
    axes = [axis for axis, flag in zip(layout.filters[2], settings.turned, strict=True) if flag]
    if not axes:
        return w
    if w.is_constant and w.array is not None:
        return known(np.flip(w.array, tuple(axes)).copy(), w.dtype, w.name)
    return taken(hlo.node, w, [Cut(sub(d, 1), d, -1) if i in axes else Cut(0, d, 1) for i, d in enumerate(w.dims)])


def _framed(hlo: Hlo, x: Tensor, layout: Layout, settings: Settings) -> Tensor:
    """The image with zeros between its elements and around it."""
    low, high, between = [0] * x.rank, [0] * x.rank, [0] * x.rank
    for axis, (before, after), step in zip(layout.image[2], settings.pads, settings.spread, strict=True):
        low[axis], high[axis], between[axis] = before, after, step - 1
    zero = known(np.zeros((), x.dtype))
    return padded(hlo, x, zero, low, high, between)


def _by_transposed(hlo: Hlo, w: Tensor, layout: Layout, settings: Settings, groups: int) -> Tensor | None:
    """A convolution of a spread image as ONNX's transposed one, which never forms it; None where it has strides, or
    cuts the image."""
    kernel = [static_size(w.dims[axis]) for axis in layout.filters[2]]
    spans = [(k - 1) * d + 1 for k, d in zip(kernel, settings.dilations, strict=True)]
    cut = [(s - 1 - low, s - 1 - high) for s, (low, high) in zip(spans, settings.pads, strict=True)]
    if max(settings.strides) > 1 or min(min(pair) for pair in cut) < 0 or w.array is None:
        return None
    inner, outer, space = layout.filters
    flipped = np.flip(w.array.transpose([outer, inner, *space]), tuple(range(2, 2 + len(space))))
    out, share = flipped.shape[:2]
    grouped = flipped.reshape(groups, out // groups, share, *kernel).swapaxes(1, 2)
    filters = known(np.ascontiguousarray(grouped).reshape(groups * share, out // groups, *kernel), w.dtype, w.name)
    image = transposed(hlo.node, hlo[0], [layout.image[0], layout.image[1], *layout.image[2]])
    pads = [low for low, _ in cut] + [high for _, high in cut]
    strides, dilations = list(settings.spread), list(settings.dilations)
    y = hlo.onnx("ConvTranspose", [image, filters], group=groups, strides=strides, dilations=dilations, pads=pads)[0]
    order = [layout.out[0], layout.out[1], *layout.out[2]]
    back = transposed(hlo.node, y, [order.index(axis) for axis in range(y.rank)])
    return cast(hlo.node, back, hlo.dtype())


@dataclass(frozen=True)
class _Emission:
    """The structured op over an image that is padded already."""

    hlo: Hlo
    image: Tensor
    filters: Tensor
    layout: Layout
    settings: Settings

    @property
    def rank(self) -> int:
        """The number of spatial axes."""
        return len(self.layout.image[2])

    def emit(self, groups: int, batches: int) -> Tensor:
        """The result in the layout that the op asks for."""
        count = max(groups, batches)
        wide = accumulator(self.hlo.dtype())
        if count == 1:
            return cast(self.hlo.node, self._plain(wide), self.hlo.dtype())
        if self._is_depthwise(groups):
            return cast(self.hlo.node, self._depthwise(wide), self.hlo.dtype())
        return cast(self.hlo.node, self._grouped(count, by_batch=batches > 1, wide=wide), self.hlo.dtype())

    def _is_depthwise(self, groups: int) -> bool:
        channels, filters = self.image.dims[self.layout.image[1]], self.filters.dims[self.layout.filters[1]]
        return groups == channels == filters

    def _positions(self) -> list[Dim]:
        """Where the window stands, per axis."""
        out: list[Dim] = []
        for at, axis in enumerate(self.layout.image[2]):
            kernel = static_size(self.filters.dims[self.layout.filters[2][at]])
            span = (kernel - 1) * self.settings.dilations[at] + 1
            out.append(add(floor_div(sub(self.image.dims[axis], span), self.settings.strides[at]), 1))
        return out

    def _window(self, position: Sequence[int], window: Sequence[int]) -> list[AffineExpr]:
        """Where each spatial axis of the image is read."""
        settings = zip(position, window, self.settings.strides, self.settings.dilations, strict=True)
        return [
            AffineExpr.dimension(p) * stride + AffineExpr.dimension(w) * dilation for p, w, stride, dilation in settings
        ]

    def _plain(self, wide: DType) -> Tensor:
        """Loops: the axes of the result in its order, then channels, then the window."""
        rank, layout = self.rank, self.layout
        channel, window = rank + 2, list(range(rank + 3, 2 * rank + 3))
        space = list(layout.out[2])
        read = self._window(space, window)
        image = _ordered(layout.image, AffineExpr.dimension(layout.out[0]), AffineExpr.dimension(channel), read)
        inside = [AffineExpr.dimension(loop) for loop in window]
        filters = _ordered(layout.filters, AffineExpr.dimension(channel), AffineExpr.dimension(layout.out[1]), inside)
        dims = _ordered(
            layout.out,
            self.image.dims[layout.image[0]],
            self.filters.dims[layout.filters[1]],
            self._positions(),
        )
        return self._generic(self.image, self.filters, image, filters, dims, 1 + rank, wide)

    def _depthwise(self, wide: DType) -> Tensor:
        """Loops: the axes of the result, then the window; the filter loses its unit axis."""
        rank, layout = self.rank, self.layout
        inner, outer, space = layout.filters
        window = list(range(rank + 2, 2 * rank + 2))
        read = self._window(list(layout.out[2]), window)
        channel = AffineExpr.dimension(layout.out[1])
        image = _ordered(layout.image, AffineExpr.dimension(layout.out[0]), channel, read)
        kept = [axis for axis in range(rank + 2) if axis != inner]
        flat = reshape(self.hlo.node, self.filters, [self.filters.dims[axis] for axis in kept])
        loops = {outer: channel, **{axis: AffineExpr.dimension(w) for axis, w in zip(space, window, strict=True)}}
        dims = _ordered(layout.out, self.image.dims[layout.image[0]], self.filters.dims[outer], self._positions())
        return self._generic(self.image, flat, image, [loops[axis] for axis in kept], dims, rank, wide)

    def _grouped(self, count: int, *, by_batch: bool, wide: DType) -> Tensor:
        """Loops: the axes of the result with the group before the features, then channels, then the window."""
        rank, layout, node = self.rank, self.layout, self.hlo.node
        split_axis = layout.image[0] if by_batch else layout.image[1]
        image = reshape(node, self.image, _split(self.image.dims, split_axis, count))
        filters = reshape(node, self.filters, _split(self.filters.dims, layout.filters[1], count))
        out_axes = _moved(layout.out, layout.out[1])
        group, total = layout.out[1], rank + 3
        channel, window = total, list(range(total + 1, total + 1 + rank))
        read = self._window(out_axes[2], window)
        loops = AffineExpr.dimension(out_axes[0]), AffineExpr.dimension(channel), AffineExpr.dimension(out_axes[1])
        rows = _with_group(_ordered(layout.image, loops[0], loops[1], read), split_axis, group)
        taps = [AffineExpr.dimension(loop) for loop in window]
        columns = _with_group(_ordered(layout.filters, loops[1], loops[2], taps), layout.filters[1], group)
        batch = image.dims[_moved(layout.image, split_axis)[0]]
        each = floor_div(self.filters.dims[layout.filters[1]], count)
        whole = _ordered(layout.out, batch, each, self._positions())
        dims = [*whole[:group], count, *whole[group:]]
        y = self._generic(image, filters, rows, columns, dims, 1 + rank, wide)
        joined = list(whole)
        joined[group] = self.filters.dims[layout.filters[1]]
        return reshape(node, y, joined)

    def _generic(
        self,
        image: Tensor,
        filters: Tensor,
        rows: Sequence[AffineExpr],
        columns: Sequence[AffineExpr],
        dims: Sequence[Dim],
        summed: int,
        wide: DType,
    ) -> Tensor:
        node, loops = self.hlo.node, len(dims) + summed
        maps = [
            AffineMap(loops, 0, tuple(rows)),
            AffineMap(loops, 0, tuple(columns)),
            AffineMap(loops, 0, tuple(AffineExpr.dimension(loop) for loop in range(len(dims)))),
        ]
        iterators = [PARALLEL] * len(dims) + [REDUCTION] * summed
        body = multiply_add_body(image.dtype, filters.dtype, wide)
        init = filled(node, 0, dims, wide)
        op = node.emit.generic([node.ssa(image), node.ssa(filters)], [init], maps, iterators, body)
        return result(op.results[0], dims, wide)


def _ordered(axes: Axes, first: ItemT, second: ItemT, rest: Sequence[ItemT]) -> list[ItemT]:
    """A list with each item at its axis."""
    found = {axes[0]: first, axes[1]: second, **dict(zip(axes[2], rest, strict=True))}
    return [found[axis] for axis in range(2 + len(rest))]


def _with_group(items: Sequence[AffineExpr], axis: int, group: int) -> list[AffineExpr]:
    """The loop of the group put in before an axis."""
    return [*items[:axis], AffineExpr.dimension(group), *items[axis:]]


def _split(dims: Sequence[Dim], axis: int, count: int) -> list[Dim]:
    return [*dims[:axis], count, floor_div(dims[axis], count), *dims[axis + 1 :]]


def _moved(axes: Axes, split: int) -> tuple[int, int, list[int]]:
    """Axes behind one that was put in before axis `split`."""

    def moved(axis: int) -> int:
        return axis + (axis >= split)

    return moved(axes[0]), moved(axes[1]), [moved(axis) for axis in axes[2]]
