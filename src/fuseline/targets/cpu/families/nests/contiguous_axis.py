"""The axis along which an operand lies in memory."""

from __future__ import annotations

from collections.abc import Sequence

from xdsl.ir import SSAValue
from xdsl.ir.affine import AffineDimExpr

from fuseline.analysis.moves import Coordinate
from fuseline.analysis.shapes import ShapeAnalysis
from fuseline.dispatch.loop_ref import LoopRef


def contiguous_axis(
    shapes: ShapeAnalysis, value: SSAValue, at: Sequence[Coordinate], loops: Sequence[LoopRef | None]
) -> LoopRef | None:
    """The axis along which an operand is contiguous in memory: that of its last dimension longer than 1, if it is a
    plain loop."""
    for expr, size in zip(reversed(at), reversed(shapes.dims(value)), strict=True):
        if size != 1:
            return loops[expr.position] if isinstance(expr, AffineDimExpr) else None
    return None
