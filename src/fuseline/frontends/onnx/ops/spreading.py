"""Operands of which only the run tells whether they repeat: they are read at `i * min(size - 1, 1)`, which stays at 0
where the size is 1.

    z[i] = x[i] + y[i * min(b - 1, 1)]      for x of [a], y of [b], where b is a or 1

Equal symbols never come here. That a size is 1 or the one it broadcasts to is a requirement of the program; of sizes
that one symbol makes equal for some values, those are meant (`broadcasting.py`), and the program requires them.
"""

from __future__ import annotations

from collections.abc import Sequence

from xdsl.dialects import arith, tensor
from xdsl.ir import SSAValue

from fuseline.frontends.onnx import scalars as s
from fuseline.frontends.onnx.broadcasting import may_repeat
from fuseline.frontends.onnx.node import OnnxNode
from fuseline.frontends.onnx.tensors import Tensor
from fuseline.ir.build import Body, element_of
from fuseline.ir.context import SizeRequirement
from fuseline.ir.dim import Dim, add, maximum, minimum, mul, sub


def spread(node: OnnxNode, t: Tensor, out: Sequence[Dim]) -> Tensor:
    """`t` as large as `out` (aligned at the last dimension) along the axes where only the run tells whether it repeats;
    itself without any."""
    offset = len(out) - t.rank
    axes = [axis for axis, size in enumerate(t.dims) if may_repeat(size, out[offset + axis])]
    if not axes:
        return t
    for axis in axes:
        _require_one_or(node, t.dims[axis], out[offset + axis])
    steps = {axis: node.index(minimum(sub(t.dims[axis], 1), 1)) for axis in axes}
    return _read(
        node, t, tuple(out[offset + axis] if axis in axes else size for axis, size in enumerate(t.dims)), steps
    )


def _read(node: OnnxNode, t: Tensor, dims: tuple[Dim, ...], steps: dict[int, SSAValue]) -> Tensor:
    value = node.ssa(t)

    def body(b: Body) -> SSAValue:
        places = [s.loop_index(b, axis) for axis in range(t.rank)]
        for axis, step in steps.items():
            places[axis] = b.op(arith.MuliOp, places[axis], step)
        return b.op(tensor.ExtractOp, value, places, element_of(value))

    empty = node.program.empty(dims, t.dtype, node.emit)
    return Tensor(t.dtype, dims, value=node.emit.elementwise([], empty, body, []), name=t.name)


def _require_one_or(node: OnnxNode, size: Dim, out: Dim) -> None:
    """Let the program refuse a size that is neither 1 nor `out`: it must equal `out` where it is not 1, else itself."""
    differs = minimum(maximum(sub(size, 1), sub(1, size)), 1)
    node.program.require(SizeRequirement(size, add(size, mul(differs, sub(out, size))), node.label))
