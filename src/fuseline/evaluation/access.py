"""Operands as the loops of a structured op see them: views indexed by loops instead of by the operand's own
dimensions."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, overload

import numpy as np
from numpy.lib.stride_tricks import as_strided
from numpy.typing import NDArray
from xdsl.ir.affine import (
    AffineBinaryOpExpr,
    AffineBinaryOpKind,
    AffineConstantExpr,
    AffineDimExpr,
    AffineExpr,
    AffineMap,
)

Array = NDArray[Any]


class OutOfBounds(ValueError):
    """An indexing map leaves its operand; the message has the numbers."""


@dataclass(frozen=True)
class Linear:
    """`constant + sum(coefficients[d] * d)` over loops d."""

    coefficients: tuple[int, ...]
    constant: int


def linear(expression: AffineExpr, loops: int) -> Linear | None:
    """`expression` over `loops` loops as a linear form; None where it divides or takes a remainder.

    >>> d = AffineDimExpr
    >>> linear(d(0) * 2 + d(2) + 1, 3)
    Linear(coefficients=(2, 0, 1), constant=1)
    """
    if isinstance(expression, AffineConstantExpr):
        return Linear((0,) * loops, expression.value)
    if isinstance(expression, AffineDimExpr):
        return Linear(tuple(int(d == expression.position) for d in range(loops)), 0)
    if not isinstance(expression, AffineBinaryOpExpr):
        return None
    lhs, rhs = linear(expression.lhs, loops), linear(expression.rhs, loops)
    if lhs is None or rhs is None:
        return None
    return _combined(expression.kind, lhs, rhs)


def _combined(kind: AffineBinaryOpKind, lhs: Linear, rhs: Linear) -> Linear | None:
    if kind is AffineBinaryOpKind.Add:
        return Linear(
            tuple(a + b for a, b in zip(lhs.coefficients, rhs.coefficients, strict=True)), lhs.constant + rhs.constant
        )
    if kind is AffineBinaryOpKind.Mul:
        if any(lhs.coefficients):
            lhs, rhs = rhs, lhs
        if not any(lhs.coefficients):
            return Linear(tuple(c * lhs.constant for c in rhs.coefficients), rhs.constant * lhs.constant)
    return None


def loop_sizes(maps: Sequence[AffineMap], shapes: Sequence[Sequence[int]], count: int) -> list[int]:
    """The extent of each loop, read off the operands' dimensions that are one loop; raises ValueError where they
    disagree or none is."""
    sizes = [-1] * count
    for map_, shape in zip(maps, shapes, strict=True):
        for expression, size in zip(map_.results, shape, strict=True):
            if isinstance(expression, AffineDimExpr):
                known = sizes[expression.position]
                if known not in (-1, size):
                    raise ValueError(f"loop d{expression.position} is {known} by one operand and {size} by another")
                sizes[expression.position] = size
    if -1 in sizes:
        raise ValueError(f"no operand says how long loop d{sizes.index(-1)} is")
    return sizes


class LoopIndices(Sequence[Array]):
    """The coordinate along each loop, shaped to broadcast over all of them; made when it is asked for: most bodies use
    none."""

    def __init__(self, sizes: Sequence[int]) -> None:
        self.sizes = tuple(sizes)

    def __len__(self) -> int:
        return len(self.sizes)

    @overload
    def __getitem__(self, index: int) -> Array: ...
    @overload
    def __getitem__(self, index: slice) -> Sequence[Array]: ...

    def __getitem__(self, index: int | slice) -> Array | Sequence[Array]:
        if isinstance(index, slice):
            return [self[d] for d in range(len(self))[index]]
        size = self.sizes[index]  # raises IndexError behind the last loop
        shape = [1] * len(self.sizes)
        shape[index] = size
        return np.arange(size, dtype=np.int64).reshape(shape)


def loop_indices(sizes: Sequence[int]) -> LoopIndices:
    """The coordinate along each loop, shaped to broadcast over all of them."""
    return LoopIndices(sizes)


def loop_view(array: Array, map_: AffineMap, sizes: Sequence[int]) -> Array:
    """`array` indexed by loops: dimension d of the view has the loop's extent, or 1 where all elements along loop d are
    one in memory.

    No data moves unless the map divides or takes remainders. Raises OutOfBounds.
    """
    forms = [linear(expression, len(sizes)) for expression in map_.results]
    if any(form is None for form in forms):
        return _gathered(array, map_, sizes)
    return _strided(array, [form for form in forms if form is not None], sizes)


def _strided(array: Array, forms: Sequence[Linear], sizes: Sequence[int]) -> Array:
    extents = [size if any(form.coefficients[d] for form in forms) else 1 for d, size in enumerate(sizes)]
    strides = [
        sum(form.coefficients[d] * stride for form, stride in zip(forms, array.strides, strict=True))
        if extent > 1
        else 0
        for d, extent in enumerate(extents)  # a loop of one step goes nowhere, however long the step is
    ]
    if 0 in extents:
        return np.empty(extents, array.dtype)
    for axis, form in enumerate(forms):
        _check_bounds(form, extents, array.shape[axis], axis)
    extents = [
        extent if stride else 1 for extent, stride in zip(extents, strides, strict=True)
    ]  # one element again and again is one element
    origin = (
        array[tuple(slice(form.constant, None) for form in forms)] if any(form.constant for form in forms) else array
    )
    return as_strided(origin, extents, strides, writeable=False)


def _check_bounds(form: Linear, extents: Sequence[int], size: int, axis: int) -> None:
    ends = [c * (extent - 1) for c, extent in zip(form.coefficients, extents, strict=True)]
    low, high = form.constant + sum(min(e, 0) for e in ends), form.constant + sum(max(e, 0) for e in ends)
    if low < 0 or high >= size:
        raise OutOfBounds(f"dimension {axis} of size {size} is read at {low}..{high}")


def _gathered(array: Array, map_: AffineMap, sizes: Sequence[int]) -> Array:
    indices = loop_indices(sizes)
    where = [np.asarray(evaluate_expression(expression, indices)) for expression in map_.results]
    for axis, index in enumerate(where):
        if index.size and (index.min() < 0 or index.max() >= array.shape[axis]):
            raise OutOfBounds(f"dimension {axis} of size {array.shape[axis]} is read at {index.min()}..{index.max()}")
    out = array[tuple(where)]
    return out.reshape((1,) * (len(sizes) - out.ndim) + out.shape)


def evaluate_expression(expression: AffineExpr, dims: Sequence[Any], symbols: Sequence[Any] = ()) -> Any:
    """An affine expression on arrays (or ints), one per dimension and symbol; floordiv and mod round down."""
    if isinstance(expression, AffineConstantExpr):
        return np.int64(expression.value)
    if isinstance(expression, AffineDimExpr):
        return dims[expression.position]
    if not isinstance(expression, AffineBinaryOpExpr):
        return symbols[expression.position]  # pyright: ignore[reportAttributeAccessIssue, reportUnknownMemberType]
    lhs, rhs = (evaluate_expression(operand, dims, symbols) for operand in (expression.lhs, expression.rhs))
    match expression.kind:
        case AffineBinaryOpKind.Add:
            return lhs + rhs
        case AffineBinaryOpKind.Mul:
            return lhs * rhs
        case AffineBinaryOpKind.Mod:
            return lhs % rhs
        case AffineBinaryOpKind.FloorDiv:
            return lhs // rhs
        case AffineBinaryOpKind.CeilDiv:
            return -(-lhs // rhs)


def from_loops(value: Array, map_: AffineMap, sizes: Sequence[int], destination: Array) -> Array:
    """A result computed over the loops, laid out as the op's output is.

    `value` broadcasts over the loops; `destination` supplies the elements that the loops do not reach. A view where
    possible.
    """
    forms = [linear(expression, len(sizes)) for expression in map_.results]
    order = [_single_loop(form) for form in forms]
    used = {d for d in order if d is not None}
    if all(_whole(form, d, sizes, size) for form, d, size in zip(forms, order, destination.shape, strict=True)) and len(
        used
    ) == _count(order):
        return _permuted(value, order, sizes, destination.shape)
    return _scattered(value, map_, sizes, destination)


def _single_loop(form: Linear | None) -> int | None:
    if form is None or form.constant or sum(c != 0 for c in form.coefficients) != 1 or max(form.coefficients) != 1:
        return None
    return form.coefficients.index(1)


def _count(order: Sequence[int | None]) -> int:
    return sum(d is not None for d in order)


def _whole(form: Linear | None, d: int | None, sizes: Sequence[int], size: int) -> bool:
    """Whether the loops write this whole dimension: it is one loop, or it has size 1 and the constant 0."""
    if form is None:
        return False
    return size == sizes[d] if d is not None else size == 1 and form == Linear((0,) * len(sizes), 0)


def _permuted(value: Array, order: Sequence[int | None], sizes: Sequence[int], shape: Sequence[int]) -> Array:
    kept = [d for d in order if d is not None]
    unused = tuple(slice(None) if d in kept else -1 for d in range(len(sizes)))
    full = np.broadcast_to(value, [size if d in kept else value.shape[d] for d, size in enumerate(sizes)])[unused]
    rank = {d: i for i, d in enumerate(sorted(kept))}
    return np.transpose(full, [rank[d] for d in kept]).reshape(shape)


def _scattered(value: Array, map_: AffineMap, sizes: Sequence[int], destination: Array) -> Array:
    indices = loop_indices(sizes)
    where = tuple(np.broadcast_to(evaluate_expression(expression, indices), sizes) for expression in map_.results)
    out = destination.copy()
    for axis, index in enumerate(where):
        if index.size and (index.min() < 0 or index.max() >= out.shape[axis]):
            raise OutOfBounds(f"dimension {axis} of size {out.shape[axis]} is written at {index.min()}..{index.max()}")
    out[where] = np.broadcast_to(value, sizes)
    return out
