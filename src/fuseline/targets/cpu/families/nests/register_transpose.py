"""Tiles whose values are made with lanes along one axis and written with lanes along another: transposed in registers.

    made    c ->                 written    w ->
        w   . . . .                     c   . . . .
        |   . . . .                     |   . . . .

What is read lies along `c` and what is written along `w`. A square of `lanes x lanes` values costs `lanes` evaluations,
`lanes * log2(lanes)` shuffles and `lanes` stores; nothing is gathered or scattered. `c` is the tiled run of the grid,
or an axis inside of a workgroup (`turned_stores.py`).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from xdsl.ir import SSAValue

from fuseline.dispatch.loop_ref import LoopRef
from fuseline.targets.cpu.combinators.lanes import LaneLoop
from fuseline.targets.cpu.emit.coordinates import Index
from fuseline.targets.cpu.families.nests.stages import Stage
from fuseline.targets.cpu.families.nests.tiling import transposed
from fuseline.targets.cpu.families.nests.workgroup import Coordinates, Workgroup
from fuseline.targets.cpu.kernel_ir.types import Operand, Value


class RegisterTranspose:
    """Emits the stages of a group (elements only) over the workgroup's part of the tiled run times the lane axis.

    Args:
        made: in place of the tiled run, the axis that values are made along (coordinates of a place, lanes along it
            where the stride is 1), and the part of it.
    """

    def __init__(
        self,
        workgroup: Workgroup,
        stages: Sequence[Stage],
        lane_loop: LaneLoop,
        made: tuple[Callable[[Operand, int], Coordinates], tuple[Operand, Operand]] | None = None,
    ) -> None:
        self.workgroup, self.kernel, self.lane_loop = workgroup, workgroup.kernel, lane_loop
        self.rows, self.span = made or (workgroup.tile_coordinates, workgroup.tile_span)
        self.values: list[SSAValue] = [value for stage in stages for value in stage.values]
        self.destinations = {value: where for stage in stages for value, where in stage.destinations.items()}

    def emit(self, axis: LoopRef, at: Coordinates, lo: Operand, hi: Operand) -> None:
        """Squares of whole vectors along the tiled run, then one of what remains; each traverses all of `lo` to `hi`
        along `axis`."""
        kernel, lanes = self.kernel, self.lane_loop.lanes
        first, last = self.span
        whole = kernel.add(first, kernel.mul(kernel.div(kernel.sub(last, first), lanes), lanes))
        rest = kernel.sub(last, whole)

        def band(start: Operand, rows: Operand | None) -> None:
            self.lane_loop.run(
                lo, hi, lambda starts, n, active, _: self._square(axis, at, (start, rows), (starts[0], n, active))
            )

        kernel.loop(first, whole, lanes, lambda start: band(start, None))
        if isinstance(rest, int):
            if rest:
                band(whole, rest)
        else:
            kernel.when(kernel.compare("gt", rest, 0), lambda: band(whole, rest))

    def _square(
        self,
        axis: LoopRef,
        at: Coordinates,
        rows: tuple[Operand, Operand | None],
        columns: tuple[Operand, int, Operand | None],
    ) -> Sequence[Value]:
        """`rows`: the first along the tiled run and how many exist (None: a vector of them); `columns` likewise along
        the lane axis."""
        workgroup, (start, live), (column, count, active) = self.workgroup, rows, columns
        lanes = self.lane_loop.lanes
        for value in self.values:
            made: list[Value] = []
            for i in range(count):
                here = self._place(column, i, active)
                point = {**at, **workgroup.lane_coordinates(axis, Index(here)), **self.rows(start, 1)}
                made.append(workgroup.e.value_at(value, workgroup.index_of(value, point), lanes, live))
            if count == 1:
                self._write(
                    value,
                    {**at, **workgroup.lane_coordinates(axis, Index(column)), **self.rows(start, 1)},
                    made[0],
                    live,
                )
                continue
            for row, vector in enumerate(transposed(self.kernel, made)):
                point = {
                    **at,
                    **workgroup.lane_coordinates(axis, Index(column, 1)),
                    **self.rows(self.kernel.add(start, row), 0),
                }
                self._write_row(value, point, vector, active, row, live)
        return ()

    def _place(self, column: Operand, i: int, active: Operand | None) -> Operand:
        """The `i`-th place from `column` on; beyond the last live one that one again."""
        kernel = self.kernel
        return kernel.add(column, i if active is None or i == 0 else kernel.min(i, kernel.sub(active, 1)))

    def _write_row(
        self, value: SSAValue, point: Coordinates, vector: Value, active: Operand | None, row: int, live: Operand | None
    ) -> None:
        if live is None or (isinstance(live, int) and row < live):
            self._write(value, point, vector, active)
        elif not isinstance(live, int):
            self.kernel.when(self.kernel.compare("lt", row, live), lambda: self._write(value, point, vector, active))

    def _write(self, value: SSAValue, point: Coordinates, vector: Value, active: Operand | None) -> None:
        self.workgroup.keep(
            value, self.workgroup.index_of(value, point), vector, active, self.destinations.get(value, [])
        )
