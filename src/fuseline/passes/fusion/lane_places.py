"""Where the elements of a vector lie: what becomes of each coordinate from lane to lane.

extract %t[%i, %place]      along lanes that %place alone varies with: (same, any)
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from enum import Enum

from xdsl.dialects import linalg, tensor
from xdsl.ir import Operation, OpResult, SSAValue
from xdsl.ir.affine import AffineBinaryOpExpr, AffineBinaryOpKind, AffineConstantExpr, AffineDimExpr

from fuseline.analysis.moves import Coordinate
from fuseline.analysis.operand_reads import operand_reads
from fuseline.analysis.shapes import ShapeAnalysis
from fuseline.analysis.structured import StructuredOp, body_ops, is_generic, splat_value
from fuseline.analysis.walks import loop_of, loops_behind


class Along(Enum):
    """What becomes of a coordinate from lane to lane of a vector."""

    SAME = "same"
    NEXT = "next"
    ANY = "any"


Place = tuple[Along, ...]
"""Of an element, per dimension of its tensor."""


def is_spread(place: Place) -> bool:
    """Whether the elements of a vector do not lie side by side, nor are one and the same."""
    return Along.ANY in place or Along.NEXT in place[:-1]


def place_of(view: StructuredOp, indices: Sequence[SSAValue], lanes: int) -> Place:
    """Where a body finds the elements of a vector along the loop `lanes` by `indices`."""
    return tuple(_along(view, index, lanes) for index in indices)


def _along(view: StructuredOp, index: SSAValue, lanes: int) -> Along:
    """What becomes of an index of a body along the loop `lanes`."""
    if isinstance(index.owner, linalg.ops.IndexOp):
        return Along.NEXT if loop_of(index) == lanes else Along.SAME
    return Along.ANY if lanes in loops_behind(view, index) else Along.SAME


def moved(coordinate: Coordinate, loops: Mapping[int | None, Along]) -> Along:
    """What becomes of a coordinate over loops of which `loops` says it."""
    if isinstance(coordinate, AffineConstantExpr):
        return Along.SAME
    if isinstance(coordinate, AffineDimExpr):
        return loops.get(coordinate.position, Along.SAME)
    if not isinstance(coordinate, AffineBinaryOpExpr):
        return Along.ANY
    sides = moved(coordinate.lhs, loops), moved(coordinate.rhs, loops)
    if sides == (Along.SAME, Along.SAME):
        return Along.SAME
    steps = coordinate.kind is AffineBinaryOpKind.Add and Along.SAME in sides and Along.ANY not in sides
    return Along.NEXT if steps else Along.ANY


def loads_behind(
    value: SSAValue, place: Place, makers: Collection[Operation], shapes: ShapeAnalysis
) -> Iterator[tuple[SSAValue, Place]]:
    """What `makers`, generics without reductions, load to make `value` at `place`, each with where it lies."""
    if not isinstance(value, OpResult) or value.op not in makers or not is_generic(value.op):
        yield value, place
        return
    view = StructuredOp(value.op)
    written = view.output_maps[value.index].results
    loops: dict[int | None, Along] = {
        expr.position: at for expr, at in zip(written, place, strict=True) if isinstance(expr, AffineDimExpr)
    }
    for source, at in _read_at(view, loops, shapes):
        yield from loads_behind(source, at, makers, shapes)


def _read_at(
    view: StructuredOp, loops: Mapping[int | None, Along], shapes: ShapeAnalysis
) -> Iterator[tuple[SSAValue, Place]]:
    """What an op reads, and where, if `loops` become so: what its body picks too, by what places vary with."""
    picked = [one for one in body_ops(view.op) if isinstance(one, tensor.ExtractOp)]
    for source, at in operand_reads(view.op, shapes):
        extracts = [one for one in picked if one.tensor is source]
        if extracts:
            yield from ((source, tuple(_picked(view, index, loops) for index in one.indices)) for one in extracts)
        elif splat_value(source) is None:
            yield source, tuple(moved(c, loops) for c in at or (None,) * len(shapes.dims(source)))


def _picked(view: StructuredOp, index: SSAValue, loops: Mapping[int | None, Along]) -> Along:
    """What becomes of an index of a body."""
    if (loop := loop_of(index)) is not None:
        return loops.get(loop, Along.SAME)
    still = all(loops.get(loop, Along.SAME) is Along.SAME for loop in loops_behind(view, index))
    return Along.SAME if still else Along.ANY
