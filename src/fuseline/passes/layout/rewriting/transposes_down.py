"""A transpose moved below the op that reads it:  op(transpose(x))  =>  transpose(op'(x)).

For the ops that are no structured op: pads, slices, reshapes, concats. Each function answers the new value of the op's
result, or None where the op cannot be written on the untransposed operand.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from xdsl.dialects import linalg, tensor
from xdsl.ir import BlockArgument, Operation, SSAValue
from xdsl.rewriter import InsertPoint

from fuseline.analysis.moves import groups_of
from fuseline.analysis.structured import is_constant
from fuseline.analysis.views import is_returned
from fuseline.ir import dim as d
from fuseline.ir.build import Emitter, element_of, shape_of
from fuseline.ir.fast import attributes
from fuseline.ir.fast.create import create_concat
from fuseline.ir.fast.direct import operand_of
from fuseline.passes.layout.rewriting.mixed import joined
from fuseline.passes.layout.rewriting.pads import high_of, low_of, outer_value, pad
from fuseline.passes.layout.rewriting.permutation import (
    Permutation,
    apply,
    compose,
    identity,
    inverse,
    permutation_of,
    transpose,
    transposed_input,
)
from fuseline.passes.layout.rewriting.reshapes import can_reshape, collapse, expand, root_of
from fuseline.passes.layout.rewriting.scope import Scope

_SOME = 64
"""What a size without a bound is taken for, when layouts are weighed against each other."""


def sink_below(scope: Scope, op: Operation) -> SSAValue | None:
    """The result of `op` rewritten as a transpose of an op on the untransposed operand; None where that is impossible
    or pointless."""
    rule = _RULES.get(type(op))
    return rule(scope, op) if rule is not None else None


def _emitters(op: Operation, moved: Operation) -> tuple[Emitter, Emitter]:
    """Emitters before `op`: one with its own provenance, one with that of the transpose that moves."""
    return Emitter.before(op), Emitter(InsertPoint.before(op), location=moved.location)


def _pad(scope: Scope, op: Operation) -> SSAValue | None:
    assert type(op) is tensor.PadOp
    found = transposed_input(op.source)
    if found is None:
        return None
    top, source, permutation = found
    back = inverse(permutation)
    at, moved = _emitters(op, top)
    value = outer_value(op, at)
    if value is None:
        return None
    new = pad(at, source, apply(back, low_of(op)), apply(back, high_of(op)), value, apply(back, shape_of(op.result)))
    return transpose(scope, moved, new.result, permutation)


def _slice(scope: Scope, op: Operation) -> SSAValue | None:
    assert type(op) is tensor.ExtractSliceOp
    found = transposed_input(op.source)
    if found is None or len(shape_of(op.result)) != len(shape_of(op.source)):
        return None
    top, source, permutation = found
    at, moved = _emitters(op, top)
    new = at.add(permuted_slice(op, source, inverse(permutation)))
    return transpose(scope, moved, new.result, permutation)


def permuted_slice(op: tensor.ExtractSliceOp, source: SSAValue, permutation: Permutation) -> tensor.ExtractSliceOp:
    """The same slice (of full rank) of `source`, whose dimensions are those of op's source permuted."""
    offsets = apply(permutation, joined(op.static_offsets, op.offsets))
    sizes = apply(permutation, joined(op.static_sizes, op.sizes))
    strides = apply(permutation, joined(op.static_strides, op.strides))
    shape = apply(permutation, shape_of(op.result))
    return tensor.ExtractSliceOp(
        source, offsets, sizes, strides, attributes.tensor_type(element_of(op.result), tuple(shape))
    )


def _expand(scope: Scope, op: Operation) -> SSAValue | None:
    assert type(op) is tensor.ExpandShapeOp
    found = transposed_input(op.src)
    if found is None:
        return None
    top, source, permutation = found
    groups, dims = groups_of(op), scope.dims(op.result)
    if not can_reshape(scope, dims):
        return None
    at, moved = _emitters(op, top)
    below, new_groups = spread(permutation, groups)
    new = expand(scope, at, source, new_groups, apply(inverse(below), dims))
    return transpose(scope, moved, new, below)


def spread(permutation: Permutation, groups: Sequence[Sequence[int]]) -> tuple[Permutation, list[list[int]]]:
    """What `permutation` becomes below an expand that splits dimension `i` of its result into `groups[i]`, and the
    groups on its operand.

    >>> spread((1, 0), [[0, 1], [2]])
    ((1, 2, 0), [[0], [1, 2]])
    """
    start, new_groups = {}, []
    count = 0
    for axis, position in enumerate(inverse(permutation)):
        start[axis] = count
        new_groups.append(list(range(count, count + len(groups[position]))))
        count += len(groups[position])
    below = [start[permutation[i]] + k for i, group in enumerate(groups) for k in range(len(group))]
    return tuple(below), new_groups


