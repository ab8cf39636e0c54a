"""A collapse_shape of a part of a concat sinks below the concat.

    concat(collapse(broadcast of p), x) along channels      =>      collapse(concat(broadcast of p, expand(x)))

So the part is written where it is made, in the shape in which it is made; a nearest upsampling, whose pixels are a
broadcast over (height, 2, width, 2), is the common case. The joined dimension stays as it is.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from xdsl.dialects import tensor
from xdsl.ir import SSAValue
from xdsl.rewriter import InsertPoint

from fuseline.analysis.moves import groups_of
from fuseline.analysis.structured import producer_of
from fuseline.ir.build import Emitter
from fuseline.ir.dim import Dim
from fuseline.ir.fast.create import create_concat
from fuseline.ir.fast.direct import erase, replace_uses
from fuseline.ir.provenance import carry
from fuseline.passes.layout.rewriting.broadcasts import broadcast_source
from fuseline.passes.layout.rewriting.free_reshapes import cancels, is_free
from fuseline.passes.layout.rewriting.reshapes import can_reshape, reshape, root_of
from fuseline.passes.layout.rewriting.scope import Scope
from fuseline.passes.layout.rewriting.upward import can_expand_result

Splits = dict[int, list[Dim]]


def sink_below_concat(scope: Scope, op: tensor.ConcatOp) -> None:
    """Replace `op` by a collapse of a concat where that cancels more reshapes of its parts than it makes."""
    splits = _splits(scope, op)
    shapes = [_split(scope.dims(part), splits) for part in op.inputs]
    if not splits or not all(can_reshape(scope, dims) for dims in (*shapes, scope.dims(op.result))):
        return
    if sum(_gain(scope, part, dims) for part, dims in zip(op.inputs, shapes, strict=True)) <= 0:
        return
    at = Emitter.before(op)
    axis = op.dim.value.data
    parts = [reshape(scope, at, part, dims) for part, dims in zip(op.inputs, shapes, strict=True)]
    joined = _split(scope.dims(op.result), splits)
    made = at.add(
        create_concat(parts, len(_split(range(axis), splits)), scope.typed(op.result, joined), location=op.location)
    )
    carry((op,), (made,))
    after = Emitter(InsertPoint.after(made), location=op.location)
    replace_uses(op.result, reshape(scope, after, made.result, scope.dims(op.result)))
    erase(op)


def _splits(scope: Scope, op: tensor.ConcatOp) -> Splits:
    """The sizes from which each dimension was collapsed, of the first part that collapses some."""
    for part in op.inputs:
        made = producer_of(part)
        if type(made) is tensor.CollapseShapeOp and not is_free(part):
            sizes = scope.dims(made.src)
            groups = [[sizes[axis] for axis in group] for group in groups_of(made)]
            found = {i: split for i, split in enumerate(groups) if sum(size != 1 for size in split) > 1}
            return found if op.dim.value.data not in found else {}
    return {}


def _split(dims: Sequence[Dim], splits: Mapping[int, Sequence[Dim]]) -> list[Dim]:
    return [size for axis, whole in enumerate(dims) for size in splits.get(axis, [whole])]


def _gain(scope: Scope, part: SSAValue, dims: Sequence[Dim]) -> int:
    """Reshapes that go, less those that come: as sink-collapse-shapes counts them for the operands of a generic."""
    if is_free(part):
        return 0
    if cancels(scope, part, dims):
        return 2 if broadcast_source(root_of(part)) is not None else 1
    return 0 if can_expand_result(scope, part, dims) else -1
