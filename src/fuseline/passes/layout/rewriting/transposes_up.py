"""A transpose moved above the op that makes its operand:  transpose(op(x))  =>  op'(transpose(x)).

For the ops that are no structured op. Each function answers the value that replaces the transpose, or None where that
is impossible. The op must have no other user.
"""

from __future__ import annotations

from collections.abc import Callable

from xdsl.dialects import linalg, tensor
from xdsl.ir import Operation, SSAValue
from xdsl.rewriter import InsertPoint

from fuseline.analysis.moves import groups_of
from fuseline.ir.build import Emitter, element_of, shape_of
from fuseline.ir.fast import attributes
from fuseline.ir.fast.create import create_concat
from fuseline.passes.layout.rewriting.pads import high_of, low_of, outer_value, pad
from fuseline.passes.layout.rewriting.permutation import Permutation, apply, transpose
from fuseline.passes.layout.rewriting.reshapes import Groups, can_reshape, collapse, expand
from fuseline.passes.layout.rewriting.scope import Scope
from fuseline.passes.layout.rewriting.transposes_down import permuted_slice


def bubble_above(scope: Scope, top: linalg.ops.TransposeOp, producer: Operation) -> SSAValue | None:
    """The value of `top` with its transpose moved above `producer`; None where that is impossible."""
    rule = _RULES.get(type(producer))
    if rule is None:
        return None
    moved = Emitter(InsertPoint.before(producer), location=top.location)
    return rule(scope, producer, attributes.values(top.permutation), moved)


def _pad(scope: Scope, op: Operation, permutation: Permutation, moved: Emitter) -> SSAValue | None:
    assert type(op) is tensor.PadOp
    at = Emitter.before(op)
    value = outer_value(op, at)
    if value is None:
        return None
    source = transpose(scope, moved, op.source, permutation)
    shape = apply(permutation, shape_of(op.result))
    return pad(at, source, apply(permutation, low_of(op)), apply(permutation, high_of(op)), value, shape).result


def _slice(scope: Scope, op: Operation, permutation: Permutation, moved: Emitter) -> SSAValue | None:
    assert type(op) is tensor.ExtractSliceOp
    if len(shape_of(op.result)) != len(shape_of(op.source)):
        return None
    source = transpose(scope, moved, op.source, permutation)
    return Emitter.before(op).add(permuted_slice(op, source, permutation)).result


def _collapse(scope: Scope, op: Operation, permutation: Permutation, moved: Emitter) -> SSAValue | None:
    assert type(op) is tensor.CollapseShapeOp
    groups = apply(permutation, groups_of(op))
    source = transpose(scope, moved, op.src, [axis for group in groups for axis in group])
    return collapse(scope, Emitter.before(op), source, renumbered(groups))


def _expand(scope: Scope, op: Operation, permutation: Permutation, moved: Emitter) -> SSAValue | None:
    assert type(op) is tensor.ExpandShapeOp
    groups, dims = groups_of(op), scope.dims(op.result)
    order = whole_groups(permutation, groups)
    if order is None or not can_reshape(scope, dims):
        return None
    source = transpose(scope, moved, op.src, order)
    return expand(scope, Emitter.before(op), source, renumbered([groups[i] for i in order]), apply(permutation, dims))


def renumbered(groups: Groups) -> Groups:
    """Groups of the same sizes with consecutive numbers.

    >>> renumbered([[2, 3], [0]])
    [[0, 1], [2]]
    """
    out: Groups = []
    count = 0
    for group in groups:
        out.append(list(range(count, count + len(group))))
        count += len(group)
    return out


def whole_groups(permutation: Permutation, groups: Groups) -> Permutation | None:
    """The order in which `permutation` lists whole groups; None where it takes one apart.

    >>> whole_groups((2, 0, 1), [[0, 1], [2]])
    (1, 0)
    >>> whole_groups((1, 0, 2), [[0, 1], [2]]) is None
    True
    """
    start = {group[0]: i for i, group in enumerate(groups) if group}
    order: list[int] = []
    at = 0
    while at < len(permutation):
        i = start.get(permutation[at])
        if i is None or list(permutation[at : at + len(groups[i])]) != groups[i]:
            return None
        order.append(i)
        at += len(groups[i])
    return tuple(order) if len(order) == len(groups) else None


def _concat(scope: Scope, op: Operation, permutation: Permutation, moved: Emitter) -> SSAValue | None:
    assert type(op) is tensor.ConcatOp
    pieces = [transpose(scope, moved, piece, permutation) for piece in op.inputs]
    axis = permutation.index(op.dim.value.data)
    type_ = attributes.tensor_type(element_of(op.result), tuple(apply(permutation, shape_of(op.result))))
    return Emitter.before(op).add(create_concat(pieces, axis, type_)).result


_RULES: dict[type[Operation], Callable[[Scope, Operation, Permutation, Emitter], SSAValue | None]] = {
    tensor.PadOp: _pad,
    tensor.ExtractSliceOp: _slice,
    tensor.CollapseShapeOp: _collapse,
    tensor.ExpandShapeOp: _expand,
    tensor.ConcatOp: _concat,
}
