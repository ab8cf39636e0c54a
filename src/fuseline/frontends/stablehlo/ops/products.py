"""Products: `dot_general`, `dot`, `einsum`."""

from __future__ import annotations

from collections.abc import Sequence

from fuseline.errors import FuselineError
from fuseline.frontends.onnx.emission import contract
from fuseline.frontends.onnx.tensors import Tensor
from fuseline.frontends.stablehlo.hlo import Hlo
from fuseline.frontends.stablehlo.registry import hlo_op
from fuseline.ir.dim import Dim


@hlo_op("dot_general")
def dot_general(hlo: Hlo) -> Tensor:
    """Sums of products over the contracted axes, for each element of the batch."""
    numbers = hlo.fields("dot_dimension_numbers")
    sides = ("lhs", "rhs")
    batch = [numbers.get(f"{side}_batching_dimensions", []) for side in sides]
    summed = [numbers.get(f"{side}_contracting_dimensions", []) for side in sides]
    return product_of(hlo, hlo[0], hlo[1], batch, summed)


@hlo_op("dot")
def dot(hlo: Hlo) -> Tensor:
    """The product of vectors and matrices."""
    return product_of(hlo, hlo[0], hlo[1], [[], []], [[hlo[0].rank - 1], [0]])


def product_of(
    hlo: Hlo, x: Tensor, y: Tensor, batch: Sequence[Sequence[int]], summed: Sequence[Sequence[int]]
) -> Tensor:
    """`batch` and `summed` are axes of both, in pairs; the answer has the batch, then the rest of `x`, then of `y`."""
    axes: list[list[int]] = [[-1] * x.rank, [-1] * y.rank]
    loops: list[Dim] = []
    for pairs in (batch, summed):
        for left, right in zip(*pairs, strict=True):
            if left >= x.rank or right >= y.rank:
                raise FuselineError("E0302", f"{hlo.op.name}: axes {left} and {right} are not there", node=hlo.location)
            hlo.program.require_equal(x.dims[left], y.dims[right], hlo.label)
            axes[0][left] = axes[1][right] = len(loops)
            loops.append(x.dims[left] if isinstance(x.dims[left], int) else y.dims[right])
    for side, t in enumerate((x, y)):
        for axis, size in enumerate(t.dims):
            if axes[side][axis] < 0:
                axes[side][axis] = len(loops)
                loops.append(size)
    reduced = range(len(batch[0]), len(batch[0]) + len(summed[0]))
    out = [loop for loop in range(len(loops)) if loop not in reduced]
    return contract(hlo.node, (x, axes[0]), (y, axes[1]), loops, out, hlo.dtype())
