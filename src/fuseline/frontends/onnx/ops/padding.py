"""Pad: a constant around the tensor, or its own elements again."""

from __future__ import annotations

from collections.abc import Sequence

from fuseline.errors import FuselineError
from fuseline.frontends.onnx.node import OnnxNode, normal_axis
from fuseline.frontends.onnx.ops.borders import bordered
from fuseline.frontends.onnx.ops.slices import slice_of
from fuseline.frontends.onnx.ops.windows import pad
from fuseline.frontends.onnx.registry import onnx_op
from fuseline.frontends.onnx.tensors import NoNativeLowering, Tensor
from fuseline.ir.dim import add, lower_bound


@onnx_op("Pad")
def pad_op(node: OnnxNode) -> Tensor:
    """`pads` elements before and after each axis; negative ones cut. Raises FuselineError: E0107 for other than two
    pads per axis."""
    x, mode = node[0], node.text("mode", "constant")
    low, high = _amounts(node, x.rank)
    if min((*low, *high), default=0) < 0:
        x = _cut(node, x, [min(v, 0) for v in low], [min(v, 0) for v in high])
        low, high = [max(v, 0) for v in low], [max(v, 0) for v in high]
    if mode == "constant":
        return pad(node, x, low, high, _value(node))
    return bordered(node, x, low, high, mode) if any(low) or any(high) else x


def _amounts(node: OnnxNode, rank: int) -> tuple[list[int], list[int]]:
    pads = node.ints_or_input("pads", 1) or node.integers("paddings")
    given = node.get(3)
    axes = [normal_axis(int(a), rank) for a in given.numbers().reshape(-1)] if given is not None else list(range(rank))
    if len(pads) != 2 * len(axes):
        raise FuselineError("E0107", f"{len(pads)} pads for {len(axes)} axes")
    low, high = [0] * rank, [0] * rank
    for i, axis in enumerate(axes):
        low[axis], high[axis] = pads[i], pads[len(axes) + i]
    return low, high


def _value(node: OnnxNode) -> float | int:
    given = node.get(2)
    return given.numbers().reshape(-1)[0].item() if given is not None else node.number("value", 0.0)


def _cut(node: OnnxNode, x: Tensor, low: Sequence[int], high: Sequence[int]) -> Tensor:
    sizes = [add(dim, a + b) for dim, a, b in zip(x.dims, low, high, strict=True)]
    if any((lower_bound(size) or 0) < 0 for size in sizes):
        raise NoNativeLowering("symbolic-pad", "more may be cut than there is")
    return slice_of(node, x, [-v for v in low], sizes, [1] * x.rank)
