"""Ops written again for bands of rows: the loop along the rows becomes a loop over bands and one inside a band.

    y = relu(x)  over 60 rows       =>      y'[b, r] = relu(x'[b, r])        over 6 bands of 10 rows

Bands of what is read through a window overlap; no two of what a region returns do. Where their number divides no rows,
some are one row higher than the others (`cut_rows`), and both kinds are written.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import accumulate, pairwise
from typing import Any

from xdsl.dialects import arith, linalg, tensor
from xdsl.dialects.builtin import IndexType
from xdsl.ir import Block, Operation, OpResult, Region, SSAValue
from xdsl.ir.affine import AffineExpr, AffineMap

from fuseline.analysis.indexing_maps import dims_of, loops_of
from fuseline.analysis.moves import groups_of as reshape_groups
from fuseline.analysis.structured import StructuredOp, captured, splat_value
from fuseline.ir.build import Body, Emitter, element_of, shape_of, tensor_type
from fuseline.ir.fast import attributes
from fuseline.ir.fast.create import create_generic, create_pad
from fuseline.passes.dispatch.region_rows import RegionRows, RowRead, behind_reads, pad_number

PARALLEL = "parallel"


@dataclass(frozen=True, slots=True)
class Bands:
    """`count` bands of `rows` rows each; band `b` begins `before` rows above row `b * step` (below it, where that is
    less than 0), so that rows outside of the tensor may be among them."""

    count: int
    rows: int
    step: int
    before: int = 0

    def read_by(self, read: RowRead) -> Bands:
        """The bands of an operand that these need."""
        rows = read.stride * (self.rows - 1) + read.reach + 1
        return Bands(self.count, rows, read.stride * self.step, read.stride * self.before)

    @property
    def shared(self) -> int:
        """Rows that a band has in common with the next one."""
        return max(0, self.rows - self.step) if self.count > 1 else 0

    @property
    def end(self) -> int:
        """The row behind the last one of the last band."""
        return (self.count - 1) * self.step - self.before + self.rows


def cut_rows(rows: int, count: int) -> tuple[Bands, ...]:
    """`rows` in `count` bands, one behind the other: of one height, or first those of one height, then those that have
    a row more.

    >>> [(bands.count, bands.rows, -bands.before) for bands in cut_rows(257, 16)]
    [(15, 16, 0), (1, 17, 240)]
    """
    low, more = divmod(rows, count)
    first = (count - more) * low
    found = Bands(count - more, low, low), Bands(more, low + 1, low + 1, -first)
    return tuple(bands for bands in found if bands.count)


@dataclass(frozen=True, slots=True)
class WrittenMember:
    """An op that was written for `of`: its loop over bands, `row` of `rank` (None: it is read in place). `suffix`: what
    is put behind the name of `of` where something else has that."""

    of: Operation
    row: int | None = None
    rank: int = 0
    suffix: str = ""


class BandWriter:
    """Writes ops for bands of rows at the end of `block`: `written` has what stands for each value, `members` are the
    ops that do something, in order; their names end in `suffix`."""

    def __init__(self, block: Block, suffix: str = "") -> None:
        self.block, self.suffix = block, suffix
        self.written: dict[SSAValue, SSAValue] = {}
        self.members: list[WrittenMember] = []

    def member(self, op: linalg.ops.GenericOp) -> Operation:
        """The op that stands for `op`."""
        made = self.written[op.results[0]]
        assert isinstance(made, OpResult)
        return made.op

    def computed(self, rows: RegionRows, bands: Bands) -> None:
        """All that a region computes, by bands."""
        for op, row in rows.loops.items():
            self._generic(op, row, rows, bands)

    def _generic(self, op: linalg.ops.GenericOp, row: int, rows: RegionRows, bands: Bands) -> None:
        view, emit = StructuredOp(op), self._emitter(op)
        inputs = [
            self._fixed(value, op, emit) if read is None else self._moving(read, bands, op)
            for value, read in zip(view.inputs, rows.reads[op], strict=True)
        ]
        starts = zip(view.outputs, op.results, strict=True)
        outputs = [self._start(value, rows.axes[made], bands, emit) for value, made in starts]
        maps = [cut_map(map_, row) for map_ in view.maps]
        iterators = [*view.iterators[:row], PARALLEL, *view.iterators[row:]]
        new = create_generic(inputs, outputs, self._body(op, emit), maps, iterators)
        new.attributes.update(op.attributes)
        emit.add(new)
        self._wrote(op, row, len(iterators))
        self.written.update(zip(op.results, new.results, strict=True))

    def _body(self, op: linalg.ops.GenericOp, emit: Emitter) -> Region:
        scalars = {value: self._fixed(value, op, emit) for value in captured(op)}
        region = Region()
        op.body.clone_into(region, value_mapper=scalars)
        return region

    # operands ---------------------------------------------------------------------------------------------------------

    def _fixed(self, value: SSAValue, op: Operation, emit: Emitter) -> SSAValue:
        """What `op` reads that does not move along the rows: from outside, or a number."""
        number = splat_value(value)
        if number is None:
            return self._read_through(*behind_reads(op, value))
        if value not in self.written:
            self.written[value] = self._number(number, value, emit)
        return self.written[value]

    def _number(self, number: float | int, value: SSAValue, emit: Emitter) -> SSAValue:
        element = element_of(value)
        if value.type == element:
            return emit.scalar(number, element)
        return emit.fill(number, emit.empty(element, shape_of(value)))

    def _start(self, value: SSAValue, axis: int, bands: Bands, emit: Emitter) -> SSAValue:
        """A new tensor for results that start from `value`."""
        number = splat_value(value)
        empty = emit.empty(element_of(value), cut_shape(shape_of(value), axis, bands))
        return empty if number is None else emit.fill(number, empty)

    def _moving(self, read: RowRead, bands: Bands, op: Operation) -> SSAValue:
        """The bands of what `op` reads: cut from what is stored, or as they were written, padded along the rest."""
        made = self.written.get(read.value)
        if made is None:
            return self._cut(self._read_through(read.value, read.through), read, bands.read_by(read), op)
        value = self._read_through(made, read.through, read.first_axis)
        return value if read.pad is None else self._padded(value, read, (0, 0), (0, 0), op)

    def _read_through(
        self, value: SSAValue, through: Sequence[linalg.ops.GenericOp], axis: int | None = None
    ) -> SSAValue:
        """What ops that are read in place make of `value`: of all of it, or of bands whose rows lie along `axis`."""
        for op in through:
            made, (read, kept) = op.results[0], (loops_of(map_.results) for map_ in StructuredOp(op).maps)
            row = read[axis] if axis is not None else None
            if made not in self.written:
                self.written[made] = self._made_of(value, op, row)
            value, axis = self.written[made], kept.index(row) if row is not None else None
        return value

    def _made_of(self, value: SSAValue, op: linalg.ops.GenericOp, row: int | None) -> SSAValue:
        """What `op` makes of `value`, which may be bands along its loop `row`."""
        emit, view = self._emitter(op), StructuredOp(op)
        maps = view.maps if row is None else [cut_map(map_, row) for map_ in view.maps]
        read, kept = (loops_of(map_.results) for map_ in maps)
        extents = dict(zip(read, shape_of(value), strict=True))
        empty = emit.empty(element_of(op.results[0]), [extents[loop] for loop in kept])
        self._wrote(op)
        made = create_generic([value], [empty], self._body(op, emit), maps, [PARALLEL] * len(read))
        return emit.add(made).results[0]

    def _cut(self, value: SSAValue, read: RowRead, bands: Bands, op: Operation) -> SSAValue:
        """Bands of a tensor that is stored as a whole; rows that it has not hold any number."""
        axis, size = read.axis, shape_of(value)[read.axis]
        above = bands.before + (attributes.values(read.pad.static_low)[axis] if read.pad is not None else 0)
        below = max(0, bands.end + bands.before - above - size)
        value = self._padded(value, read, (max(0, above),), (below,), op)
        emit, element, shape = self._emitter(op), element_of(value), cut_shape(shape_of(value), axis, bands)
        if above >= 0 and bands.rows == bands.step and shape_of(value)[axis] == bands.count * bands.rows:
            groups = groups_of(len(shape) - 1, axis)
            return emit.add(tensor.ExpandShapeOp(value, [], groups, shape, tensor_type(element, shape))).result
        self._wrote(read.pad or op, suffix="-bands")
        map_ = overlapping_map(len(shape), axis, bands.step, max(0, -above))
        return emit.elementwise([value], emit.empty(element, shape), lambda b: b.args[0], [map_])

    def _padded(
        self, value: SSAValue, read: RowRead, above: Sequence[int], below: Sequence[int], op: Operation
    ) -> SSAValue:
        """`value` with the border of a read, but for the dimensions along the rows: those get `above` and `below`."""
        rank, axis, pad = len(shape_of(value)) - len(above) + 1, read.axis, read.pad
        low = list(attributes.values(pad.static_low)) if pad is not None else [0] * rank
        high = list(attributes.values(pad.static_high)) if pad is not None else [0] * rank
        low[axis : axis + 1], high[axis : axis + 1] = above, below
        if not any((*low, *high)):
            return value
        number, emit = pad_number(pad) if pad is not None else 0, self._emitter(pad or op)
        assert number is not None
        shape = [size + a + b for size, a, b in zip(shape_of(value), low, high, strict=True)]
        self._wrote(pad or op, suffix="" if pad is not None else "-border")
        scalar = emit.scalar(number, element_of(value))
        return emit.add(create_pad(value, low, high, scalar, tensor_type(element_of(value), shape))).result

    # results ----------------------------------------------------------------------------------------------------------

    def edged(self, value: OpResult, axis: int, size: int, bands: Bands, number: float | int) -> None:
        """Put `number` in place of the rows of `value` that the whole tensor, of `size` rows, has not."""
        if bands.before <= 0 and bands.end <= size:
            return
        emit, banded = self._emitter(value.op), self.written[value]

        def body(b: Body) -> SSAValue:
            row = b.op(arith.MuliOp, _index(b, axis), b.constant(bands.step, IndexType()))
            row = b.op(arith.AddiOp, row, _index(b, axis + 1))
            first, end = (b.constant(n, IndexType()) for n in (max(0, bands.before), bands.before + size))
            inside = b.op(arith.AndIOp, b.op(arith.CmpiOp, row, first, "sge"), b.op(arith.CmpiOp, row, end, "slt"))
            return b.op(arith.SelectOp, inside, b.args[0], b.constant(number, element_of(value)))

        shape = shape_of(banded)
        self._wrote(value.op, axis, len(shape), "-edge")
        self.written[value] = emit.elementwise([banded], emit.empty(element_of(value), shape), body)

    def opened(self, op: tensor.ExpandShapeOp, axis: int) -> None:
        """The bands of a reshape that leaves the rows, `axis` of what it reads, as they are."""
        banded, whole = self.written[op.src], shape_of(op.result)
        bands = shape_of(banded)[axis : axis + 2]
        sizes = [[whole[i] for i in group] for group in reshape_groups(op)]
        sizes[axis : axis + 1] = [[size] for size in bands]
        ends = list(accumulate(map(len, sizes), initial=0))
        groups = attributes.reassociation([range(*ends_) for ends_ in pairwise(ends)])
        shape = [size for group in sizes for size in group]
        emit = self._emitter(op)
        made = tensor.ExpandShapeOp(banded, [], groups, shape, tensor_type(element_of(banded), shape))
        self.written[op.result] = emit.add(made).result

    def whole(self, value: SSAValue, axis: int) -> SSAValue:
        """What was written for `value`, with bands one behind the other."""
        assert isinstance(value, OpResult)
        banded = self.written[value]
        shape = shape_of(banded)
        type_ = tensor_type(element_of(value), [*shape[:axis], shape[axis] * shape[axis + 1], *shape[axis + 2 :]])
        groups = groups_of(len(shape) - 1, axis)
        op = tensor.CollapseShapeOp.build(operands=[banded], result_types=[type_], properties={"reassociation": groups})
        return self._emitter(value.op).add(op).result

    def _wrote(self, of: Operation, row: int | None = None, rank: int = 0, suffix: str = "") -> None:
        self.members.append(WrittenMember(of, row, rank, suffix + self.suffix))

    def _emitter(self, op: Operation) -> Emitter:
        emitter = Emitter.at_end(self.block)
        emitter.location = op.location
        return emitter


def _index(b: Body, loop: int) -> SSAValue:
    return b.add(linalg.ops.IndexOp(loop)).result


def cut_map(map_: AffineMap, row: int) -> AffineMap:
    """`map_` where loop `row` is two: one over bands, and behind it one inside a band. A coordinate that moves along
    the rows is two as well.

    >>> print(cut_map(AffineMap.from_callable(lambda y, x, k: (y + k, x)), 0))
    (d0, d1, d2, d3) -> (d0, (d1 + d3), d2)
    """
    rank = map_.num_dims + 1
    names: list[AffineExpr] = [AffineExpr.dimension(i + (i >= row)) for i in range(rank - 1)]
    found: list[AffineExpr] = []
    for expr in map_.results:
        if row in dims_of(expr):
            found.append(AffineExpr.dimension(row))
        found.append(expr.replace_dims_and_symbols(names, []))
    return AffineMap(rank, 0, tuple(found))


def cut_shape(shape: Sequence[int], axis: int, bands: Bands) -> list[int]:
    """The sizes of a tensor by bands of rows, which lie along `axis`."""
    return [*shape[:axis], bands.count, bands.rows, *shape[axis + 1 :]]


def overlapping_map(rank: int, axis: int, step: int, first: int = 0) -> AffineMap:
    """Where row `r` of band `b` lies in the whole: row `step * b + r + first` along `axis`, the other dimensions in
    order."""
    at = AffineExpr.dimension(axis) * step + AffineExpr.dimension(axis + 1)
    at = at + first if first else at
    rest = [AffineExpr.dimension(i) for i in range(rank)]
    return AffineMap(rank, 0, (*rest[:axis], at, *rest[axis + 2 :]))


def groups_of(rank: int, axis: int) -> Any:
    """The reassociation of a tensor of `rank` with one that has two dimensions for `axis`."""
    return attributes.reassociation(
        tuple((i,) if i < axis else (i, i + 1) if i == axis else (i + 1,) for i in range(rank))
    )
