"""Results of a root that lie across its lanes: transposed in registers on their way out.

    a tile    columns (lanes) ->        in memory    rows ->
     rows     a b c d                                a e i
     |        e f g h                                b f j
              i j k l                                c g k
                                                     d h l

Stored vector by vector, each lane would go to a line of memory of its own. The rows of a tile lie side by side there:
squares of them leave as vectors of rows, one for each column.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial

from fuseline.targets.cpu.emit.coordinates import AnyIndex
from fuseline.targets.cpu.emit.squares import transpose
from fuseline.targets.cpu.families.contraction.results import RootPath
from fuseline.targets.cpu.families.root.tile_stores import TileStores
from fuseline.targets.cpu.kernel_ir.types import Operand, Value


def lies_along(path: RootPath, loops: Sequence[int]) -> bool:
    """Whether steps of `loops` of the root, the last one the fastest, are neighbours in memory: where what lies there
    is a box of a tensor, it has whole rows of that."""
    moving = [axis for axis, size in enumerate(path.box.dims[: len(path.coordinates)]) if size != 1]
    ours, found = moving[-len(loops) :], list(loops)
    in_step = bool(found) and [path.coordinates[axis] for axis in ours] == found
    return in_step and all(path.box.covers(axis) for axis in ours[1:])


class TurnedStores(TileStores):
    """Stores the values of a tile at a path that lies along its rows."""

    def store(
        self, rows: Sequence[Value], starts: Sequence[Sequence[AnyIndex]], active: Operand | None, exist: Operand
    ) -> None:
        """A vector of rows for each column."""
        lanes, kernel = rows[0].type.lanes, self.kernel
        for first in range(0, len(rows), lanes):
            held = rows[first : first + lanes]
            count = kernel.max(kernel.min(kernel.sub(exist, first), len(held)), 0)
            self._squares(held, starts[first], active, count)

    def _squares(
        self, rows: Sequence[Value], start: Sequence[AnyIndex], active: Operand | None, count: Operand
    ) -> None:
        """Up to as many rows as lanes: the last one again up to a power of two."""
        kernel, lanes = self.kernel, rows[0].type.lanes
        side = 1 << (len(rows) - 1).bit_length()
        turned = transpose(kernel, [*rows, *[rows[-1]] * (side - len(rows))])
        for column in range(lanes if not isinstance(active, int) else active):
            vector, place = turned[column % side], column - column % side
            if side == 1:
                vector = kernel.extract(vector, place)
            elif side < lanes:
                vector = kernel.shuffle(vector, None, range(place, place + side))
            write = partial(self._write, vector, count, [self.buffers.at_lane(at, column) for at in start])
            if active is None or isinstance(active, int):
                write()
            else:
                kernel.when(kernel.compare("gt", active, column), write)

    def _write(self, vector: Value, count: Operand, loops: Sequence[AnyIndex]) -> tuple[()]:
        path, buffers = self.path, self.buffers
        place = buffers.placed(path.box, path.index(buffers, loops, 1), 1)
        active = None if count == vector.type.lanes else count
        self.kernel.store(buffers.result(path.position), place.base, vector, active=active)
        return ()
