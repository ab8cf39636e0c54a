"""Reshapes as one idea: row-major sizes to row-major sizes, emitted as at most one collapse and one expand.

What a chain of expand_shape and collapse_shape does is settled by its first and its last sizes alone, so chains are
always rebuilt from their root, and a chain that ends where it began disappears.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache
from itertools import pairwise
from typing import Any, TypeGuard, cast

from xdsl.dialects import tensor
from xdsl.dialects.arith import ConstantOp
from xdsl.dialects.builtin import DYNAMIC_INDEX, DenseIntOrFPElementsAttr
from xdsl.dialects.linalg import ops as linalg_ops
from xdsl.ir import Attribute, Operation, SSAValue

from fuseline.analysis.shapes import Dims
from fuseline.analysis.structured import producer_of
from fuseline.ir import dim as d
from fuseline.ir.build import Emitter, element_of
from fuseline.ir.dim import Dim
from fuseline.ir.dim_order import never_less
from fuseline.ir.fast import attributes
from fuseline.ir.fast.build import create_op
from fuseline.ir.fast.create import create_constant, create_fill
from fuseline.ir.fast.direct import erase, replace_uses, result_of
from fuseline.ir.splats import one_element
from fuseline.passes.layout.rewriting.permutation import is_init
from fuseline.passes.layout.rewriting.scope import Scope

ReshapeOp = tensor.ExpandShapeOp | tensor.CollapseShapeOp
Groups = list[list[int]]


def is_reshape(op: Operation | None) -> TypeGuard[ReshapeOp]:
    """Whether `op` is an expand_shape or a collapse_shape."""
    return type(op) is tensor.ExpandShapeOp or type(op) is tensor.CollapseShapeOp


def grouped(sizes: Sequence[int]) -> Groups:
    """Consecutive groups with the given numbers of dimensions.

    >>> grouped([2, 1])
    [[0, 1], [2]]
    """
    out: Groups = []
    for size in sizes:
        start = out[-1][-1] + 1 if out and out[-1] else sum(len(group) for group in out)
        out.append(list(range(start, start + size)))
    return out


def segments(before: Sequence[Dim], after: Sequence[Dim]) -> Sequence[tuple[int, int]]:
    """How many dimensions of `before` become how many of `after`, cut wherever the products of the leading sizes agree.

    >>> segments([4, 6, 5], [24, 5])
    [(2, 1), (1, 1)]
    >>> segments([1, 4], [4, 1])
    [(2, 2)]
    """
    return _segments(tuple(before), tuple(after))


@lru_cache(maxsize=1024)
def _segments(before: Dims, after: Dims) -> list[tuple[int, int]]:
    left, right = _prefixes(before), _prefixes(after)
    cuts: list[tuple[int, int]] = [(0, 0)]
    for i, product in enumerate(left, start=1):
        j = next((j for j in range(cuts[-1][1] + 1, len(right) + 1) if right[j - 1] == product), None)
        if j is not None:
            cuts.append((i, j))
    if len(cuts) > 1:
        cuts.pop()
    elif not before and not after:
        return []
    cuts.append((len(before), len(after)))
    return [part for (a, b), (i, j) in pairwise(cuts) for part in _split_each(before[a:i], after[b:j])]


def _split_each(before: Dims, after: Dims) -> list[tuple[int, int]]:
    """One segment, or one per dimension of `before` where each becomes a few that are surely no more: none can be less
    then, as all of them are as many elements (or there are none).

    >>> h = d.symbol("h")
    >>> _split_each((16, h, 5), (16, d.floor_div(h, 2), 2, 5))
    [(1, 1), (1, 2), (1, 1)]
    """
    counts: list[int] = []
    for size in before[:-1]:
        first = sum(counts)
        fitting = [j for j, made in enumerate(_prefixes(after[first:]), start=1) if never_less(size, made)]
        counts.append(max(fitting, default=0))
    counts.append(len(after) - sum(counts))
    if len(before) < 2 or min(counts) < 1 or not never_less(before[-1], d.product(after[-counts[-1] :])):
        return [(len(before), len(after))]
    return [(1, count) for count in counts]


def _prefixes(dims: Sequence[Dim]) -> list[Dim]:
    out: list[Dim] = []
    total: Dim = 1
    for size in dims:
        total = d.mul(total, size)
        out.append(total)
    return out


def root_of(value: SSAValue) -> SSAValue:
    """The value that `value` is a reshape of (itself if it is none)."""
    op = producer_of(value)
    while is_reshape(op):
        value = op.src
        op = producer_of(value)
    return value


def can_reshape(scope: Scope, dims: Sequence[Dim]) -> bool:
    """Whether sizes `dims` can be written as the shape of an expand (known at the entry, none zero)."""
    return scope.knows_all(dims) and 0 not in dims


def reshape(scope: Scope, at: Emitter, value: SSAValue, dims: Sequence[Dim]) -> SSAValue:
    """`value` with sizes `dims` (of the same product; see `can_reshape`); rebuilt from the root of a chain of
    reshapes."""
    root = root_of(value)
    before = scope.dims(root)
    if tuple(dims) == tuple(before):
        return root
    if is_init(root):
        return init_of_sizes(scope, at, root, dims)
    if not dims:
        return collapse(scope, at, root, [])
    cut = segments(before, dims)
    counts = [count for count, _ in cut]
    middle = collapse(scope, at, root, grouped(counts)) if max(counts) > 1 else root
    return _expand(scope, at, middle, cut, dims)


def collapse(scope: Scope, at: Emitter, value: SSAValue, groups: Groups) -> SSAValue:
    """`tensor.collapse_shape` as it stands."""
    dims = scope.dims(value)
    type_ = scope.typed(value, [d.product(dims[axis] for axis in group) for group in groups])
    op = create_op(tensor.CollapseShapeOp, [value], [type_], {"reassociation": attributes.reassociation(groups)})
    return result_of(at.add(op))


def merge_chain(scope: Scope, op: ReshapeOp) -> None:
    """Rebuild a reshape of a reshape from the root of the chain."""
    dims = scope.dims(op.result)
    if is_reshape(producer_of(op.src)) and can_reshape(scope, dims):
        replace_uses(op.result, reshape(scope, Emitter.before(op), op.src, dims))
        erase(op)


def _expand(
    scope: Scope, at: Emitter, value: SSAValue, cut: Sequence[tuple[int, int]], dims: Sequence[Dim]
) -> SSAValue:
    counts = [count for before, count in cut if before]
    if all(count == 1 for count in counts) and len(scope.dims(value)) == len(dims):
        return value
    return expand(scope, at, value, grouped(counts), dims)


def expand(scope: Scope, at: Emitter, value: SSAValue, groups: Groups, dims: Sequence[Dim]) -> SSAValue:
    """`tensor.expand_shape` as it stands."""
    static = [size if isinstance(size, int) else DYNAMIC_INDEX for size in dims]
    dynamic = [scope.size_value(size) for size in dims if not isinstance(size, int)]
    properties: dict[str, Attribute] = {
        "reassociation": attributes.reassociation(groups),
        "static_output_shape": attributes.dense(tuple(static)),
    }
    op = create_op(tensor.ExpandShapeOp, [value, *dynamic], [scope.typed(value, dims)], properties)
    return result_of(at.add(op))


def init_of_sizes(scope: Scope, at: Emitter, value: SSAValue, dims: Sequence[Dim]) -> SSAValue:
    """The init `value` (see `is_init`) with other sizes, of any product."""
    op = producer_of(value)
    if type(op) is linalg_ops.FillOp:
        return _filled(scope, at, op.inputs[0], value, dims)
    if type(op) is not ConstantOp:
        return scope.empty(at, element_of(value), dims)
    assert isinstance(op.value, DenseIntOrFPElementsAttr)
    if not all(isinstance(size, int) for size in dims):  # a constant's sizes are numbers
        number = one_element(op.value)
        assert number is not None
        return _filled(scope, at, at.scalar(number, element_of(value)), value, dims)
    type_ = scope.typed(value, dims)
    return at.add(create_constant(DenseIntOrFPElementsAttr(cast(Any, type_), op.value.data), type_)).result


def _filled(scope: Scope, at: Emitter, number: SSAValue, like: SSAValue, dims: Sequence[Dim]) -> SSAValue:
    return at.add(create_fill(number, scope.empty(at, element_of(like), dims))).results[0]
