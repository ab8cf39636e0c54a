"""compute-what-is-cut: of a product or a window that is read through one slice only, the rest is not computed.

    slice(conv(pad(x), w))      =>      conv(pad'(x), w)          fewer places, a pad that is as much smaller
    slice(relu(x · w + b))      =>      relu(slice(x) · w + b)    fewer rows
                                        relu(x · slice(w) + b)    fewer columns

A causal convolution that is padded on both sides and cut on one, and the borders that a decoder cuts off, are such
slices. What stands behind the slice may then follow the root where it stands. A slice climbs along loops that are
parallel, with its own step of 1, through the elementwise ops between it and the root, as long as nobody else reads
them. Windows read along a slice as far as its places see: `cuts` of an image are those of its places, times the stride.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from xdsl.dialects import linalg, tensor
from xdsl.ir import Operation, SSAValue
from xdsl.ir.affine import AffineDimExpr, AffineExpr, AffineMap

from fuseline.analysis.convolution_dims import linear_terms
from fuseline.analysis.moves import groups_of
from fuseline.analysis.structured import (
    HEAVY,
    Kind,
    StructuredOp,
    captured_tensors,
    is_constant,
    is_generic,
    kind,
    producer_of,
)
from fuseline.ir.build import Emitter, element_of, shape_of
from fuseline.ir.dim import sub
from fuseline.ir.fast.create import create_fill
from fuseline.ir.fast.direct import erase, ops_of, replace_uses, result_of
from fuseline.ir.provenance import carry
from fuseline.ir.rounds import rounds
from fuseline.passes.cleanup.cut_pads import cut_pad
from fuseline.passes.layout.rewriting.cuts import Cut, Cuts, can_cut, cut_dims, sliced
from fuseline.passes.layout.rewriting.generics import index_ops, rebuilt
from fuseline.passes.layout.rewriting.mixed import joined
from fuseline.passes.layout.rewriting.permutation import is_init
from fuseline.passes.layout.rewriting.reshapes import ReshapeOp, can_reshape, is_reshape, reshape
from fuseline.passes.layout.rewriting.scope import Scope
from fuseline.passes.layout.rewriting.scoped_pass import ScopedPass

BETWEEN = (Kind.ELEMENTWISE, Kind.COPY, Kind.TRANSPOSE)
"""Kinds that a slice climbs through on its way to a root."""

MOST_BETWEEN = 16
"""Ops between a slice and a root: more than follow one."""


@dataclass(frozen=True)
class ComputeWhatIsCutPass(ScopedPass):
    """Has no options."""

    name = "compute-what-is-cut"

    def rewrite(self, scope: Scope) -> None:
        """From the last slice to the first: one that climbed may meet another root."""
        scope.lift_sizes()
        scope.sweep()
        pending = [op for op in ops_of(scope.block) if type(op) is tensor.ExtractSliceOp]
        operands = sum(len(op.operands) for op in ops_of(scope.block))
        # A slice passes each op once at the most, and leaves one for each operand of it.
        for _ in rounds("computing what is cut", most=(len(pending) + 1) * (operands + 1)):
            if not pending:
                break
            pending += _climbed(scope, pending.pop())
        scope.sweep()


def _climbed(scope: Scope, op: tensor.ExtractSliceOp) -> list[tensor.ExtractSliceOp]:
    """Put a slice of what `op` cuts from in place of that; the slices that it became."""
    made, cuts = producer_of(op.source), _cuts(scope, op)
    if made is None or not cuts or not _leads_to_root(op.source):
        return []
    if is_reshape(made):
        return _above_reshape(scope, op, made, cuts)
    assert is_generic(made)
    found = _cuts_of_operands(scope, StructuredOp(made), cuts)
    return _replaced(scope, op, made, found) if found is not None else []


def _leads_to_root(value: SSAValue, left: int = MOST_BETWEEN) -> bool:
    """Whether a root makes `value`, elementwise ops between, and nobody else reads any of it."""
    op = producer_of(value)
    if left == 0 or op is None or not value.has_one_use():
        return False
    if is_reshape(op):
        return _leads_to_root(op.src, left - 1)
    if not is_generic(op) or len(op.results) > 1:
        return False
    if index_ops(op) or captured_tensors(op):
        return False
    what = kind(op)
    return what in HEAVY or (what in BETWEEN and any(_leads_to_root(one, left - 1) for one in op.inputs))


def _cuts(scope: Scope, op: tensor.ExtractSliceOp) -> Cuts | None:
    """What a slice leaves out of each dimension; None where that is not known, or nothing is left."""
    if len(shape_of(op.result)) != len(shape_of(op.source)):
        return None
    found: dict[int, Cut] = {}
    sizes = zip(scope.dims(op.source), scope.dims(op.result), strict=True)
    starts, steps = joined(op.static_offsets, op.offsets), joined(op.static_strides, op.strides)
    for axis, ((whole, part), start, step) in enumerate(zip(sizes, starts, steps, strict=True)):
        if not isinstance(start, int) or step != 1:
            return None
        end = sub(sub(whole, part), start)
        if not isinstance(end, int) or part == 0:
            return None
        if start or end:
            found[axis] = Cut(start, end)
    return found


def _above_reshape(scope: Scope, op: tensor.ExtractSliceOp, made: ReshapeOp, cuts: Cuts) -> list[tensor.ExtractSliceOp]:
    """The same above a reshape that keeps the dimensions of which something is cut."""
    kept = _kept(made)
    above = {kept[axis]: cut for axis, cut in cuts.items() if axis in kept}
    if len(above) < len(cuts) or not can_cut(scope, made.src, above) or not can_reshape(scope, scope.dims(op.result)):
        return []
    at = Emitter.before(made)
    part = sliced(scope, at, made.src, above)
    new = reshape(scope, at, part, scope.dims(op.result))
    carry((op,), (new.owner,) if isinstance(new.owner, Operation) else ())
    replace_uses(op.result, new)
    erase(op)
    erase(made)
    return [cut for cut in (producer_of(part),) if type(cut) is tensor.ExtractSliceOp]


def _kept(op: ReshapeOp) -> dict[int, int]:
    """The dimensions that a reshape keeps: of its result, with those of its source."""
    whole = [(narrow, wide[0]) for narrow, wide in enumerate(groups_of(op)) if len(wide) == 1]
    return dict(whole) if type(op) is tensor.CollapseShapeOp else {wide: narrow for narrow, wide in whole}


def _cuts_of_operands(scope: Scope, view: StructuredOp, cuts: Cuts) -> list[Cuts] | None:
    """What may be left out of each operand, where only this much of the result is made; None where loops are not
    counted by one dimension each, sizes are not known, or others read a weight whole."""
    loops: dict[int, Cut] = {}
    for axis, cut in cuts.items():
        step = view.output_maps[0].results[axis]
        if type(step) is not AffineDimExpr or view.iterators[step.position] != "parallel":
            return None
        loops[step.position] = cut
    found = [_cuts_along(map_, loops) for map_ in view.maps]
    known = [one for one in found if one is not None]
    if len(known) < len(found):
        return None
    operands = zip(view.operands, known, strict=True)
    return known if all(_may_cut(scope, value, one) for value, one in operands) else None


def _may_cut(scope: Scope, value: SSAValue, cuts: Cuts) -> bool:
    """Whether the sizes are known, and no weight is there twice for it."""
    return not cuts or (can_cut(scope, value, cuts) and not (is_constant(value) and not value.has_one_use()))


def _cuts_along(map_: AffineMap, loops: Mapping[int, Cut]) -> Cuts | None:
    found: dict[int, Cut] = {}
    for axis, expr in enumerate(map_.results):
        cut = _cut_of(expr, loops)
        if cut is None:
            return None
        if cut != Cut(0, 0):
            found[axis] = cut
    return found


def _cut_of(expr: AffineExpr, loops: Mapping[int, Cut]) -> Cut | None:
    """What is not read along a dimension, where these loops are cut."""
    terms = linear_terms(expr)
    if terms is None or any(factor < 0 for factor in terms[0].values()):
        return None
    read = [(factor, loops[loop]) for loop, factor in terms[0].items() if loop in loops]
    return Cut(sum(factor * cut.start for factor, cut in read), sum(factor * cut.end for factor, cut in read))


def _replaced(
    scope: Scope, op: tensor.ExtractSliceOp, made: linalg.ops.GenericOp, of_operands: list[Cuts]
) -> list[tensor.ExtractSliceOp]:
    view, at = StructuredOp(made), Emitter.before(made)
    values = [_part(scope, at, value, one) for value, one in zip(view.operands, of_operands, strict=True)]
    count = len(view.inputs)
    new = rebuilt(made, values[:count], values[count:], view.maps, view.iterators)
    carry((op,), (new,))
    replace_uses(op.result, result_of(new))
    erase(op)
    erase(made)
    return [one for value in values if type(one := producer_of(value)) is tensor.ExtractSliceOp]


def _part(scope: Scope, at: Emitter, value: SSAValue, cuts: Cuts) -> SSAValue:
    """What is left of an operand."""
    op = producer_of(value)
    if not cuts:
        return value
    if isinstance(op, tensor.EmptyOp | linalg.ops.FillOp) and is_init(value):
        empty = scope.empty(at, element_of(value), cut_dims(scope, value, cuts))
        return empty if isinstance(op, tensor.EmptyOp) else result_of(at.add(create_fill(op.operands[0], empty)))
    padded = cut_pad(scope, at, op, cuts) if type(op) is tensor.PadOp else None
    return sliced(scope, at, value, cuts) if padded is None else padded


EXPORT = ComputeWhatIsCutPass
