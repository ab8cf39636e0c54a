"""Constants that are a regular grid: rows and vectors of a register tile, written out one after the other."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import TypeAlias

from fuseline.ir.rounds import rounds

Grid: TypeAlias = Mapping[int, int]
"""By stride how many there are along it, 2 or more."""


def grid_of(numbers: Iterable[int]) -> Grid | None:
    """The strides and counts of which the numbers are all sums, added to the least; None where that leaves some out.

    >>> grid_of([5, 6, 7, 105, 106, 107])
    {1: 3, 100: 2}
    >>> grid_of([5, 6, 8]) is None
    True
    """
    rest, grid = sorted(set(numbers)), dict[int, int]()
    for _ in rounds("the strides of a grid", most=len(rest)):  # a run is of 2 or more
        if len(rest) < 2:
            break
        stride = rest[1] - rest[0]
        run = _run(rest, stride)
        starts = rest[::run]
        if stride in grid or rest != [start + stride * i for start in starts for i in range(run)]:
            return None
        grid[stride], rest = run, starts
    return grid


def _run(numbers: list[int], stride: int) -> int:
    """How many of the first numbers are a stride apart."""
    return next((n for n, at in enumerate(numbers) if at != numbers[0] + n * stride), len(numbers))
