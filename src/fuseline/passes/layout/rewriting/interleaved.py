"""Parts of a concat that take turns:  transpose(expand(concat(a, b)))  =>  concat of a and b along an inner dimension.

    concat(a, b) ──> expand 2c to 2 x c ──> transpose to c x 2      =>      a to c x 1 ──┐  concat along
                                                                            b to c x 1 ──┴─> the last dimension

Each part is one slice of the new outer dimension, so that moving this dimension moves nothing within a part: what makes
a part may write it to its places. A channel shuffle after the concat of two branches (N. Ma et al., ShuffleNet V2,
2018) is the common case. What is computed point by point between the two, as a concat is quantised, is computed of each
part.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import reduce

from xdsl.dialects import linalg, tensor
from xdsl.dialects.arith import ConstantOp
from xdsl.ir import Operation, OpResult

from fuseline.analysis.moves import groups_of
from fuseline.analysis.structured import DENSE, is_generic, kind, producer_of
from fuseline.ir.build import Emitter, element_of, shape_of
from fuseline.ir.dim import Dim, product
from fuseline.ir.fast import attributes
from fuseline.ir.fast.create import create_concat
from fuseline.ir.fast.direct import erase, replace_uses, result_of, users_of_value
from fuseline.ir.provenance import carry
from fuseline.passes.layout.rewriting.permutation import Permutation, apply, permutation_of
from fuseline.passes.layout.rewriting.repeated_parts import Chain, applied, is_point_by_point
from fuseline.passes.layout.rewriting.reshapes import can_reshape, is_reshape, reshape
from fuseline.passes.layout.rewriting.scope import Scope


def interleave(scope: Scope, opened: tensor.ExpandShapeOp) -> bool:
    """Replace the transposes of `opened`, an expand of a concat, by concats where the drawing applies; whether it
    did."""
    joined, chain = _joined(opened)
    if joined is None:
        return False
    tops = [
        user
        for user in users_of_value(opened.result)
        if type(user) is linalg.ops.TransposeOp and not _lands_in_weights(user)
    ]
    axis = _part_dimension(scope, opened, joined)
    dims = scope.dims(opened.result)
    if axis is None or not tops or not all(_moves_only(permutation_of(top), axis, dims) for top in tops):
        return False
    parts = [1 if i == axis else dim for i, dim in enumerate(dims)]
    if not can_reshape(scope, parts):
        return False
    for top in tops:
        _replace(scope, top, joined, chain, axis, parts)
    return True


def _joined(opened: tensor.ExpandShapeOp) -> tuple[tensor.ConcatOp | None, Chain]:
    """The concat that `opened` takes apart, and what is computed on the way, point by point and for `opened` alone."""
    value, chain = opened.src, Chain()
    while type(value) is OpResult and is_point_by_point(value.op, in_order=True) and len(users_of_value(value)) == 1:
        assert is_generic(value.op)
        chain.insert(0, value.op)
        value = value.op.inputs[0]
    joined = value.op if type(value) is OpResult else None
    if type(joined) is not tensor.ConcatOp or (chain and len(users_of_value(value)) > 1):
        return None, chain
    return joined, chain


def _lands_in_weights(top: linalg.ops.TransposeOp) -> bool:
    """Whether all that reads a transpose, reshapes aside, multiplies it by constants: those are put in its order, and
    the parts stay as they are."""
    readers, pending = list[Operation](), [result_of(top)]
    while pending:
        for user in users_of_value(pending.pop()):
            if is_reshape(user):
                pending.append(user.result)
            else:
                readers.append(user)
    return bool(readers) and all(_multiplies_by_constants(user) for user in readers)


def _multiplies_by_constants(op: Operation) -> bool:
    if not is_generic(op) or kind(op) not in DENSE:
        return False
    return sum(type(producer_of(value)) is ConstantOp for value in op.inputs) == len(op.inputs) - 1


def _part_dimension(scope: Scope, opened: tensor.ExpandShapeOp, joined: tensor.ConcatOp) -> int | None:
    """The dimension of `opened` that counts the parts of `joined`: the first of those that the joined dimension is
    split into."""
    axis, dims = joined.dim.value.data, scope.dims(opened.result)
    first, *rest = groups_of(opened)[axis]
    sizes = {scope.dims(part)[axis] for part in joined.inputs}
    return first if dims[first] == len(joined.inputs) and sizes == {product(dims[i] for i in rest)} else None


def _moves_only(permutation: Permutation, axis: int, dims: Sequence[Dim]) -> bool:
    """Whether all but `axis`, and what has one element, stay in their order."""
    others = [i for i in permutation if i != axis and dims[i] != 1]
    return others == sorted(others)


def _replace(
    scope: Scope, top: linalg.ops.TransposeOp, joined: tensor.ConcatOp, chain: Chain, axis: int, parts: list[Dim]
) -> None:
    permutation, at = permutation_of(top), Emitter.before(top)
    made = [reduce(lambda value, op: applied(op, value, top), chain, part) for part in joined.inputs]
    pieces = [reshape(scope, at, part, apply(permutation, parts)) for part in made]
    type_ = attributes.tensor_type(element_of(result_of(top)), shape_of(result_of(top)))
    new = at.add(create_concat(pieces, permutation.index(axis), type_))
    carry((joined,), (new,))
    replace_uses(result_of(top), new.result)
    erase(top)
