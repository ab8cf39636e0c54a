"""Short innermost axes: made with lanes along the axis before, interleaved in registers and written as they lie.

    made    w ->                 written   w, c ->
    c   0 1 2 3 . .                  0 0' 0" 1 1' ..
        0'1'2'3'. .

A channels-last image of three channels from one with its channels first: lanes across (w, c) would gather every
element. Per vector written there are `channels - 1` shuffles.
"""

from __future__ import annotations

from collections.abc import Sequence

from xdsl.ir import SSAValue

from fuseline.targets.cpu.combinators.lanes import LaneLoop
from fuseline.targets.cpu.emit.coordinates import Index
from fuseline.targets.cpu.families.nests.stages import Stage
from fuseline.targets.cpu.families.nests.workgroup import Coordinates, Workgroup
from fuseline.targets.cpu.kernel_ir.builder import KernelBuilder
from fuseline.targets.cpu.kernel_ir.types import Operand, Value


class InterleavedStores:
    """Emits the stages of a group (elements only) over the workgroup's part of the lane axis."""

    def __init__(self, workgroup: Workgroup, stages: Sequence[Stage], lane_loop: LaneLoop) -> None:
        self.workgroup, self.kernel, self.lane_loop = workgroup, workgroup.kernel, lane_loop
        self.channels = workgroup.schedule.interleaved
        self.values: list[SSAValue] = [value for stage in stages for value in stage.values]
        self.destinations = {value: where for stage in stages for value, where in stage.destinations.items()}

    def emit(self, at: Coordinates, lo: Operand, hi: Operand) -> None:
        """Pixels `lo` to `hi`."""
        self.lane_loop.run(lo, hi, lambda starts, lanes, active, _: self._pixels(at, starts[0], lanes, active))

    def _pixels(self, at: Coordinates, start: Operand, lanes: int, active: Operand | None) -> Sequence[Value]:
        kernel, workgroup = self.kernel, self.workgroup
        for value in self.values:
            made = [
                workgroup.e.value_at(
                    value, workgroup.index_of(value, {**at, **self._channel(start, lanes, c)}), lanes, active
                )
                for c in range(self.channels)
            ]
            rows = interleave(kernel, made)
            if active is None or lanes == 1:
                for j, vector in enumerate(rows):
                    self._write(value, at, (start, j, lanes), vector, None)
            else:
                self._write_rest(value, at, start, rows, kernel.mul(active, self.channels))
        return ()

    def _write_rest(
        self, value: SSAValue, at: Coordinates, start: Operand, rows: Sequence[Value], count: Operand
    ) -> None:
        """The first `count` elements of `rows`."""
        kernel, lanes = self.kernel, self.lane_loop.lanes
        for j, vector in enumerate(rows):
            left = kernel.sub(count, j * lanes)
            kernel.when(
                kernel.compare("gt", left, 0),
                lambda j=j, vector=vector, left=left: self._write(
                    value, at, (start, j, lanes), vector, kernel.min(left, lanes)
                ),
            )

    def _write(
        self, value: SSAValue, at: Coordinates, where: tuple[Operand, int, int], vector: Value, live: Operand | None
    ) -> None:
        """`where`: the first pixel, the number of the vector from there on, its lanes."""
        workgroup, (start, j, lanes) = self.workgroup, where
        place = Index(self.kernel.add(self.kernel.mul(start, self.channels), j * lanes), 1 if lanes > 1 else 0)
        point = {**at, **workgroup.lane_coordinates(workgroup.schedule.vector_loops[-1], place)}
        workgroup.keep(value, workgroup.index_of(value, point), vector, live, self.destinations.get(value, []))

    def _channel(self, start: Operand, lanes: int, channel: int) -> Coordinates:
        """Pixels from `start` on, one channel of each."""
        run = self.workgroup.schedule.vector_loops
        sizes = tuple(self.workgroup.axes.extents[axis] for axis in run[:-1])
        pixels = self.workgroup.e.buffers.delinearize(Index(start, 1 if lanes > 1 else 0), sizes)
        return {**dict(zip(run[:-1], pixels, strict=True)), run[-1]: Index(channel)}


def interleave(kernel: KernelBuilder, rows: Sequence[Value]) -> list[Value]:
    """Lane 0 of every row, then lane 1 of every row, and so on, in as many vectors as there are rows."""
    count, lanes = len(rows), rows[0].type.lanes
    if lanes == 1:
        return list(rows)
    out: list[Value] = []
    for j in range(count):
        places = [divmod(j * lanes + lane, count) for lane in range(lanes)]
        vector = kernel.shuffle(
            rows[0], rows[1], [lane if row == 0 else lanes + lane if row == 1 else 0 for lane, row in places]
        )
        for number in range(2, count):
            vector = kernel.shuffle(
                vector, rows[number], [lanes + lane if row == number else i for i, (lane, row) in enumerate(places)]
            )
        out.append(vector)
    return out
