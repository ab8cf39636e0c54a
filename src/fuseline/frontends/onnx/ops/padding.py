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
from fuseline.ir.dim import Dim, add, lower_bound, maximum, minimum, mul


@onnx_op("Pad")
def pad_op(node: OnnxNode) -> Tensor:
    """`pads` elements before and after each axis, numbers or sizes; negative ones cut. Raises FuselineError: E0107 for
    other than two pads per axis."""
    x, mode = node[0], node.text("mode", "constant")
    low, high = _amounts(node, x.rank)
    if any((lower_bound(size) or 0) < 0 or lower_bound(size) is None for size in (*low, *high)):
        x = _cut(node, x, [minimum(size, 0) for size in low], [minimum(size, 0) for size in high])
        low, high = [maximum(size, 0) for size in low], [maximum(size, 0) for size in high]
    if mode == "constant":
        return pad(node, x, low, high, _value(node))
    return bordered(node, x, low, high, mode) if any(size != 0 for size in (*low, *high)) else x


def _amounts(node: OnnxNode, rank: int) -> tuple[list[Dim], list[Dim]]:
    pads = node.integers("pads") or node.integers("paddings") if node.get(1) is None else node[1].sizes()
    given = node.get(3)
    axes = [normal_axis(int(a), rank) for a in given.numbers().reshape(-1)] if given is not None else list(range(rank))
    if len(pads) != 2 * len(axes):
        raise FuselineError("E0107", f"{len(pads)} pads for {len(axes)} axes")
    low, high = list[Dim]([0] * rank), list[Dim]([0] * rank)
    for i, axis in enumerate(axes):
        low[axis], high[axis] = pads[i], pads[len(axes) + i]
    return low, high


def _value(node: OnnxNode) -> float | int:
    given = node.get(2)
    return given.numbers().reshape(-1)[0].item() if given is not None else node.number("value", 0.0)


def _cut(node: OnnxNode, x: Tensor, low: Sequence[Dim], high: Sequence[Dim]) -> Tensor:
    """`x` without the elements that negative pads take. Raises NoNativeLowering where a number may take more than there
    is: the runtimes answer that in their own way; sizes that do are refused when they are fed."""
    sizes = [add(dim, add(a, b)) for dim, a, b in zip(x.dims, low, high, strict=True)]
    for size, *cut in zip(sizes, low, high, strict=True):
        if (least := lower_bound(size)) is not None and least >= 0:
            continue
        if all(isinstance(amount, int) for amount in cut):
            raise NoNativeLowering("symbolic-pad", "more may be cut than there is")
        node.program.require_at_least(size, 0, node.label)
    return slice_of(node, x, [mul(size, -1) for size in low], sizes, [1] * x.rank)
