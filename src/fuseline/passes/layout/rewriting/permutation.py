"""Permutations of tensor dimensions and the ops that carry them.

A permutation `p` is linalg.transpose's: dimension `i` of the result is dimension `p[i]` of the operand.

>>> inverse((2, 0, 1))
(1, 2, 0)
>>> compose((2, 0, 1), inverse((2, 0, 1)))
(0, 1, 2)
>>> apply((1, 0), "ab")
['b', 'a']
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import islice
from typing import Any, TypeVar, cast

from xdsl.dialects import arith, linalg, tensor
from xdsl.dialects.builtin import DenseArrayBase, DenseIntOrFPElementsAttr, IntegerType
from xdsl.ir import Attribute, Operation, SSAValue

from fuseline.analysis.structured import is_constant, producer_of
from fuseline.ir.build import Emitter, element_of, shape_of
from fuseline.ir.fast import attributes
from fuseline.ir.fast.build import block_with, create_op, region_with
from fuseline.ir.fast.create import create_constant, create_empty, create_fill, create_yield
from fuseline.ir.fast.direct import append, operand_of, operands_of, replace_uses, result_of
from fuseline.ir.splats import one_element
from fuseline.passes.layout.rewriting.scope import Scope

Permutation = tuple[int, ...]
T = TypeVar("T")


def identity(rank: int) -> Permutation:
    """The permutation that moves nothing."""
    return tuple(range(rank))


def is_identity(permutation: Sequence[int]) -> bool:
    """Whether nothing moves."""
    return all(i == axis for i, axis in enumerate(permutation))


def inverse(permutation: Sequence[int]) -> Permutation:
    """The permutation that undoes this one."""
    out = [0] * len(permutation)
    for i, axis in enumerate(permutation):
        out[axis] = i
    return tuple(out)


def compose(first: Sequence[int], second: Sequence[int]) -> Permutation:
    """Transposing by `first`, then by `second`, as one permutation."""
    return tuple(first[axis] for axis in second)


def apply(permutation: Sequence[int], items: Sequence[T]) -> list[T]:
    """`items` (one per dimension of the operand) in the order of the result."""
    return [items[axis] for axis in permutation]


def transposed_input(value: SSAValue) -> tuple[linalg.ops.TransposeOp, SSAValue, Permutation] | None:
    """The transpose that makes `value`, its operand and permutation; None where something else makes it."""
    op = producer_of(value)
    if type(op) is linalg.ops.TransposeOp:
        return op, operand_of(op, 0), permutation_of(op)
    return None


def permutation_of(op: linalg.ops.TransposeOp) -> Permutation:
    """The permutation of a transpose."""
    return attributes.values(cast(DenseArrayBase[IntegerType], op.properties["permutation"]))


def transpose(scope: Scope, at: Emitter, value: SSAValue, permutation: Sequence[int]) -> SSAValue:
    """`value` with its dimensions permuted; composes with a transpose that makes `value`, and re-orders inits instead
    of moving them."""
    found = transposed_input(value)
    if found is not None:
        value, permutation = found[1], compose(found[2], permutation)
    if is_identity(permutation):
        return value
    if not is_constant(value) and is_init(value):
        return permuted_init(scope, value, permutation)
    init = scope.empty_permuted(at, value, permutation)
    return result_of(at.add(_transpose_op(value, init, tuple(permutation))))


def _transpose_op(value: SSAValue, init: SSAValue, permutation: Permutation) -> linalg.ops.TransposeOp:
    """What the constructor makes, without its checks: transposes are made by the thousand while they move, and most
    cancel."""
    element = element_of(value)
    block = block_with([element, element])
    append(create_yield([block.args[0]]), block)
    properties: dict[str, Attribute] = {"permutation": attributes.dense(permutation)}
    return create_op(linalg.ops.TransposeOp, [value, init], [init.type], properties, [region_with(block)])


def is_init(value: SSAValue) -> bool:
    """Whether `value` is the same everywhere or undefined: empty, a fill of an empty, a splat constant."""
    op = producer_of(value)
    if type(op) is linalg.ops.FillOp:
        return is_init(operand_of(op, 1))
    if type(op) is arith.ConstantOp:
        return isinstance(op.value, DenseIntOrFPElementsAttr) and one_element(op.value) is not None
    return type(op) is tensor.EmptyOp


def permuted_init(scope: Scope, value: SSAValue, permutation: Sequence[int]) -> SSAValue:
    """An init like `value` (see `is_init`) whose sizes are permuted, right after `value`."""
    op = producer_of(value)
    assert op is not None
    at = Emitter.after(op)
    if type(op) is linalg.ops.FillOp:
        return scope.shared(value, tuple(permutation), lambda: _permuted_fill(scope, at, op, permutation))
    if type(op) is arith.ConstantOp:
        return _permuted_splat(at, op, permutation)
    assert type(op) is tensor.EmptyOp
    if not operands_of(op):
        return scope.static_empty(
            at, attributes.tensor_type(element_of(value), tuple(apply(permutation, shape_of(value))))
        )
    return result_of(at.add(_permuted_empty(op, permutation)))


def _permuted_fill(scope: Scope, at: Emitter, op: linalg.ops.FillOp, permutation: Sequence[int]) -> SSAValue:
    into = permuted_init(scope, operand_of(op, 1), permutation)
    return result_of(at.add(create_fill(operand_of(op, 0), into)))


def _permuted_empty(op: tensor.EmptyOp, permutation: Sequence[int]) -> tensor.EmptyOp:
    rest = iter(op.dynamic_sizes)
    shape = shape_of(op.tensor)
    sizes = [next(rest) if size < 0 else None for size in shape]
    dynamic = [size for size in apply(permutation, sizes) if size is not None]
    return create_empty(attributes.tensor_type(element_of(op.tensor), tuple(apply(permutation, shape))), dynamic)


def _permuted_splat(at: Emitter, op: arith.ConstantOp, permutation: Sequence[int]) -> SSAValue:
    attribute = op.value
    assert isinstance(attribute, DenseIntOrFPElementsAttr)
    type_ = attributes.tensor_type(element_of(op.result), tuple(apply(permutation, shape_of(op.result))))
    return at.add(create_constant(DenseIntOrFPElementsAttr(cast(Any, type_), attribute.data), type_)).result


def init_like(scope: Scope, at: Emitter, value: SSAValue, permutation: Sequence[int]) -> SSAValue:
    """The init `value` permuted: re-made where it is one, transposed where it holds data."""
    return permuted_init(scope, value, permutation) if is_init(value) else transpose(scope, at, value, permutation)


def users_of(value: SSAValue) -> list[Operation]:
    """The ops that use `value`, one entry per use, without `tensor.dim` (which reads no element)."""
    return [use.operation for use in value.uses if type(use.operation) is not tensor.DimOp]


def is_shared(value: SSAValue) -> bool:
    """Whether more than one use is in `users_of`, without a look at all of what may be thousands."""
    users = (use.operation for use in value.uses if type(use.operation) is not tensor.DimOp)
    return next(islice(users, 1, None), None) is not None


def merge_equal_transposes(value: SSAValue) -> None:
    """Make one of several transposes of `value` by the same permutation; the earliest stays."""
    seen: dict[Permutation, list[linalg.ops.TransposeOp]] = {}
    for user in users_of(value):
        if type(user) is linalg.ops.TransposeOp and operand_of(user, 0) is value:
            seen.setdefault(permutation_of(user), []).append(user)
    for equal in seen.values():
        if len(equal) > 1:
            first = min(equal, key=_position)
            for other in equal:
                if other is not first:
                    replace_uses(result_of(other), result_of(first))


def _position(op: Operation) -> int:
    block = op.parent
    assert block is not None
    return block.get_operation_index(op)
