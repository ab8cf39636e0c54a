"""compute-in-parts: what is computed of a concat whose parts are made by roots is computed of each part.

    conv a ──┐                                  conv a ──> bias a, relu ──┐
             ├─> concat ──> bias, relu      =>                            ├─> concat
    conv b ──┘                                  conv b ──> bias b, relu ──┘

So it follows each root where it stands, and no dispatch is left that reads and writes all of them once more, as behind
convolutions in groups of windows (MixNet), or behind the phases of a transposed one (concats of concats). What else is
read is cut as the parts are. Roots make the parts for this alone, and nothing gets wider.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass

from xdsl.dialects import linalg, tensor
from xdsl.dialects.builtin import DYNAMIC_INDEX, TensorType
from xdsl.ir import Operation, SSAValue
from xdsl.ir.affine import AffineDimExpr, AffineMap

from fuseline.analysis.indexing_maps import is_identity, is_projected_permutation
from fuseline.analysis.structured import Kind, StructuredOp, captured_tensors, is_generic, kind, producer_of
from fuseline.ir.build import Emitter, element_of, shape_of
from fuseline.ir.element_types import element_bits
from fuseline.ir.fast.create import create_generic
from fuseline.ir.fast.direct import erase, ops_of, replace_uses, result_of, users_of_value
from fuseline.ir.provenance import carry
from fuseline.passes.layout.rewriting.cuts import Cut, Cuts, sliced
from fuseline.passes.layout.rewriting.generics import index_ops
from fuseline.passes.layout.rewriting.made_by_roots import back_to_root
from fuseline.passes.layout.rewriting.scope import Scope
from fuseline.passes.layout.rewriting.scoped_pass import ScopedPass

MOST_BEHIND = 16
"""Ops behind a concat."""


@dataclass(frozen=True)
class ComputeInPartsPass(ScopedPass):
    """Has no options."""

    name = "compute-in-parts"

    def rewrite(self, scope: Scope) -> None:
        """Every concat that something is computed of."""
        place = {op: number for number, op in enumerate(ops_of(scope.block))}
        found = False
        for op in place:
            ops = _behind(op, place) if type(op) is tensor.ConcatOp and _are_made_by_roots(op) else []
            if type(op) is tensor.ConcatOp and ops and element_bits(result_of(ops[-1])) <= element_bits(op.result):
                _compute(scope, op, ops)
                found = True
        if found:
            scope.sweep()


def _behind(concat: tensor.ConcatOp, place: Mapping[Operation, int]) -> list[linalg.ops.GenericOp]:
    """The most elementwise ops behind a concat, in order, of which others read the last one alone. `place`: of each op
    in its block."""
    made, ops, found = [concat.result], list[linalg.ops.GenericOp](), 0
    axes = _axes(concat)
    for _ in range(MOST_BEHIND):
        op = _next(made, ops, place)
        if op is None or not _can_be_cut(op, made, axes):
            break
        ops.append(op)
        made.append(result_of(op))
        if all(user in ops for value in made[:-1] for user in users_of_value(value)):
            found = len(ops)
    return ops[:found]


def _axes(concat: tensor.ConcatOp) -> set[int]:
    """The dimensions along which a concat, and those among its parts, join parts."""
    inner = [op for op in map(producer_of, concat.inputs) if type(op) is tensor.ConcatOp]
    return {concat.dim.value.data}.union(*map(_axes, inner))


def _next(
    made: Sequence[SSAValue], ops: Sequence[linalg.ops.GenericOp], place: Mapping[Operation, int]
) -> linalg.ops.GenericOp | None:
    """The first op that reads any of these values and is none of `ops`; None where it is no generic."""
    users = [user for value in made for user in users_of_value(value) if user not in ops]
    first = min(users, key=lambda user: place.get(user, 0), default=None)
    return first if is_generic(first) else None


def _can_be_cut(op: linalg.ops.GenericOp, made: Sequence[SSAValue], axes: Collection[int]) -> bool:
    """Whether an op reads what is `made` element by element, as it writes, and all else along plain loops of known
    sizes."""
    if kind(op) is not Kind.ELEMENTWISE or len(op.results) != 1 or captured_tensors(op) or index_ops(op):
        return False
    view = StructuredOp(op)
    if not all(map(is_identity, view.output_maps)) or any(arg.uses for arg in op.body.block.args[view.input_count :]):
        return False
    return all(
        is_identity(map_) if source in made else is_projected_permutation(map_) and _is_known_along(source, map_, axes)
        for source, map_ in zip(view.inputs, view.input_maps, strict=True)
    )


def _is_known_along(source: SSAValue, map_: AffineMap, axes: Collection[int]) -> bool:
    return all(shape_of(source)[place] != DYNAMIC_INDEX for axis in axes for place in _along(map_, axis))


def _along(map_: AffineMap, axis: int) -> list[int]:
    """The dimensions that are read along a loop."""
    return [i for i, expr in enumerate(map_.results) if isinstance(expr, AffineDimExpr) and expr.position == axis]


def _are_made_by_roots(op: tensor.ConcatOp) -> bool:
    known = all(shape_of(part)[op.dim.value.data] != DYNAMIC_INDEX for part in op.inputs)
    return known and all(map(_is_made_by_root, op.inputs))


def _is_made_by_root(value: SSAValue) -> bool:
    """Whether a root makes a value, or ops that follow one, for one reader: one of several would be handed the value
    and what is computed of it, and in a dense block each layer computes of all parts."""
    op = producer_of(value)
    if type(op) is tensor.ConcatOp:
        return len(users_of_value(value)) == 1 and _are_made_by_roots(op)
    made = back_to_root(value)
    return bool(made) and all(len(users_of_value(one)) == 1 for one in made)


def _compute(scope: Scope, concat: tensor.ConcatOp, ops: Sequence[linalg.ops.GenericOp]) -> None:
    joined = _joined(scope, concat, _Followed(concat, ops), {})
    replace_uses(result_of(ops[-1]), joined)
    for op in (*reversed(ops), concat):
        erase(op)


@dataclass(frozen=True, slots=True)
class _Followed:
    """A concat and the ops behind it."""

    concat: tensor.ConcatOp
    ops: Sequence[linalg.ops.GenericOp]


def _joined(scope: Scope, concat: tensor.ConcatOp, followed: _Followed, cuts: Cuts) -> SSAValue:
    """What is computed of a concat, the one that is followed or a part of it, which is left of that by `cuts`."""
    axis, last, begin = concat.dim.value.data, followed.ops[-1], 0
    whole, parts = shape_of(concat.result)[axis], list[SSAValue]()
    outer = cuts.get(axis, Cut(0, 0))
    for part in concat.inputs:
        end, op = begin + shape_of(part)[axis], producer_of(part)
        inside = {**cuts, axis: Cut(outer.start + begin, outer.end + whole - end)}
        nested = type(op) is tensor.ConcatOp
        parts.append(_joined(scope, op, followed, inside) if nested else _of_part(scope, followed, part, inside))
        begin = end
    type_ = TensorType(element_of(result_of(last)), shape_of(concat.result))
    joined = Emitter.before(last).add(tensor.ConcatOp(parts, concat.dim, type_))
    carry([concat, *followed.ops], [joined])
    return joined.result


def _of_part(scope: Scope, followed: _Followed, part: SSAValue, cuts: Cuts) -> SSAValue:
    """What the ops compute of one part: what is left of the concat by `cuts`, by dimension."""
    at = Emitter.before(followed.ops[-1])
    made: dict[SSAValue, SSAValue] = {followed.concat.result: part}
    for op in followed.ops:
        view = StructuredOp(op)
        inputs = [
            made[source] if source in made else _cut(scope, at, source, map_, cuts)
            for source, map_ in zip(view.inputs, view.input_maps, strict=True)
        ]
        out = scope.empty(at, element_of(result_of(op)), scope.dims(part))
        new = at.add(create_generic(inputs, [out], op.body.clone(), view.maps, view.iterators))
        carry([op], [new])
        made[result_of(op)] = result_of(new)
    return made[result_of(followed.ops[-1])]


def _cut(scope: Scope, at: Emitter, source: SSAValue, map_: AffineMap, cuts: Cuts) -> SSAValue:
    along = {place: cut for axis, cut in cuts.items() for place in _along(map_, axis)}
    return sliced(scope, at, source, along) if along else source


EXPORT = ComputeInPartsPass
