"""Reshapes as collapse_shape and expand_shape, by refining both shapes into groups of equal products.

2x3x4 -> 6x2x2      groups: (2, 3 | 6)  (4 | 2, 2)      collapse to 6x4, expand to 6x2x2
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from xdsl.dialects import tensor
from xdsl.ir import Attribute, SSAValue

from fuseline.ir.build import DYNAMIC_INDEX, Emitter, dims_map, element_of, tensor_type
from fuseline.ir.dim import Dim, floor_div, mul, product
from fuseline.ir.fast import attributes
from fuseline.ir.fast.build import create_op
from fuseline.ir.fast.direct import result_of

Group = tuple[list[int], list[int]]


def _divides(small: Dim, large: Dim) -> bool:
    if isinstance(small, int) and isinstance(large, int):
        return small != 0 and large % small == 0
    if small == 0 or isinstance(large, int):
        return False
    return mul(floor_div(large, small), small) == large


def _takes_source(a: Dim, b: Dim) -> bool | None:
    """Whether the product `a` of source axes must grow to meet `b`; None where that cannot be known."""
    if _divides(a, b):
        return True
    if _divides(b, a):
        return False
    return a < b if isinstance(a, int) and isinstance(b, int) else None


def groups_of(source: Sequence[Dim], target: Sequence[Dim]) -> list[Group] | None:
    """Axes of both shapes in the finest groups of provably equal products; None where only the totals are known to
    agree.

    >>> groups_of((2, 3, 4), (6, 2, 2))
    [([0, 1], [0]), ([2], [1, 2])]
    """
    groups: list[Group] = []
    i = j = 0
    while i < len(source) and j < len(target):
        left, right, a, b = [i], [j], source[i], target[j]
        while a != b:
            grow = _takes_source(a, b)
            if grow is None or (i + 1 >= len(source) if grow else j + 1 >= len(target)):
                return None
            if grow:
                i += 1
                left.append(i)
                a = mul(a, source[i])
            else:
                j += 1
                right.append(j)
                b = mul(b, target[j])
        groups.append((left, right))
        i, j = i + 1, j + 1
    return _with_tails(groups, source, target, i, j)


def _with_tails(
    groups: list[Group], source: Sequence[Dim], target: Sequence[Dim], i: int, j: int
) -> list[Group] | None:
    """The groups with what remains of either shape (sizes of 1) in the last one."""
    tails = [*source[i:], *target[j:]]
    if any(size != 1 for size in tails):
        return None
    if groups and tails:
        left, right = groups[-1]
        groups[-1] = (left + list(range(i, len(source))), right + list(range(j, len(target))))
    return groups


def _collapse(emit: Emitter, value: SSAValue, groups: Sequence[Sequence[int]], dims: Sequence[Dim]) -> SSAValue:
    type_ = tensor_type(element_of(value), dims)
    return result_of(
        emit.add(
            create_op(tensor.CollapseShapeOp, [value], [type_], {"reassociation": attributes.reassociation(groups)})
        )
    )


def _expand(
    emit: Emitter,
    value: SSAValue,
    groups: Sequence[Sequence[int]],
    dims: Sequence[Dim],
    size: Callable[[Dim], SSAValue],
) -> SSAValue:
    dynamic = [size(dim) for dim in dims if not isinstance(dim, int)]
    static = attributes.dense(tuple([dim if isinstance(dim, int) else DYNAMIC_INDEX for dim in dims]))
    properties: dict[str, Attribute] = {
        "reassociation": attributes.reassociation(groups),
        "static_output_shape": static,
    }
    return result_of(
        emit.add(create_op(tensor.ExpandShapeOp, [value, *dynamic], [tensor_type(element_of(value), dims)], properties))
    )


def _cast(emit: Emitter, value: SSAValue, source: Sequence[Dim], wanted: Sequence[Dim]) -> SSAValue:
    """`value` typed as the target's groups are: MLIR wants a number on both sides of a reshape, or on neither."""
    if all(isinstance(a, int) == isinstance(b, int) for a, b in zip(source, wanted, strict=True)):
        return value
    return emit.add(tensor.CastOp(value, tensor_type(element_of(value), wanted))).dest


def reshape_value(
    emit: Emitter, value: SSAValue, source: Sequence[Dim], target: Sequence[Dim], size: Callable[[Dim], SSAValue]
) -> SSAValue:
    """`value` of sizes `source` seen with sizes `target` (equal element counts); `size` supplies index values."""
    if tuple(source) == tuple(target):
        return value
    if not source or not target:
        return _between_scalar_and_ones(emit, value, len(source), target)
    groups = groups_of(source, target)
    if groups is None:
        groups = [(list(range(len(source))), list(range(len(target))))]
    middle = [product(source[axis] for axis in left) for left, _ in groups]
    if len(middle) != len(source):
        value = _collapse(emit, value, [left for left, _ in groups], middle)
    if len(middle) != len(target):
        value = _cast(emit, value, middle, [product(target[axis] for axis in right) for _, right in groups])
        value = _expand(emit, value, [right for _, right in groups], target, size)
    return value


def _between_scalar_and_ones(emit: Emitter, value: SSAValue, rank: int, target: Sequence[Dim]) -> SSAValue:
    """A copy of one element: xDSL's reshape ops take no empty reassociation."""
    out = emit.empty(element_of(value), target)
    return emit.elementwise([value], out, lambda b: b.args[0], [dims_map(len(target), [None] * rank)])
