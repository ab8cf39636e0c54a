"""Pad: a constant around the tensor, or its own elements again; around symbolic sizes their positions are computed in
the body."""

from __future__ import annotations

from collections.abc import Sequence

from xdsl.dialects import arith
from xdsl.ir import SSAValue

from fuseline.errors import FuselineError
from fuseline.frontends.onnx import scalars as s
from fuseline.frontends.onnx.node import OnnxNode, normal_axis
from fuseline.frontends.onnx.ops.borders import bordered
from fuseline.frontends.onnx.ops.indexing import gather_at
from fuseline.frontends.onnx.ops.slices import slice_of
from fuseline.frontends.onnx.ops.windows import pad
from fuseline.frontends.onnx.registry import onnx_op
from fuseline.frontends.onnx.tensors import NoNativeLowering, Tensor
from fuseline.ir.build import Body
from fuseline.ir.dim import Dim, add, lower_bound


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
    if not any(low) and not any(high):
        return x
    return (
        bordered(node, x, low, high, mode)
        if all(isinstance(size, int) for size in x.dims)
        else _repeating(node, x, low, high, mode)
    )


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


def _repeating(node: OnnxNode, x: Tensor, low: Sequence[int], high: Sequence[int], mode: str) -> Tensor:
    padded = [axis for axis in range(x.rank) if low[axis] or high[axis]]
    for axis in padded:
        _require_reach(node, x.dims[axis], max(low[axis], high[axis]), mode)
    dims = [add(size, a + b) for size, a, b in zip(x.dims, low, high, strict=True)]
    sizes = {axis: node.index(x.dims[axis]) for axis in padded}

    def place(b: Body) -> list[SSAValue]:
        loops = [s.loop_index(b, axis) for axis in range(x.rank)]
        return [
            _source(b, loop, low[axis], sizes[axis], mode) if axis in sizes else loop for axis, loop in enumerate(loops)
        ]

    return gather_at(node, x, [], dims, place)


def _require_reach(node: OnnxNode, size: Dim, amount: int, mode: str) -> None:
    """One reflection (or turn) must reach every position: smaller sizes are refused when they are fed, as in
    onnxruntime."""
    least = {"reflect": amount + 1, "wrap": amount, "edge": 1}[mode]
    if isinstance(size, int) and size < least:
        raise NoNativeLowering("pad-reach", f"{amount} elements around {size} in mode {mode}")
    node.program.require_at_least(size, least, node.label)


def _source(b: Body, loop: SSAValue, low: int, size: SSAValue, mode: str) -> SSAValue:
    """The position behind `loop`: `loop - low` clamped, mirrored at the first and last element, or taken around."""
    zero, one = s.index_constant(b, 0), s.index_constant(b, 1)
    at = b.op(arith.SubiOp, loop, s.index_constant(b, low))
    last = b.op(arith.SubiOp, size, one)
    if mode == "edge":
        return b.op(arith.MinSIOp, b.op(arith.MaxSIOp, at, zero), last)
    if mode == "reflect":
        mirrored = b.op(arith.MaxSIOp, at, b.op(arith.SubiOp, zero, at))
        return b.op(arith.MinSIOp, mirrored, b.op(arith.SubiOp, b.op(arith.AddiOp, last, last), mirrored))
    before, beyond = b.op(arith.CmpiOp, at, zero, "slt"), b.op(arith.CmpiOp, at, size, "sge")
    turned = s.select(b, beyond, b.op(arith.SubiOp, at, size), at)
    return s.select(b, before, b.op(arith.AddiOp, at, size), turned)
