"""A collapse_shape of a part of a concat sinks below the concat.

    concat(collapse(broadcast of p), x) along channels      =>      collapse(concat(broadcast of p, expand(x)))

So the part is written where it is made, in the shape in which it is made; a nearest upsampling, whose pixels are a
broadcast over (height, 2, width, 2), is the common case. The joined dimension may be one that was collapsed, where all
parts can be joined along the outermost of what it was collapsed from:

    concat(collapse(p over (2, 3)), x over 12)                      =>      collapse(concat(p, x over (4, 3)))
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from xdsl.dialects import tensor
from xdsl.ir import SSAValue
from xdsl.rewriter import InsertPoint

from fuseline.analysis.moves import groups_of
from fuseline.analysis.structured import producer_of
from fuseline.ir.build import Emitter
from fuseline.ir.dim import Dim, floor_div, mul, product
from fuseline.ir.fast.create import create_concat
from fuseline.ir.fast.direct import erase, replace_uses
from fuseline.ir.provenance import carry
from fuseline.passes.layout.rewriting.broadcasts import broadcast_source
from fuseline.passes.layout.rewriting.free_reshapes import cancels, is_free
from fuseline.passes.layout.rewriting.reshapes import can_reshape, reshape, root_of
from fuseline.passes.layout.rewriting.scope import Scope
from fuseline.passes.layout.rewriting.upward import can_expand_result


def sink_below_concat(scope: Scope, op: tensor.ConcatOp) -> None:
    """Replace `op` by a collapse of a concat where that cancels more reshapes of its parts than it makes."""
    splits = _splits(scope, op)
    found = [splits.of(scope.dims(value)) for value in (*op.inputs, op.result)] if splits is not None else []
    shapes = [dims for dims in found if dims is not None]
    if splits is None or len(shapes) < len(found) or not all(can_reshape(scope, dims) for dims in shapes):
        return
    *shapes, joined = shapes
    if sum(_gain(scope, part, dims) for part, dims in zip(op.inputs, shapes, strict=True)) <= 0:
        return
    at = Emitter.before(op)
    parts = [reshape(scope, at, part, dims) for part, dims in zip(op.inputs, shapes, strict=True)]
    made = at.add(create_concat(parts, splits.joined_axis, scope.typed(op.result, joined), location=op.location))
    carry((op,), (made,))
    after = Emitter(InsertPoint.after(made), location=op.location)
    replace_uses(op.result, reshape(scope, after, made.result, scope.dims(op.result)))
    erase(op)


@dataclass(frozen=True, slots=True)
class _Splits:
    """Sizes into which dimensions are split; of dimension `joined` those behind its first one, which is what is left of
    each part."""

    sizes: Mapping[int, Sequence[Dim]]
    joined: int

    @property
    def joined_axis(self) -> int:
        """Where the joined dimension lies behind the splits."""
        return sum(len(self.sizes.get(axis, (1,))) for axis in range(self.joined))

    def of(self, dims: Sequence[Dim]) -> list[Dim] | None:
        """A part's sizes; None where its joined dimension is not made of as many whole ones."""
        out: list[Dim] = []
        for axis, whole in enumerate(dims):
            inner = self.sizes.get(axis)
            first = [whole] if inner is None else []
            if inner is not None and axis == self.joined:
                first = [floor_div(whole, product(inner))]
                if mul(first[0], product(inner)) != whole:
                    return None
            out += [*first, *(inner or ())]
        return out


def _splits(scope: Scope, op: tensor.ConcatOp) -> _Splits | None:
    """The sizes from which each dimension was collapsed, of the first part that collapses some."""
    joined = op.dim.value.data
    for part in op.inputs:
        made = producer_of(part)
        if type(made) is tensor.CollapseShapeOp and not is_free(part):
            sizes = scope.dims(made.src)
            groups = [[sizes[axis] for axis in group] for group in groups_of(made)]
            found = {i: split for i, split in enumerate(groups) if sum(size != 1 for size in split) > 1}
            if joined in found:
                found[joined] = found[joined][1:]
            return _Splits(found, joined) if found else None
    return None


def _gain(scope: Scope, part: SSAValue, dims: Sequence[Dim]) -> int:
    """Reshapes that go, less those that come: as sink-collapse-shapes counts them for the operands of a generic."""
    if is_free(part):
        return 0
    if cancels(scope, part, dims):
        return 2 if broadcast_source(root_of(part)) is not None else 1
    return 0 if can_expand_result(scope, part, dims) else -1
