"""Operands of which only the run tells whether they repeat: they are read at `i * min(size - 1, 1)`, which stays at 0
where the size is 1.

    z[i] = x[i] + y[i * min(b - 1, 1)]      for x of [a], y of [b], where b is a or 1

Equal symbols never come here. That a size is 1 or the one it broadcasts to is a requirement of the program; of sizes
that one symbol makes equal for some values, those are meant (`meant_sizes.py`), and the program requires them. Where
one may be 1 all the same, a second program reads them as they are (`literal_broadcasts`, see `fuseline/fallback.py`).
"""

from __future__ import annotations

from collections.abc import Sequence

from xdsl.dialects import arith, tensor
from xdsl.ir import SSAValue

from fuseline.frontends.onnx import scalars as s
from fuseline.frontends.onnx.node import OnnxNode
from fuseline.frontends.onnx.tensors import Tensor
from fuseline.ir.build import Body, element_of
from fuseline.ir.dim import Dim, add, maximum, minimum, mul, sub
from fuseline.size_requirement import SizeRequirement


def spread(node: OnnxNode, t: Tensor, out: Sequence[Dim]) -> Tensor:
    """`t` as large as `out` (aligned at the last dimension) along the axes where only the run tells whether it repeats;
    itself without any. The program refuses sizes that do not broadcast."""
    offset = len(out) - t.rank
    require_to_broadcast(node, [1 if isinstance(size, int) else size for size in t.dims], out)
    axes = [axis for axis, size in enumerate(t.dims) if node.program.broadcasting.may_repeat(size, out[offset + axis])]
    if not axes:
        return t
    steps = {axis: node.index(minimum(sub(t.dims[axis], 1), 1)) for axis in axes}
    return _read(
        node, t, tuple(out[offset + axis] if axis in axes else size for axis, size in enumerate(t.dims)), steps
    )


def require_to_broadcast(node: OnnxNode, dims: Sequence[Dim], out: Sequence[Dim]) -> None:
    """Let the program refuse `dims` that do not broadcast to `out` (aligned at the last dimension)."""
    offset = len(out) - len(dims)
    for axis, size in enumerate(dims):
        whole = out[offset + axis]
        if node.program.broadcasting.may_repeat(size, whole):
            _require_one_or(node, size, whole)
        elif size != 1:
            node.take_equal(size, whole)
            node.program.require_equal(size, whole, node.label)


def _read(node: OnnxNode, t: Tensor, dims: tuple[Dim, ...], steps: dict[int, SSAValue]) -> Tensor:
    value = node.ssa(t)

    def body(b: Body) -> SSAValue:
        positions = [s.loop_index(b, axis) for axis in range(t.rank)]
        for axis, step in steps.items():
            positions[axis] = b.op(arith.MuliOp, positions[axis], step)
        return b.op(tensor.ExtractOp, value, positions, element_of(value))

    empty = node.program.empty(dims, t.dtype, node.emit)
    return Tensor(t.dtype, dims, value=node.emit.elementwise([], empty, body, []), name=t.name)


def _require_one_or(node: OnnxNode, size: Dim, out: Dim) -> None:
    """Let the program refuse a size that is neither 1 nor `out`: it must equal `out` where it is not 1, else itself."""
    differs = minimum(maximum(sub(size, 1), sub(1, size)), 1)
    node.program.require(SizeRequirement(size, add(size, mul(differs, sub(out, size))), node.label))
