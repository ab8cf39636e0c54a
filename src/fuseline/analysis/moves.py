"""Where an op that only moves data finds an element of its result: from the coordinates of the element to those of its
source.

    transpose, broadcast, cast, expand_shape, collapse_shape, extract_slice     one source, read everywhere
    pad                 the source inside the border; outside of it nothing is read
    concat              the operand in whose range the coordinate along the axis falls
    insert_slice        the inserted tensor inside its box, else the destination

This is the only table of it. Whoever asks brings coordinates of its own kind, with the four operations of
`Coordinates`: affine expressions (fusion, below), linear forms (`linear_forms.py`: addresses), indices per lane (the
CPU target's code), arrays (the tests' check against the interpreter). The idea is that of tinygrad's
`apply_movement_op`.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, Generic, Protocol, TypeAlias, TypeVar

from xdsl.dialects import linalg, tensor
from xdsl.dialects.builtin import DYNAMIC_INDEX
from xdsl.ir import Operation, SSAValue
from xdsl.ir.affine import AffineBinaryOpExpr, AffineBinaryOpKind, AffineConstantExpr, AffineDimExpr, AffineExpr

from fuseline.ir import dim as d
from fuseline.ir.dim import Dim
from fuseline.ir.fast import attributes

C = TypeVar("C")


class Sizes(Protocol):
    """What is asked about sizes; `ShapeAnalysis` answers it."""

    def dims(self, value: SSAValue) -> tuple[Dim, ...]:
        """The sizes of a tensor value."""
        ...

    def mixed(self, static: Sequence[int], dynamic: Sequence[SSAValue]) -> tuple[Dim, ...]:
        """Sizes given partly as numbers and partly as index values."""
        ...


class Coordinates(Protocol[C]):
    """The arithmetic of one kind of coordinate."""

    def number(self, value: Dim) -> C:
        """A coordinate that is the same everywhere."""
        ...

    def moved(self, at: C, stride: Dim, offset: Dim) -> C:
        """`stride * at + offset`, along a dimension of which only a part is read, or which is read in another order."""
        ...

    def linearized(self, at: Sequence[C], sizes: Sequence[Dim]) -> C:
        """The row-major index of `at` in a shape of `sizes`."""
        ...

    def delinearized(self, at: C, sizes: Sequence[Dim]) -> Sequence[C] | None:
        """The coordinates of row-major index `at` in a shape of `sizes`; None where this kind cannot say it."""
        ...


@dataclass(frozen=True, slots=True)
class Guard(Generic[C]):
    """The source has the element only where `0 <= coordinate < size`. `axis`: the source's dimension, None for one that
    a slice drops."""

    axis: int | None
    coordinate: C
    size: Dim


@dataclass(frozen=True, slots=True)
class Source(Generic[C]):
    """Element `at` of `value`, where all guards hold. Of several sources the first whose guards hold has the
    element."""

    value: SSAValue
    at: tuple[C, ...]
    guards: tuple[Guard[C], ...] = ()


def sources(op: Operation, at: Sequence[C], sizes: Sizes, kind: Coordinates[C]) -> list[Source[C]] | None:
    """Where element `at` of the result of `op` lies, in the order in which guards are asked.

    None for an op that computes, and where coordinates of this kind cannot say it (a quotient inside a quotient).
    """
    rule = _RULES.get(type(op))
    return rule(op, at, sizes, kind) if rule is not None else None


def groups_of(op: tensor.ExpandShapeOp | tensor.CollapseShapeOp) -> list[list[int]]:
    """For each dimension of the narrower side of a reshape the dimensions of the wider side."""
    return [[axis.value.data for axis in group.data] for group in op.reassociation.data]


def kept_axes(sizes: Sequence[Dim], reduced: Sequence[int]) -> list[int]:
    """Which dimensions of a slice of `sizes` its type of shape `reduced` keeps: the first that fit, as MLIR's
    `computeRankReductionMask` has it.

    >>> kept_axes([1, 5, 1, 1], (5, 1))
    [1, 2]
    """
    drop, kept = len(sizes) - len(reduced), list[int]()
    for axis, size in enumerate(sizes):
        if size == 1 and drop and not (len(kept) < len(reduced) and reduced[len(kept)] == 1):
            drop -= 1
        else:
            kept.append(axis)
    return kept


def _shape(value: SSAValue) -> tuple[int, ...]:
    type_: Any = value.type
    return attributes.shape(type_)


# one rule per op ------------------------------------------------------------------------------------------------------


def _transpose(op: linalg.ops.TransposeOp, at: Sequence[C], sizes: Sizes, kind: Coordinates[C]) -> list[Source[C]]:
    del sizes, kind
    found = list(at)
    for axis, coordinate in zip(attributes.values(op.permutation), at, strict=True):
        found[axis] = coordinate
    return [Source(op.inputs[0], tuple(found))]


def _broadcast(op: linalg.ops.BroadcastOp, at: Sequence[C], sizes: Sizes, kind: Coordinates[C]) -> list[Source[C]]:
    del sizes, kind
    added = set(attributes.values(op.dimensions))
    return [Source(op.input, tuple(c for axis, c in enumerate(at) if axis not in added))]


def _cast(op: tensor.CastOp, at: Sequence[C], sizes: Sizes, kind: Coordinates[C]) -> list[Source[C]]:
    del sizes, kind
    return [Source(op.source, tuple(at))]


def _expand(op: tensor.ExpandShapeOp, at: Sequence[C], sizes: Sizes, kind: Coordinates[C]) -> list[Source[C]]:
    wide = sizes.dims(op.result)
    return [
        Source(
            op.src, tuple(kind.linearized([at[a] for a in group], [wide[a] for a in group]) for group in groups_of(op))
        )
    ]


def _collapse(
    op: tensor.CollapseShapeOp, at: Sequence[C], sizes: Sizes, kind: Coordinates[C]
) -> list[Source[C]] | None:
    wide = sizes.dims(op.src)
    found = [kind.number(0)] * len(wide)  # of a scalar, which has no groups, all dimensions are units
    for group, coordinate in zip(groups_of(op), at, strict=True):
        digits = kind.delinearized(coordinate, [wide[axis] for axis in group])
        if digits is None:
            return None
        for axis, digit in zip(group, digits, strict=True):
            found[axis] = digit
    return [Source(op.src, tuple(found))]


def _extract_slice(op: tensor.ExtractSliceOp, at: Sequence[C], sizes: Sizes, kind: Coordinates[C]) -> list[Source[C]]:
    offsets, strides = (
        sizes.mixed(attributes.values(op.static_offsets), op.offsets),
        sizes.mixed(attributes.values(op.static_strides), op.strides),
    )
    cut, whole = sizes.mixed(attributes.values(op.static_sizes), op.sizes), sizes.dims(op.source)
    coordinates = dict(zip(kept_axes(cut, _shape(op.result)), at, strict=True))
    found: list[C] = []
    for axis, (offset, stride, size, extent) in enumerate(zip(offsets, strides, cut, whole, strict=True)):
        if size == 1 != extent or axis not in coordinates:
            found.append(kind.number(offset))
        elif size == extent and (offset, stride) == (0, 1):
            found.append(coordinates[axis])
        else:
            found.append(kind.moved(coordinates[axis], stride, offset))
    return [Source(op.source, tuple(found))]


def _pad(op: tensor.PadOp, at: Sequence[C], sizes: Sizes, kind: Coordinates[C]) -> list[Source[C]]:
    lows, highs = (
        sizes.mixed(attributes.values(op.static_low), op.low),
        sizes.mixed(attributes.values(op.static_high), op.high),
    )
    found, guards = list(at), list[Guard[C]]()
    for axis, (low, high, size) in enumerate(zip(lows, highs, sizes.dims(op.source), strict=True)):
        if low != 0 or high != 0:
            found[axis] = kind.moved(at[axis], 1, d.mul(low, -1))
            guards.append(Guard(axis, found[axis], size))
    return [Source(op.source, tuple(found), tuple(guards))]


def _concat(op: tensor.ConcatOp, at: Sequence[C], sizes: Sizes, kind: Coordinates[C]) -> list[Source[C]]:
    axis, start = op.dim.value.data, 0
    found: list[Source[C]] = []
    for operand in op.inputs:
        inner, size = kind.moved(at[axis], 1, d.mul(start, -1)), sizes.dims(operand)[axis]
        found.append(Source(operand, (*at[:axis], inner, *at[axis + 1 :]), (Guard(axis, inner, size),)))
        start = d.add(start, size)
    return found


def _insert_slice(
    op: tensor.InsertSliceOp, at: Sequence[C], sizes: Sizes, kind: Coordinates[C]
) -> list[Source[C]] | None:
    offsets, box = (
        sizes.mixed(attributes.values(op.static_offsets), op.offsets),
        sizes.mixed(attributes.values(op.static_sizes), op.sizes),
    )
    if any(stride != 1 for stride in sizes.mixed(attributes.values(op.static_strides), op.strides)):
        return None
    axes = {axis: i for i, axis in enumerate(kept_axes(box, _shape(op.source)))}
    inner, guards = list(at), list[Guard[C]]()
    for axis, (offset, size, extent) in enumerate(zip(offsets, box, sizes.dims(op.dest), strict=True)):
        if size != extent:
            inner[axis] = kind.moved(at[axis], 1, d.mul(offset, -1))
            guards.append(Guard(axes.get(axis), inner[axis], size))
    return [Source(op.source, tuple(inner[axis] for axis in axes), tuple(guards)), Source(op.dest, tuple(at))]


_RULES: dict[type[Operation], Callable[[Any, Sequence[Any], Sizes, Coordinates[Any]], list[Source[Any]] | None]] = {
    linalg.ops.TransposeOp: _transpose,
    linalg.ops.BroadcastOp: _broadcast,
    tensor.CastOp: _cast,
    tensor.ExpandShapeOp: _expand,
    tensor.CollapseShapeOp: _collapse,
    tensor.ExtractSliceOp: _extract_slice,
    tensor.PadOp: _pad,
    tensor.ConcatOp: _concat,
    tensor.InsertSliceOp: _insert_slice,
}

MOVES = frozenset(_RULES)
"""The ops that only move data."""

RESHAPES = (tensor.ExpandShapeOp, tensor.CollapseShapeOp, tensor.CastOp)
"""Of these the ones whose result is the operand's elements in the same order."""


