"""Columns back into an image: windows that tile the image without overlap are a reshape and a transpose; where they
overlap, each tap of the window is an image of its own, with zeros between and around its elements, and those are added.

    window of 2, in steps of 1     a0 a1 a2 .       first taps
                                   .  b0 b1 b2      second taps, one further
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import product
from math import prod

from xdsl.ir import SSAValue

from fuseline.frontends.onnx import scalars as s
from fuseline.frontends.onnx.dtypes import is_float
from fuseline.frontends.onnx.emission import elementwise, reshape
from fuseline.frontends.onnx.node import OnnxNode
from fuseline.frontends.onnx.ops.shape import transposed
from fuseline.frontends.onnx.ops.slices import slice_of
from fuseline.frontends.onnx.ops.windows import pad
from fuseline.frontends.onnx.registry import onnx_op
from fuseline.frontends.onnx.tensors import NoNativeLowering, Tensor
from fuseline.ir.build import Body
from fuseline.ir.dim import Dim, floor_div

MOST_TAPS = 36
"""Elements of a window whose images are added in one sum."""


@onnx_op("Col2Im", since=18, in_f32=True)
def col2im(node: OnnxNode) -> Tensor:
    """`[n, c * block, positions]` as `[n, c, *image]`: for each element of the image the sum of those elements of the
    windows that lie there."""
    axes = _axes(node)
    x, image = node[0], node[1].sizes()
    if all(axis.tiles for axis in axes) and _are_whole(image, axes):
        return _tiled(node, image, axes)
    sizes = [size for size in image if isinstance(size, int)]
    if len(sizes) < len(image) or not is_float(x.dtype):
        raise NoNativeLowering("overlapping-windows", "elements of several windows are summed up")
    if prod(axis.block for axis in axes) > MOST_TAPS:
        raise NoNativeLowering("overlapping-windows", "elements of many windows are summed up")
    return _summed(node, sizes, axes)


@dataclass(frozen=True, slots=True)
class _Axis:
    """How windows lie along an axis of the image."""

    block: int
    stride: int
    dilation: int
    low: int
    high: int

    @property
    def tiles(self) -> bool:
        """Whether each window begins where the one before ends."""
        dense = self.dilation == 1 or self.block == 1
        return self.stride == self.block and dense and self.low == self.high == 0

    def positions(self, image: int) -> int:
        """Windows over so many elements."""
        return (image + self.low + self.high - self.dilation * (self.block - 1) - 1) // self.stride + 1


def _axes(node: OnnxNode) -> list[_Axis]:
    block = [int(size) for size in node[2].numbers().reshape(-1)]
    rank = len(block)
    steps = (node.integers(name) or [1] * rank for name in ("strides", "dilations"))
    pads = node.integers("pads") or [0] * (2 * rank)
    return [_Axis(*one) for one in zip(block, *steps, pads[:rank], pads[rank:], strict=True)]


def _are_whole(image: Sequence[Dim], axes: Sequence[_Axis]) -> bool:
    return all(isinstance(size, int) and size % axis.block == 0 for size, axis in zip(image, axes, strict=True))


def _tiled(node: OnnxNode, image: Sequence[Dim], axes: Sequence[_Axis]) -> Tensor:
    opened = _opened(node, axes, [floor_div(size, axis.block) for size, axis in zip(image, axes, strict=True)])
    rank = len(axes)
    order = [0, 1, *(axis for i in range(rank) for axis in (2 + rank + i, 2 + i))]
    return reshape(node, transposed(node, opened, order), (*opened.dims[:2], *image))


def _opened(node: OnnxNode, axes: Sequence[_Axis], counts: Sequence[Dim]) -> Tensor:
    """`[n, c, *block, *positions]`."""
    x, block = node[0], [axis.block for axis in axes]
    return reshape(node, x, (x.dims[0], floor_div(x.dims[1], prod(block)), *block, *counts))


def _summed(node: OnnxNode, image: Sequence[int], axes: Sequence[_Axis]) -> Tensor:
    counts = [axis.positions(size) for axis, size in zip(axes, image, strict=True)]
    opened = _opened(node, axes, counts)
    taps = product(*(range(axis.block) for axis in axes))
    images = [_image_of(node, opened, tap, image, axes) for tap in taps]

    def body(b: Body, *elements: SSAValue) -> SSAValue:
        total = elements[0]
        for element in elements[1:]:
            total = s.add(b, node[0].dtype, total, element)
        return total

    return elementwise(node, images, node[0].dtype, body)


def _image_of(
    node: OnnxNode, opened: Tensor, tap: Sequence[int], image: Sequence[int], axes: Sequence[_Axis]
) -> Tensor:
    """The elements of one tap, each where it lies in the image, zeros elsewhere."""
    lead, counts = opened.dims[:2], opened.dims[2 + len(axes) :]
    sizes = (*lead, *(1 for _ in axes), *counts)
    found = slice_of(node, opened, [0, 0, *tap, *(0 for _ in axes)], sizes, [1] * opened.rank)
    found = reshape(node, found, (*lead, *(size for count in counts for size in (count, 1))))
    apart = [step for axis in axes for step in (0, axis.stride - 1)]
    found = pad(node, found, [0] * found.rank, [0, 0, *apart], 0.0)
    runs = [count * axis.stride for count, axis in zip(counts, axes, strict=True) if isinstance(count, int)]
    found = reshape(node, found, (*lead, *runs))
    first = [place * axis.dilation - axis.low for place, axis in zip(tap, axes, strict=True)]
    return _placed(node, found, first, image)


def _placed(node: OnnxNode, x: Tensor, first: Sequence[int], image: Sequence[int]) -> Tensor:
    """`x`, whose last axes begin at `first` of an image, cut to it and with zeros around."""
    runs = [size for size in x.dims[2:] if isinstance(size, int)]
    begin = [min(max(0, -at), run) for at, run in zip(first, runs, strict=True)]
    end = [max(b, min(run, size - at)) for b, run, size, at in zip(begin, runs, image, first, strict=True)]
    inside = [last - start for start, last in zip(begin, end, strict=True)]
    cut = slice_of(node, x, [0, 0, *begin], (*x.dims[:2], *inside), [1] * x.rank)
    low = [min(max(0, at), size) for at, size in zip(first, image, strict=True)]
    high = [size - before - count for size, before, count in zip(image, low, inside, strict=True)]
    return pad(node, cut, [0, 0, *low], [0, 0, *high], 0.0)
