"""Reductions down few columns: all columns of a workgroup side by side, so that rows are read as they lie.

    rows    columns   0 .. 15 | 16 .. 31 | 24 .. 39        40 of them: three vectors, the last ends with the last column
      |               one traversal of the rows for all three, not one for each

A vector at a time would read a line of each row, and come back to the rows as often as they have lines.
"""

from __future__ import annotations

from fuseline.analysis.column_blocks import fits_beside
from fuseline.targets.cpu.families.nests.groups import Group
from fuseline.targets.cpu.families.nests.stages import Stage
from fuseline.targets.cpu.kernel_ir.builder import KernelBuilder
from fuseline.targets.cpu.kernel_ir.types import Operand


def only_reduces(group: Group) -> bool:
    """Whether all that a group makes are reductions, lanes along what is left, and what scratch keeps of them: columns
    that two vectors have in common may be made twice."""
    reduces = any(stage.op is not None for stage in group.stages)
    return group.lane_axis is not None and not group.together and reduces and all(map(_may_be_twice, group.stages))


def _may_be_twice(stage: Stage) -> bool:
    return stage.op is not None or not any(stage.destinations.values())


def vectors_of(kernel: KernelBuilder, lo: Operand, hi: Operand, lanes: int) -> list[list[Operand]]:
    """Where the vectors of `lo` to `hi` begin, in parts of as many as the registers hold side by side; none where a
    vector is longer than that, or nobody knows how many there are."""
    width = kernel.sub(hi, lo)
    if not isinstance(width, int) or width <= lanes or not fits_beside(width, lanes) or kernel.compact:
        return []
    count = -(-width // lanes)
    starts = [kernel.add(lo, min(number * lanes, width - lanes)) for number in range(count)]
    parts = -(-count // _beside(kernel))
    return [starts[count * part // parts : count * (part + 1) // parts] for part in range(parts)]


def _beside(kernel: KernelBuilder) -> int:
    """A quarter of the registers: two sums of each column, and what is read."""
    return max(1, kernel.machine.vector_registers // 4)