def _collapse(scope: Scope, op: Operation) -> SSAValue | None:
    assert type(op) is tensor.CollapseShapeOp
    found = transposed_input(op.src)
    if found is None:
        return None
    top, source, permutation = found
    at, moved = _emitters(op, top)
    plan = gathered(permutation, groups_of(op))
    if plan is None:
        above = parted(permutation, groups_of(op))
        if above is None or is_returned(op.result):
            return None
        source = transpose(scope, moved, source, above)
        plan = gathered(compose(inverse(above), permutation), groups_of(op))
        assert plan is not None
    below, new_groups = plan
    return transpose(scope, moved, collapse(scope, at, source, new_groups), below)


def parted(permutation: Permutation, groups: Sequence[Sequence[int]]) -> Permutation | None:
    """The part of `permutation` that must stay above a collapse of its result by `groups`: it puts the dimensions of
    each group side by side, the groups in the order of their innermost dimensions in the operand. None where nothing
    would be left to move below.

    A channel shuffle between channels-last convolutions: only the shuffle stays.

    >>> parted((3, 2, 0, 1), [[0, 1], [2], [3]])
    (0, 1, 3, 2)
    >>> parted((0, 2, 1), [[0], [1, 2]]) is None
    True
    """
    sources = [[permutation[axis] for axis in group] for group in groups]
    order = sorted(range(len(groups)), key=lambda i: max(sources[i]))
    return None if order == list(range(len(groups))) else tuple(axis for i in order for axis in sources[i])


def gathered(permutation: Permutation, groups: Sequence[Sequence[int]]) -> tuple[Permutation, list[list[int]]] | None:
    """What `permutation` becomes below a collapse of its result by `groups`, and the groups on its operand; None where
    a group's dimensions do not lie side by side in the operand.

    >>> gathered((0, 3, 1, 2), [[0], [1], [2, 3]])
    ((0, 2, 1), [[0], [1, 2], [3]])
    >>> gathered((0, 3, 1, 2), [[0], [1, 2, 3]]) is None
    True
    """
    sources = [[permutation[axis] for axis in group] for group in groups]
    if not groups or any(axes != list(range(axes[0], axes[0] + len(axes))) for axes in sources):
        return None
    order = sorted(range(len(sources)), key=lambda i: sources[i][0])
    return inverse(order), [sources[i] for i in order]


def _concat(scope: Scope, op: Operation) -> SSAValue | None:
    """Moves the layout that carries most bytes; the other pieces get the inverse transpose, which is the concat's own,
    and so does what the caller is given."""
    assert type(op) is tensor.ConcatOp
    votes: dict[Permutation, int] = {}
    if is_returned(op.result):
        votes[identity(len(shape_of(op.result)))] = _elements(scope, op.result)
    tops: dict[Permutation, Operation] = {}
    for piece in op.inputs:
        found = transposed_input(piece)
        layout = found[2] if found is not None else identity(len(shape_of(piece)))
        votes[layout] = votes.get(layout, 0) + _weight(scope, piece)
        if found is not None:
            tops.setdefault(layout, found[0])
    best = max(votes, key=lambda layout: (votes[layout], layout not in tops, layout))
    if best not in tops:
        return None
    at, moved = _emitters(op, tops[best])
    back = inverse(best)
    pieces = [transpose(scope, at, piece, back) for piece in op.inputs]
    axis = best[op.dim.value.data]
    type_ = attributes.tensor_type(element_of(op.result), tuple(apply(back, shape_of(op.result))))
    return transpose(scope, moved, at.add(create_concat(pieces, axis, type_)).result, best)


def _weight(scope: Scope, value: SSAValue) -> int:
    """How much it matters that `value` is not transposed by itself: its elements, nothing for a constant, little for an
    argument."""
    found = transposed_input(value)
    source = root_of(found[1] if found is not None else value)
    if is_constant(source):
        return 0
    return _elements(scope, value) // (4 if type(source) is BlockArgument else 1)


def _elements(scope: Scope, value: SSAValue) -> int:
    """How many elements a value has, where every size without a bound is of `_SOME` elements."""
    size = d.product(scope.dims(value))
    return d.evaluate(size, {symbol.name: symbol.hi or max(symbol.lo, _SOME) for symbol in d.symbols(size)})


def _transpose(scope: Scope, op: Operation) -> SSAValue | None:
    assert type(op) is linalg.ops.TransposeOp
    found = transposed_input(operand_of(op, 0))
    permutation = permutation_of(op)
    if found is None:
        return None
    moved = Emitter(InsertPoint.before(op), location=op.location)
    return transpose(scope, moved, found[1], compose(found[2], permutation))


_RULES: dict[type[Operation], Callable[[Scope, Operation], SSAValue | None]] = {
    tensor.PadOp: _pad,
    tensor.ExtractSliceOp: _slice,
    tensor.ExpandShapeOp: _expand,
    tensor.CollapseShapeOp: _collapse,
    tensor.ConcatOp: _concat,
    linalg.ops.TransposeOp: _transpose,
}
