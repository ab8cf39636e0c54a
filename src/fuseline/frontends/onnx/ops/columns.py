"""Columns back into an image: windows that tile the image without overlap are a reshape and a transpose."""

from __future__ import annotations

from fuseline.frontends.onnx.emission import reshape
from fuseline.frontends.onnx.node import OnnxNode
from fuseline.frontends.onnx.ops.shape import transposed
from fuseline.frontends.onnx.registry import onnx_op
from fuseline.frontends.onnx.tensors import NoNativeLowering, Tensor
from fuseline.ir.dim import Dim, floor_div


@onnx_op("Col2Im", since=18)
def col2im(node: OnnxNode) -> Tensor:
    """`[n, c * block, positions]` as `[n, c, *image]`: one element of a window for each element of the image."""
    x, image = node[0], node[1].sizes()
    block = [int(size) for size in node[2].numbers().reshape(-1)]
    rank = len(block)
    tiled = (node.integers("strides") or [1] * rank) == block and not any(node.integers("pads"))
    if not tiled or any(
        step != 1 and size != 1 for step, size in zip(node.integers("dilations") or [1] * rank, block, strict=True)
    ):
        raise NoNativeLowering("overlapping-windows", "elements of several windows are summed up")
    if not all(isinstance(size, int) and size % step == 0 for size, step in zip(image, block, strict=True)):
        raise NoNativeLowering("overlapping-windows", "the windows do not tile the image")
    channels = 1
    for size in block:
        channels *= size
    counts: list[Dim] = [floor_div(size, step) for size, step in zip(image, block, strict=True)]
    opened = reshape(node, x, (x.dims[0], floor_div(x.dims[1], channels), *block, *counts))
    order = [0, 1, *(axis for i in range(rank) for axis in (2 + rank + i, 2 + i))]
    return reshape(node, transposed(node, opened, order), (*opened.dims[:2], *image))
