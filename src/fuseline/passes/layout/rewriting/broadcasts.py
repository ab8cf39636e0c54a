"""Generics that only repeat their operand."""

from __future__ import annotations

from xdsl.ir import SSAValue
from xdsl.ir.affine import AffineDimExpr, AffineMap

from fuseline.analysis.indexing_maps import is_identity
from fuseline.analysis.structured import StructuredOp, is_generic, producer_of, yielded
from fuseline.ir.fast.direct import body_of


def broadcast_source(value: SSAValue) -> tuple[SSAValue, AffineMap] | None:
    """What `value` repeats, and the map from its dimensions to those of the source; None where something else makes
    it."""
    op = producer_of(value)
    if not is_generic(op) or len(op.inputs) != 1 or len(op.results) != 1:
        return None
    view = StructuredOp(op)
    if view.reduction or not is_identity(view.output_maps[0]) or list(yielded(op)) != [body_of(op).args[0]]:
        return None
    read = view.input_maps[0]
    if not all(type(expr) is AffineDimExpr for expr in read.results) or len(read.results) >= view.rank:
        return None
    return op.inputs[0], read
