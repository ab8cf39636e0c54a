"""An expand_shape climbs above the ops that make its operand where it meets a collapse_shape there and cancels.

    expand(matmul(collapse(x), w))      =>      matmul over the rows' two loops

It climbs only if every reshape that it leaves on the way costs nothing (constants, arguments) or cancels; otherwise it
is left for sink-expand-shapes, or stays between two ops as the free alias of a contiguous buffer. Above a pad of other
dimensions it climbs always: the pad then stands beside what reads it, such as a grouped convolution. Above a concat it
climbs where a transpose below then moves nothing within the parts, as in a channel shuffle
(`rewriting/interleaved.py`).
"""

from __future__ import annotations

from dataclasses import dataclass

from xdsl.dialects import tensor
from xdsl.ir import OpResult

from fuseline.ir.fast.direct import ops_of
from fuseline.passes.layout.rewriting.interleaved import interleave
from fuseline.passes.layout.rewriting.padded_reshapes import expand_above_pad
from fuseline.passes.layout.rewriting.scope import Scope
from fuseline.passes.layout.rewriting.scoped_pass import ScopedPass
from fuseline.passes.layout.rewriting.upward import climb, climbs


@dataclass(frozen=True)
class BubbleExpandShapesPass(ScopedPass):
    """Moves expand_shape ops up to the collapse_shape ops that they undo."""

    name = "bubble-expand-shapes"

    def rewrite(self, scope: Scope) -> None:
        """From the last op to the first, so that an expand climbs past what has climbed before it."""
        scope.lift_sizes()
        scope.sweep()
        for inner in reversed(ops_of(scope.block)):
            if type(inner) is tensor.ExpandShapeOp and inner.parent is not None:
                _bubble(scope, inner)
        scope.sweep()


def _bubble(scope: Scope, op: tensor.ExpandShapeOp) -> None:
    if interleave(scope, op):
        return
    if type(op.src) is OpResult and type(op.src.op) is tensor.PadOp:
        above = expand_above_pad(scope, op, op.src.op)
        if above is not None:
            _bubble(scope, above)
        return
    fits, meets = climbs(scope, op.src, scope.dims(op.result))
    if not (fits and meets):
        return
    climb(scope, op)


EXPORT = BubbleExpandShapesPass
