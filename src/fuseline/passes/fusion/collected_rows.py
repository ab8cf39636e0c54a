"""Rows of a computed table that are made whole, of which a reader picks elements then.

    %t[i, c] = %a[i, c] + %b[i, c]               for k:  row[c] = %a[%p[k], c] + %b[%p[k], c]       in vectors
    %y[k, j] = extract %t[%p[k], %q[j]]    =>            for j:  %y[k, j] = row[%q[j]]              gathered once

Evaluated where they are picked, each of several operands is gathered. A row is made in vectors and lies in the first
level of the cache: only it is gathered, which takes as long as a table in memory does at the most. Measured with
AVX-512, time of one dispatch to that of two, one thread and two: 32,768 rows of 640 out of `[2, 640, 64, 64]`, sums of
f16, 1.0 (each element by itself 1.6); 4,096 rows of 256, sums of f32 .9 (1.5), of f16 .82 (1.5); tanh of f32 1.03
(1.5), of f16 .92; rows of 64 of which 256 elements are picked .9 (1.9), of tanh 1.1 (1.8).
"""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass

from xdsl.dialects import linalg, tensor
from xdsl.ir import Operation, SSAValue

from fuseline.analysis.indexing_maps import loops_of
from fuseline.analysis.made_ahead import MOST_BYTES
from fuseline.analysis.operations import body_operations
from fuseline.analysis.picked_rows import enough_rows
from fuseline.analysis.shapes import ShapeAnalysis
from fuseline.analysis.structured import StructuredOp, body_ops, is_generic
from fuseline.analysis.walks import scalars_behind
from fuseline.ir.costs import MachineCosts, assumed_size
from fuseline.ir.dim import Dim, upper_bound
from fuseline.ir.element_types import element_bits
from fuseline.passes.fusion.conversions import WIDENINGS
from fuseline.passes.fusion.lane_places import Along, Place, is_spread, loads_behind, place_of

WIDEST = 8
"""Bytes of an element in scratch, at the most."""

F32_BITS = 32

MOST_MADE = 1.0
"""Elements of rows that are made for each that is picked, at the most: with 4 and 10 times as many, one dispatch takes
1.1 to 1.5 of the time of two (16,384 rows of 256 and 640, 64 of each picked)."""

WIDEST_GATHERED = 12
"""Bytes of an element that would take as long to gather as halves do, which no instruction gathers: f32 a third of
that (measured .3 to .37 ns per element, f16 .7, in vectors of 64 bytes)."""


@dataclass(frozen=True)
class CollectedRow:
    """`extract`, in the body of `op`, picks elements of its tensor along dimension `axis`, at places that vary with the
    loop `lanes` alone; those along the others vary with other loops."""

    op: linalg.ops.GenericOp
    extract: tensor.ExtractOp
    axis: int
    lanes: int

    def rows(self, shapes: ShapeAnalysis) -> list[Dim]:
        """The extents of the loops that each have their row."""
        return [size for loop, size in enumerate(StructuredOp(self.op).loops(shapes)) if loop != self.lanes]

    def length(self, shapes: ShapeAnalysis) -> int:
        """Elements of a row."""
        size = upper_bound(shapes.dims(self.extract.tensor)[self.axis])
        assert size is not None
        return size

    def place(self, shapes: ShapeAnalysis) -> Place:
        """Where a vector of a row lies in the table."""
        rank = len(shapes.dims(self.extract.tensor))
        return tuple(Along.NEXT if axis == self.axis else Along.SAME for axis in range(rank))

    def made_per_pick(self, shapes: ShapeAnalysis) -> float:
        """Elements of rows that are made for each that is picked."""
        extent = StructuredOp(self.op).loops(shapes)[self.lanes]
        return self.length(shapes) / max(1, assumed_size(extent))


