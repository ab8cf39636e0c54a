"""Workgroups that traverse a block of columns down many rows touch a few cache lines of each row: no run that hardware
would recognise. They ask for the lines that come next themselves.

    few rows:     . . . . | . . . .      the block of columns after the next, of this row: the block is near
                  . . . . | . . . .
    many rows:    . . . .                the same columns some rows below
                  . . . .
                  v v v v

Sums alone need no help: the loads of many rows are under way at a time. Where functions are computed between them, or
rows are written, they are not. Measured (times of the same kernel without, one thread and two): softmax and a norm over
8 to 128 rows of 20,000 to 300,000 f32 .61 to .87 with AVX-512, log-sum-exp .79; over 1,000 rows of 5,000 .8, x - sum(x)
.76; sums 1.02 to 1.2, log-sum-exp over 1,000 rows 1.1.
"""

from __future__ import annotations

from collections.abc import Generator, Sequence
from contextlib import contextmanager

from fuseline.dispatch.loop_ref import LoopRef
from fuseline.ir.costs import LINE_BYTES, PAGE_BYTES, assumed_size
from fuseline.ir.dim import Dim, product
from fuseline.targets.cpu.emit.dispatch_buffers import DispatchBuffers
from fuseline.targets.cpu.families.nests.evaluations import operations_per_point
from fuseline.targets.cpu.families.nests.groups import Group
from fuseline.targets.cpu.families.nests.schedule import Schedule
from fuseline.targets.cpu.kernel_ir.builder import KernelBuilder
from fuseline.targets.cpu.kernel_ir.emitter import split
from fuseline.targets.cpu.kernel_ir.types import BYTES, MemRef, Operand

BLOCKS_AHEAD = 2
"""Blocks of columns that a row is asked for ahead (1 takes up to 1.2 of the time over 8 rows, 4 over 8 rows 1.15)."""

ROWS_AHEAD = 16
"""Rows that a block of many rows is asked for ahead (8 as good, 4 up to 1.1)."""

NEAR_ELEMENTS = 16 * 1024
"""Elements of a block up to which those after it are asked for: several of them are in the second-level cache."""

LEAST_BYTES = 2 * 1024 * 1024
"""Buffers of fewer bytes are in a cache as they are."""

WIDE_COLUMNS = 128
"""Columns of a block of rows of whole pages from which on those of some rows below have room: of narrower ones what is
asked for takes the place of what is read."""

DEAR = 8
"""Operations at a point that loads have to wait for, where a function is among them."""


class ColumnPrefetch:
    """What the groups of a workgroup ask memory for."""

    def __init__(self, kernel: KernelBuilder, schedule: Schedule, buffers: DispatchBuffers) -> None:
        self.kernel, self.schedule, self.buffers = kernel, schedule, buffers
        self._distance: Operand = 0

    @contextmanager
    def of(self, group: Group) -> Generator[None]:
        """While a group is emitted: what it touches is asked for."""
        rows = walked_rows(self.schedule, group)
        if rows is not None and self._waits(rows):
            self._distance, self.buffers.touched = self._ahead(rows), self._touched
        yield
        self.buffers.touched = lambda *_: None

    def _touched(self, memory: MemRef, index: Operand, lanes: int) -> None:
        """Ask for what comes after the vector at `index`, once for each cache line of a row."""
        first_of_line = split(index)[1] % (LINE_BYTES // BYTES[memory.dtype]) == 0
        if lanes > 1 and memory.kind == "binding" and _is_large(memory) and first_of_line:
            self.kernel.prefetch(memory, self.kernel.add(index, self._distance))

    def _waits(self, rows: Dim) -> bool:
        """Whether loads would not be under way in time, and what is asked for has room."""
        if isinstance(self.schedule.lane_extent, int) and self.schedule.lane_extent * 4 % PAGE_BYTES == 0:
            if assumed_size(rows) <= self._few or self.schedule.chunk < WIDE_COLUMNS:
                return False
        if any(_writes_rows(self.schedule, group) for group in self.schedule.groups):
            return True
        return assumed_size(rows) <= self._few and operations_per_point(self.schedule.staging) >= DEAR

    @property
    def _few(self) -> int:
        return NEAR_ELEMENTS // self.schedule.chunk

    def _ahead(self, rows: Dim) -> Operand:
        """Elements from what is read to what is asked for."""
        kernel, near = self.kernel, BLOCKS_AHEAD * self.schedule.chunk
        below = kernel.mul(self.buffers.operand(self.schedule.lane_extent), ROWS_AHEAD)
        if isinstance(rows, int):
            return near if rows <= self._few else below
        return kernel.select(kernel.compare("le", self.buffers.operand(rows), self._few), near, below)


def walked_rows(schedule: Schedule, group: Group) -> Dim | None:
    """How many rows a group traverses with lanes along a block of columns; None where it has no such walk, or the block
    is all columns."""
    if schedule.chunked is None or group.lane_axis != schedule.chunked or schedule.chunks == 1:
        return None
    if schedule.tiled_loops or schedule.interleaved or group.turned is not None:
        return None
    walks = [_outer(schedule, group), *(stage.reduction for stage in group.stages)]
    extents = schedule.staging.axes.extents
    most = max((product(extents[axis] for axis in walk) for walk in walks), key=assumed_size)
    return most if most != 1 else None


def _outer(schedule: Schedule, group: Group) -> Sequence[LoopRef]:
    """The loops of a group around its lanes."""
    return [axis for axis in group.inner if axis not in schedule.vector_loops]


def _writes_rows(schedule: Schedule, group: Group) -> bool:
    """Whether a group writes rows of results, rather than what is made of them."""
    written = any(any(stage.destinations.values()) for stage in group.stages if stage not in group.together)
    return written and bool(_outer(schedule, group)) and walked_rows(schedule, group) is not None


def _is_large(memory: MemRef) -> bool:
    return not isinstance(memory.extent, int) or memory.extent * BYTES[memory.dtype] >= LEAST_BYTES
