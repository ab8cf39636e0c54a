"""What it takes to evaluate a producer where a body picks its elements, rather than to store it and to pick those.

    %t[i, c] = %a[i, c] + %b[c, i]                     by itself: one table, in whose rows vectors lie
    %y[k, c] = extract %t[%place[k], c]      =>        %a in rows, %b element by element; each as often as picked

Beyond the arithmetic, each operand that vectors find spread out in memory is gathered, in place of the one table.
Measured with AVX-512, a sum of two tables of `[2, 32, 32, 64]`, each element picked 4 times, time of the one dispatch
to that of two, 1 and 2 threads (quiet): places of its own for each element of f32 1.14 and 1.29, of f16 1.91 and 1.96;
rows of f32 taken whole .88 to 1.04, of f16 that is stored as f32 .72 to 1.1, of f16 .88 to 1.13. A quarter of the
elements picked, each by itself: f32 .28 and .37, f16 .71 and .67.
"""

from __future__ import annotations

from collections.abc import Iterator
from enum import Enum

from xdsl.dialects import linalg, tensor
from xdsl.ir import SSAValue
from xdsl.ir.affine import AffineBinaryOpExpr, AffineBinaryOpKind, AffineConstantExpr, AffineDimExpr

from fuseline.analysis.moves import Coordinate
from fuseline.analysis.structured import StructuredOp, body_ops, is_generic
from fuseline.analysis.walks import loop_of, loops_behind
from fuseline.ir.costs import assumed_size
from fuseline.ir.dim import product
from fuseline.ir.element_types import element_bits
from fuseline.passes.fusion.conversions import WIDENINGS
from fuseline.passes.fusion.node import Node, Read
from fuseline.passes.fusion.rule import Merge

WIDEST_GATHERED = 12
"""Bytes of an element that would take as long to gather as halves do, which no instruction gathers: f32 a third of
that (measured .3 to .37 ns per element, f16 .7, in vectors of 64 bytes)."""


class Along(Enum):
    """What becomes of a coordinate from lane to lane of a vector."""

    SAME = "same"
    NEXT = "next"
    ANY = "any"


Place = tuple[Along, ...]
"""Of an element, per dimension of its tensor."""


def is_gathered(read: Read) -> bool:
    """Whether a body extracts what it reads at indices of its own."""
    return read.value in read.consumer.captured


def picked(read: Read) -> float:
    """How many elements a body extracts for each that there is, at the sizes that are assumed: a few rows of a table
    are less than all of it. 0 where there is none."""
    made = assumed_size(product(read.producer.loops)) if read.producer is not None else 1
    return read.consumer.picks * _points(read.consumer) / max(1, made)


def evaluated_by_element_ns(merge: Merge) -> float:
    """How much longer the producer takes where its elements are picked, all reads gathered, than by itself,
    nanoseconds of one thread. What is widened is part of the loads; what is rounded is an operation."""
    read_by = {read.consumer: read for read in merge.reads}
    often = sum(picked(read) for read in read_by.values())
    work = sum(_points(node) * _arithmetic(node) for node in merge.producer.members)
    gathering = sum(_gathering_ns(read, merge) for read in read_by.values())
    return (often - 1.0) * work * merge.target.costs.operation_ns + gathering


def _points(node: Node) -> int:
    return assumed_size(product(node.loops))


def _arithmetic(node: Node) -> int:
    """Operations of one evaluation, beside what loads do on the way."""
    widening = sum(type(op) in WIDENINGS for op in body_ops(node.op)) if is_generic(node.op) else 0
    return max(0, node.operations - 1 - widening)


def _gathering_ns(read: Read, merge: Merge) -> float:
    """To gather what the table is made of rather than the table."""
    total = 0.0
    for place in _places(read):
        spread = {(value, at) for value, at in _behind(read.value, place, merge) if _is_spread(at)}
        total += sum(_element_ns(value, merge) for value, _ in spread)
        total -= _element_ns(read.value, merge) if _is_spread(place) else 0.0
    return total * _points(read.consumer)


def _element_ns(value: SSAValue, merge: Merge) -> float:
    width = element_bits(value) // 8
    return merge.target.costs.gathering_ns * (width / WIDEST_GATHERED if width >= 4 else 1.0)


def _is_spread(place: Place) -> bool:
    """Whether the elements of a vector do not lie side by side, nor are one and the same."""
    return Along.ANY in place or Along.NEXT in place[:-1]


def _places(read: Read) -> Iterator[Place]:
    """Where a body extracts elements of what it reads, from lane to lane along the innermost loop of its result."""
    node = read.consumer
    view, lanes = node.structured, node.innermost
    if view is None or lanes is None:
        return
    for op in body_ops(view.op):
        if isinstance(op, tensor.ExtractOp) and op.tensor is read.value:
            yield tuple(_along(view, index, lanes) for index in op.indices)


def _along(view: StructuredOp, index: SSAValue, lanes: int) -> Along:
    """What becomes of an index of a body along the loop `lanes`."""
    if isinstance(index.owner, linalg.ops.IndexOp):
        return Along.NEXT if loop_of(index) == lanes else Along.SAME
    return Along.ANY if lanes in loops_behind(view, index) else Along.SAME


def _behind(value: SSAValue, place: Place, merge: Merge) -> Iterator[tuple[SSAValue, Place]]:
    """What the producer loads to make `value` at `place`, each with where it lies."""
    maker = next((node for node in merge.producer.members if value in node.op.results), None)
    if maker is None:
        yield value, place
        return
    loops = dict(zip(maker.written[maker.result_index(value)], place, strict=True))
    for read in maker.reads:
        if not read.filled:
            yield from _behind(read.value, tuple(_moved(at, loops) for at in read.coordinates), merge)


def _moved(coordinate: Coordinate, loops: dict[int | None, Along]) -> Along:
    """What becomes of a coordinate over loops of which `loops` says it."""
    if isinstance(coordinate, AffineConstantExpr):
        return Along.SAME
    if isinstance(coordinate, AffineDimExpr):
        return loops.get(coordinate.position, Along.SAME)
    if not isinstance(coordinate, AffineBinaryOpExpr):
        return Along.ANY
    sides = _moved(coordinate.lhs, loops), _moved(coordinate.rhs, loops)
    if sides == (Along.SAME, Along.SAME):
        return Along.SAME
    moved = coordinate.kind is AffineBinaryOpKind.Add and Along.SAME in sides and Along.ANY not in sides
    return Along.NEXT if moved else Along.ANY
