"""Results of a root in which the rows of a tile are a few elements apart and its lanes lines or pages: stored column by
column.

    a tile    columns (lanes) ->        in memory    rows ->
     rows     a b c d                                a . e . i .
     |        e f g h                                .............
              i j k l                                b . f . j .

Such are the phases of an upsampling whose channels do not lie side by side. Stored row by row each element goes to a
line of its own, which is gone from the first-level cache before the next row comes: lines a power of two apart take
each other's places (2x2 phases, 128 channels of 32x32, one thread: 2.9 of the time).
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial

from fuseline.ir.costs import LINE_BYTES
from fuseline.ir.dim import product
from fuseline.targets.cpu.emit.coordinates import AnyIndex, Index
from fuseline.targets.cpu.emit.dtypes import dtype_of
from fuseline.targets.cpu.families.contraction.results import ResultPath
from fuseline.targets.cpu.families.root.tile_stores import TileStores
from fuseline.targets.cpu.kernel_ir.types import BYTES, Operand, Value


def lies_across(path: ResultPath, loops: Sequence[int], lane: int | None) -> bool:
    """Whether steps of the last of `loops`, along which the rows of a tile follow each other, are less than a line
    apart in a result, and no neighbours; those of `lane`, along which vectors run, further."""
    places = [axis for axis, coordinate in enumerate(path.coordinates) if loops and coordinate == loops[-1]]
    if len(places) != 1 or lane not in path.coordinates[: places[0]]:
        return False
    apart = product(path.box.dims[places[0] + 1 :])
    return isinstance(apart, int) and 1 < apart < LINE_BYTES // BYTES[dtype_of(path.value.type)]


class ColumnStores(TileStores):
    """Stores the values of a tile at a path that lies across its columns."""

    def store(
        self, rows: Sequence[Value], starts: Sequence[Sequence[AnyIndex]], active: Operand | None, exist: Operand
    ) -> None:
        """Column by column; row by row where not all rows of the tile exist."""
        kernel, lanes = self.kernel, rows[0].type.lanes
        live = lanes if active is None else active
        places = [self._place(at, lanes) for at in starts]
        known = [place for place in places if place is not None]
        one_by_one = partial(self._rows, rows, starts, active, exist)
        if isinstance(live, int) and len(known) == len(rows):
            whole = kernel.compare("ge", exist, len(rows))
            kernel.when(whole, partial(self._columns, rows, known, live), one_by_one)
        else:
            one_by_one()

    def _place(self, loops: Sequence[AnyIndex], lanes: int) -> tuple[Operand, Operand] | None:
        """Where the first lane of a vector goes, and how far on the next; None where they do not go in equal steps."""
        kernel, box = self.kernel, self.path.box
        found = [self.buffers.resolve(one, lanes) for one in self.path.index(self.buffers, loops, lanes)]
        if any(one.vector is not None for one in found):
            return None
        step: Operand = 0
        for axis, one in enumerate(found):
            if one.stride:
                step = kernel.add(step, kernel.mul(self.buffers.product(box.dims[axis + 1 :]), one.stride))
        return self.buffers.placed(box, [Index(one.base) for one in found], 1).base, step

    def _columns(self, rows: Sequence[Value], places: Sequence[tuple[Operand, Operand]], live: int) -> tuple[()]:
        kernel, memory = self.kernel, self.buffers.result(self.path.position)
        for column in range(live):
            for row, (first, step) in zip(rows, places, strict=True):
                place = kernel.add(first, kernel.mul(step, column))
                kernel.store(memory, place, kernel.extract(row, column))
        return ()

    def _rows(
        self, rows: Sequence[Value], starts: Sequence[Sequence[AnyIndex]], active: Operand | None, exist: Operand
    ) -> tuple[()]:
        for number, (row, at) in enumerate(zip(rows, starts, strict=True)):
            self.kernel.when(self.kernel.compare("gt", exist, number), partial(self._row, row, at, active))
        return ()

    def _row(self, row: Value, loops: Sequence[AnyIndex], active: Operand | None) -> tuple[()]:
        self.path.store(self.buffers, self.path.index(self.buffers, loops, row.type.lanes), row, active)
        return ()