# coordinates as affine expressions ------------------------------------------------------------------------------------

Coordinate: TypeAlias = AffineExpr | None
"""An expression over loops; None where it is none (computed, or several dimensions regrouped)."""


class AffineCoordinates:
    """Coordinates as affine expressions. `regrouped`: a reshape mixed dimensions longer than 1, whose coordinates are
    None."""

    def __init__(self) -> None:
        self.regrouped = False

    def number(self, value: Dim) -> Coordinate:
        """A constant; a size that is no number is written as MLIR's dynamic marker."""
        return AffineConstantExpr(value if isinstance(value, int) else DYNAMIC_INDEX)

    def moved(self, at: Coordinate, stride: Dim, offset: Dim) -> Coordinate:
        """A sum that is no plain loop, whatever the offset; None for a stride."""
        if at is None or stride != 1:
            return None
        return AffineBinaryOpExpr(AffineBinaryOpKind.Add, at, self.number(offset))  # pyright: ignore[reportArgumentType]

    def linearized(self, at: Sequence[Coordinate], sizes: Sequence[Dim]) -> Coordinate:
        """The coordinate of the one dimension longer than 1."""
        moving = [c for c, size in zip(at, sizes, strict=True) if size != 1]
        self.regrouped |= len(moving) > 1
        return self.number(0) if not moving else moving[0] if len(moving) == 1 else None

    def delinearized(self, at: Coordinate, sizes: Sequence[Dim]) -> Sequence[Coordinate]:
        """Units are at 0; several dimensions longer than 1 are regrouped."""
        moving = sum(size != 1 for size in sizes)
        self.regrouped |= moving > 1
        return [self.number(0) if size == 1 else at if moving == 1 else None for size in sizes]


def affine_sources(op: Operation, sizes: Sizes) -> list[Source[Coordinate]] | None:
    """Where an op finds its result, in coordinates over the dimensions of that; None for an op that computes."""
    if type(op) not in MOVES:
        return None
    return sources(
        op, [AffineDimExpr(axis) for axis in range(len(sizes.dims(op.results[0])))], sizes, AffineCoordinates()
    )
