"""`linalg.softmax` as its four steps: row maximum, exponential of the difference, row sum, quotient."""

from __future__ import annotations

from xdsl.dialects import arith, math
from xdsl.ir import SSAValue
from xdsl.ir.affine import AffineExpr, AffineMap

from fuseline.ir.build import PARALLEL, REDUCTION, Body, Emitter, element_of, shape_of
from fuseline.ir.linalg_named import SoftmaxOp
from fuseline.ir.provenance import replace

_LOWEST = float("-inf")


def expand_softmax(op: SoftmaxOp) -> None:
    """Replace `op`; all new ops carry its provenance."""
    emit, axis, rank = Emitter.before(op), op.dimension.value.data, len(shape_of(op.input))
    whole = AffineMap.identity(rank)
    row = AffineMap(rank, 0, tuple(AffineExpr.dimension(d) for d in range(rank) if d != axis))
    kinds = [REDUCTION if d == axis else PARALLEL for d in range(rank)]
    rows = emit.empty_from(op.input, [d for d in range(rank) if d != axis])

    def fold(source: SSAValue, start: float, combine: type[arith.AddfOp | arith.MaximumfOp]) -> SSAValue:
        return emit.generic(
            [source], [emit.fill(start, rows)], [whole, row], kinds, lambda b: [b.op(combine, *b.args)]
        ).results[0]

    def shifted(b: Body) -> SSAValue:
        return b.op(math.ExpOp, b.op(arith.SubfOp, b.args[0], b.args[1]))

    element = element_of(op.input)
    largest = fold(op.input, _LOWEST, arith.MaximumfOp)
    powers = emit.elementwise([op.input, largest], emit.empty_like(op.input, element), shifted, [whole, row])
    total = fold(powers, 0.0, arith.AddfOp)
    out = emit.generic(
        [powers, total],
        [op.output],
        [whole, row, whole],
        [PARALLEL] * rank,
        lambda b: [b.op(arith.DivfOp, b.args[0], b.args[1])],
    )
    replace(op, [], list(out.results))
