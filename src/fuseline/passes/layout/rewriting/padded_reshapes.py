"""An expand_shape and the pad below it change places:  expand(pad(x))  =>  pad(expand(x))."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TypeVar

from xdsl.dialects import tensor
from xdsl.rewriter import InsertPoint

from fuseline.analysis.moves import groups_of
from fuseline.analysis.structured import producer_of
from fuseline.ir.build import Emitter, shape_of
from fuseline.ir.dim import Dim
from fuseline.ir.fast.direct import erase, replace_uses
from fuseline.passes.layout.rewriting.pads import high_of, low_of, outer_value, pad
from fuseline.passes.layout.rewriting.reshapes import Groups, can_reshape, expand
from fuseline.passes.layout.rewriting.scope import Scope

T = TypeVar("T")


def expand_above_pad(scope: Scope, op: tensor.ExpandShapeOp, padded: tensor.PadOp) -> tensor.ExpandShapeOp | None:
    """The expand that stands above `padded` in place of `op`, whose result the pad now makes; None where a dimension
    that is split is padded, where the pad value depends on the position, or where the sizes are not known."""
    groups, low, high = groups_of(op), low_of(padded), high_of(padded)
    if any(len(group) != 1 and not (_is_zero(low[i]) and _is_zero(high[i])) for i, group in enumerate(groups)):
        return None
    sizes, before = scope.dims(op.result), scope.dims(padded.source)
    dims: list[Dim] = [
        size
        for i, group in enumerate(groups)
        for size in ([before[i]] if len(group) == 1 else [sizes[a] for a in group])
    ]
    at = Emitter(InsertPoint.before(op), location=padded.location)
    value = outer_value(padded, at) if can_reshape(scope, dims) else None
    if value is None:
        return None
    opened = expand(scope, Emitter.before(op), padded.source, groups, dims)
    new = pad(at, opened, _spread(low, groups), _spread(high, groups), value, shape_of(op.result))
    replace_uses(op.result, new.result)
    erase(op)
    made = producer_of(opened)
    assert type(made) is tensor.ExpandShapeOp
    return made


def _is_zero(size: object) -> bool:
    return isinstance(size, int) and size == 0


def _spread(sizes: Sequence[T], groups: Groups) -> list[T]:
    """The padding of each dimension after the split: of a dimension that is split, 0 for all its parts."""
    return [sizes[i] for i, group in enumerate(groups) for _ in group]
