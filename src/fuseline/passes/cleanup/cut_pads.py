"""A slice of a padded tensor as a smaller pad of a slice."""

from __future__ import annotations

from xdsl.dialects import tensor
from xdsl.ir import SSAValue

from fuseline.ir.build import Emitter, shape_of
from fuseline.ir.dim import Dim
from fuseline.passes.layout.rewriting.cuts import Cut, Cuts, cut_dims, sliced
from fuseline.passes.layout.rewriting.mixed import Mixed
from fuseline.passes.layout.rewriting.pads import high_of, low_of, outer_value, pad
from fuseline.passes.layout.rewriting.scope import Scope


def cut_pad(scope: Scope, at: Emitter, op: tensor.PadOp, cuts: Cuts) -> SSAValue | None:
    """What is left of what `op` pads; None where it pads by unknown numbers, or with no single number, or where nothing
    might be left of what is padded."""
    low, high, inner = low_of(op), high_of(op), dict[int, Cut]()
    for axis, cut in cuts.items():
        before, behind = low[axis], high[axis]
        if not isinstance(before, int) or not isinstance(behind, int) or min(before, behind) < 0:
            return None
        low[axis], high[axis] = max(before - cut.start, 0), max(behind - cut.end, 0)
        inside = Cut(max(cut.start - before, 0), max(cut.end - behind, 0))
        if inside != Cut(0, 0):
            inner[axis] = inside
    if not all(_is_some(size) for axis, size in enumerate(cut_dims(scope, op.source, inner)) if axis in inner):
        return None
    value = outer_value(op, at)
    if value is None:
        return None
    source = sliced(scope, at, op.source, inner) if inner else op.source
    return _padded(scope, at, op, source, low, high, value, cuts)


def _is_some(size: Dim) -> bool:
    """Whether that many places are known to be some."""
    return isinstance(size, int) and size > 0


def _padded(
    scope: Scope, at: Emitter, op: tensor.PadOp, source: SSAValue, low: Mixed, high: Mixed, value: SSAValue, cuts: Cuts
) -> SSAValue:
    if not any(isinstance(number, SSAValue) or number for number in (*low, *high)):
        return source
    shape = shape_of(op.result)
    left = scope.typed(op.result, cut_dims(scope, op.result, cuts)).get_shape()
    return pad(
        at, source, low, high, value, [left[axis] if axis in cuts else size for axis, size in enumerate(shape)]
    ).result