def collected_row(
    op: linalg.ops.GenericOp, table: SSAValue, makers: Collection[Operation], shapes: ShapeAnalysis, threads: int
) -> CollectedRow | None:
    """The rows of `table`, which `makers` compute, that `op` may pick its elements of. None where it picks several, or
    in another way; where a row is longer than the first-level cache keeps beside what is read, or of any length; where
    there are too few rows for the threads, or most of them would be made for nothing; and where what it is made of does
    not lie along memory."""
    view, extracts = StructuredOp(op), [one for one in body_ops(op) if _picks(one, table)]
    lanes = _lanes(view, shapes)
    if view.reduction or lanes is None or len(extracts) != 1 or extracts[0].parent is not view.body:
        return None
    (extract,) = extracts
    assert isinstance(extract, tensor.ExtractOp)
    place = place_of(view, list(extract.indices), lanes)
    if place.count(Along.ANY) != 1 or Along.NEXT in place:
        return None
    found = CollectedRow(op, extract, place.index(Along.ANY), lanes)
    if not _fits(shapes, table, found.axis) or not enough_rows(found.rows(shapes), threads):
        return None
    spread = any(is_spread(at) for _, at in loads_behind(table, found.place(shapes), makers, shapes))
    return found if not spread and found.made_per_pick(shapes) <= MOST_MADE else None


def _picks(op: Operation, table: SSAValue) -> bool:
    return isinstance(op, tensor.ExtractOp) and op.tensor is table


def _lanes(view: StructuredOp, shapes: ShapeAnalysis) -> int | None:
    """The loop that the only result lies innermost along, if its sizes are those of the loops and nothing was written
    to it before."""
    if len(view.output_maps) != 1 or not isinstance(view.outputs[0].owner, tensor.EmptyOp):
        return None
    written = loops_of(view.output_maps[0].results)
    return written[-1] if None not in written and len(written) == view.rank > 1 else None


def _fits(shapes: ShapeAnalysis, table: SSAValue, axis: int) -> bool:
    size = shapes.dims(table)[axis]
    return isinstance(size, int) and size * WIDEST <= MOST_BYTES


def is_worth_it(row: CollectedRow, makers: Collection[Operation], shapes: ShapeAnalysis, costs: MachineCosts) -> bool:
    """Whether making rows takes less than evaluating each element where it is picked."""
    view, table = StructuredOp(row.op), row.extract.tensor
    place = place_of(view, list(row.extract.indices), row.lanes)
    spread = {one for one in loads_behind(table, place, makers, shapes) if is_spread(one[1])}
    in_place = sum(gathered_ns(value, costs) for value, _ in spread) + _arithmetic(makers) * costs.operation_ns
    return row_ns(row, makers, shapes, costs) + gathered_ns(table, costs) < in_place


def row_ns(row: CollectedRow, makers: Collection[Operation], shapes: ShapeAnalysis, costs: MachineCosts) -> float:
    """What making rows takes for each element that is picked: its operations, of which vectors of wide elements do
    fewer at a time, its loads and its store (measured .12 ns for a sum of two f16, .17 of two f32)."""
    width = max(element_bits(row.extract.tensor) / F32_BITS, 1.0)
    each = _arithmetic(makers) * width * costs.operation_ns + moving_ns(row, makers, shapes, costs)
    return row.made_per_pick(shapes) * each


def moving_ns(row: CollectedRow, makers: Collection[Operation], shapes: ShapeAnalysis, costs: MachineCosts) -> float:
    """To load what one element of a row is made of, and to store it in the first level of the cache, which takes half
    of a load from further away."""
    table = row.extract.tensor
    at = loads_behind(table, row.place(shapes), makers, shapes)
    loads = {value for value, place in at if Along.NEXT in place}
    bits = sum(map(element_bits, loads)) + element_bits(table) / 2
    return bits / 8 / costs.streamed_bytes_per_ns


def _arithmetic(makers: Collection[Operation]) -> int:
    return sum(map(arithmetic, makers))


def arithmetic(op: Operation) -> int:
    """Operations of one evaluation, beside what loads do on the way and what finds their places."""
    if not is_generic(op):
        return 0
    places = _places_in(op)
    beside = sum(type(one) in WIDENINGS or not places.isdisjoint(one.results) for one in body_ops(op))
    return max(0, body_operations(op) - 1 - beside)


def _places_in(op: linalg.ops.GenericOp) -> set[SSAValue]:
    """The elements that the body of an op picks, and all scalars that their places are made of."""
    extracts = [one for one in body_ops(op) if isinstance(one, tensor.ExtractOp)]
    behind = [scalars_behind(StructuredOp(op), index) for one in extracts for index in one.indices]
    return set[SSAValue]().union(*behind, (one.result for one in extracts))


def gathered_ns(value: SSAValue, costs: MachineCosts) -> float:
    """To load an element of a tensor for each lane from a place of its own."""
    width = element_bits(value) // 8
    return costs.gathering_ns * (width / WIDEST_GATHERED if width >= 4 else 1.0)
