"""Reshapes that do nothing, pairs that are one reshape, reshapes of fills."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, TypeAlias

from xdsl.dialects import linalg, tensor
from xdsl.dialects.builtin import DYNAMIC_INDEX, TensorType
from xdsl.ir import OpResult, SSAValue

from fuseline.ir.build import element_of, shape_of
from fuseline.ir.fast import attributes
from fuseline.passes.cleanup.folds.worklist import Fold, Worklist

Reshape: TypeAlias = tensor.ExpandShapeOp | tensor.CollapseShapeOp
Groups: TypeAlias = list[list[int]]


def fold_identity(op: Reshape, work: Worklist) -> bool:
    """A reshape to the same type.

    tensor.expand_shape %x [[0], [1]] : tensor<4x8xf32> into tensor<4x8xf32>   =>   %x
    """
    if op.src.type != op.result.type:
        return False
    work.replace(op, [], [op.src])
    return True


def fold_inverse(op: Reshape, work: Worklist) -> bool:
    """A reshape that undoes the one before it, group by group (dynamic sizes included)."""
    inner = _source(op)
    if (
        inner is None
        or type(inner) is type(op)
        or inner.src.type != op.result.type
        or inner.reassociation != op.reassociation
    ):
        return False
    if type(op) is tensor.ExpandShapeOp and not _sizes_follow(op, inner.src):
        return False
    work.replace(op, [], [inner.src])
    return True


def _sizes_follow(op: tensor.ExpandShapeOp, original: SSAValue) -> bool:
    """Whether each group has at most one unknown size, which the product then fixes."""
    shape = shape_of(original)
    return all(sum(shape[i.value.data] == DYNAMIC_INDEX for i in group.data) <= 1 for group in _groups(op))


def _groups(op: Reshape) -> Any:
    return op.reassociation.data


def _source(op: Reshape) -> Reshape | None:
    producer = op.src.op if type(op.src) is OpResult else None
    return producer if isinstance(producer, Reshape) else None


def fold_chain(op: Reshape, work: Worklist) -> bool:
    """Two reshapes of static tensors that one can do.

    collapse(collapse %x), expand(expand %x)   =>   one of them
    collapse(expand %x) where the result is %x regrouped   =>   one reshape
    """
    inner = _source(op)
    if inner is None or DYNAMIC_INDEX in (*shape_of(inner.src), *shape_of(op.result)):
        return False
    new = reshape_op(inner.src, shape_of(op.result))
    if new is None:
        return False
    work.replace(op, [new])
    return True


def reshape_op(value: SSAValue, shape: Sequence[int]) -> Reshape | None:
    """One op that gives a static `value` another shape: a collapse or an expansion; None where it takes both (or none).

    Both shapes have the same number of elements.
    """
    source, type_ = shape_of(value), TensorType(element_of(value), list(shape))
    if len(source) > len(shape):
        groups = group_sizes(source, shape)
        return None if groups is None else _collapse(value, groups, type_)
    groups = group_sizes(shape, source)
    if groups is None or len(source) == len(shape):
        return None
    return tensor.ExpandShapeOp(value, [], attributes.reassociation(groups), list(shape), type_)


def _collapse(value: SSAValue, groups: Groups, type_: TensorType[Any]) -> tensor.CollapseShapeOp:
    return tensor.CollapseShapeOp.build(
        operands=[value], result_types=[type_], properties={"reassociation": attributes.reassociation(groups)}
    )


def group_sizes(large: Sequence[int], small: Sequence[int]) -> Groups | None:
    """Consecutive dimensions of `large` whose products are the dimensions of `small`; None where there is no such
    grouping.

    >>> group_sizes([2, 3, 4], [6, 4])
    [[0, 1], [2]]
    >>> group_sizes([1, 4, 1], [4])
    [[0, 1, 2]]
    >>> group_sizes([4, 6], [8, 3]) is None
    True
    """
    if not small:
        return [] if all(size == 1 for size in large) else None
    if 0 in large:
        return None
    groups: Groups = []
    position = 0
    for k, size in enumerate(small):
        group, product = [position], large[position] if position < len(large) else 0
        position += 1
        while product < size and position < len(large):
            group.append(position)
            product *= large[position]
            position += 1
        if product != size:
            return None
        # Unit dimensions go to the group they follow, as long as enough dimensions are left for the other groups.
        while (
            position < len(large)
            and large[position] == 1
            and len(large) - position > len(small) - k - 1
            and not _starts(large, small, position, k)
        ):
            group.append(position)
            position += 1
        groups.append(group)
    return groups if position == len(large) else None


def _starts(large: Sequence[int], small: Sequence[int], position: int, k: int) -> bool:
    """Whether the unit dimension at `position` is wanted as the next group of its own."""
    return k + 1 < len(small) and small[k + 1] == 1


def fold_reshaped_fill(op: Reshape, work: Worklist) -> bool:
    """A reshape of a filled tensor fills one of the new shape (static shapes); `undefined.py` has empty ones."""
    producer = op.src.op if type(op.src) is OpResult else None
    if DYNAMIC_INDEX in shape_of(op.result):
        return False
    if type(producer) is linalg.ops.FillOp:
        empty = tensor.EmptyOp([], op.result.type)
        work.replace(op, [empty, linalg.ops.FillOp([producer.inputs[0]], [empty.tensor], [op.result.type])])
        return True
    return False


FOLDS: tuple[Fold, ...] = (fold_identity, fold_inverse, fold_reshaped_fill, fold_chain)
