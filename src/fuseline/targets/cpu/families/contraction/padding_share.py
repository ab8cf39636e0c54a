"""How much of the work of a window lies in the image: taps that fall into the padding are left out, and so are the
filter's columns for them.

    image of 17, taps 36 apart: of three taps only the middle one ever meets the image       =>       a third

    taps 6 apart      rows 0 to 5: the tap 6 before them meets nothing      =>      two thirds
                      rows 0 to 8: one of them is met by each tap           =>      all
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cache
from itertools import accumulate
from math import prod

import numpy as np

from fuseline.analysis.operand_access import Bound
from fuseline.targets.cpu.families.contraction.axes import Axis, estimated
from fuseline.targets.cpu.families.contraction.loops import ContractionLoops, RowSegment

_MOST_POINTS = 4096
"""Points of a loop beyond which the border is too small a part of it to count on."""


def share_inside(loops: ContractionLoops) -> float:
    """The share of the steps of all rows that read the image, the mean over the segments of the reduction; 1 without
    bounds."""
    shares = [prod(_share(loops, segment, bound) for bound in segment.access.padding) for segment in loops.segments]
    return float(np.mean(shares)) if shares else 1.0


def share_of_tiles(loops: ContractionLoops) -> Callable[[int, int], float] | None:
    """`(first row, rows) -> share of the steps` that a tile takes whose rows are read where they lie: a tap is left out
    that meets the image at none of its rows. None where all tiles of two rows and more take all of them."""
    if not loops.rows or not all(segment.access.pad == 0 for segment in loops.segments):
        return None
    tiled = loops.rows[-1]
    windows = [
        [found for bound in segment.access.padding if (found := _window(bound, tiled, segment)) is not None]
        for segment in loops.segments
    ]
    extent = tiled.extent
    if not isinstance(extent, int) or not any(window.leaves_out(extent) for found in windows for window in found):
        return None

    @cache
    def share(first: int, rows: int) -> float:
        return sum(prod(window.share(first, rows) for window in found) for found in windows) / len(windows)

    return share


def share_of_steps(loops: ContractionLoops, heights: Sequence[int]) -> float:
    """The share of the steps of all tiles that is made where rows are read where they lie, in tiles of these `heights`
    along the last row axis: a tap is left out on the lines, and in the tiles, at which it meets the image nowhere."""
    if not loops.segments or not all(segment.access.pad == 0 for segment in loops.segments):
        return 1.0
    return float(np.mean([
        prod(_made(loops, segment, bound, heights) for bound in segment.access.padding) for segment in loops.segments
    ]))  # fmt: skip


def _made(loops: ContractionLoops, segment: RowSegment, bound: Bound, heights: Sequence[int]) -> float:
    tiled = loops.rows[-1] if loops.rows else None
    if tiled is None or not {*bound.coordinate.terms} & {*tiled.loops}:
        return _share(loops, segment, bound)
    window = _window(bound, tiled, segment)
    if window is None:
        return 1.0
    firsts = accumulate(heights, initial=0)
    return float(np.mean([window.share(first, rows) for first, rows in zip(firsts, heights, strict=False)]))


@dataclass(frozen=True, slots=True)
class _Window:
    """Taps `0 <= constant + step * row + apart * tap < size`, `taps` of them."""

    constant: int
    step: int
    apart: int
    taps: int
    size: int

    def share(self, first: int, rows: int) -> float:
        """Of the taps that a tile takes: from where its last row enters the image to where its first one leaves."""
        low, high = self.constant + self.step * first, self.constant + self.step * (first + rows - 1)
        begin = -(-max(-high, 0) // self.apart)
        end = min(self.taps, -(-max(self.size - low, 0) // self.apart))
        return max(end - begin, 0) / self.taps

    def leaves_out(self, rows: int) -> bool:
        """Whether two rows at either end of so many leave a tap out."""
        return rows > 1 and min(self.share(0, 2), self.share(rows - 2, 2)) < 1


def _window(bound: Bound, tiled: Axis, segment: RowSegment) -> _Window | None:
    """The window along the tiled axis that a bound is of; None of another one."""
    reduction = {axis.inner: axis.extent for axis in segment.reduction}
    steps = bound.coordinate.loops
    if len(steps) < len(bound.coordinate.terms):
        return None
    step, (apart, taps) = steps.pop(tiled.inner, 0), (0, 0)
    for loop in [loop for loop in steps if loop in reduction]:
        apart, taps = steps.pop(loop), reduction[loop]
    numbers = (bound.coordinate.constant, step, apart, taps, bound.size)
    if steps or not all(isinstance(number, int) for number in numbers) or min(numbers[1:]) <= 0:  # pyright: ignore
        return None
    return _Window(*numbers)  # pyright: ignore


def _share(loops: ContractionLoops, segment: RowSegment, bound: Bound) -> float:
    axes = (*loops.rows, *segment.reduction)
    sizes = {loop: estimated(size) for axis in axes for loop, size in zip(axis.loops, axis.sizes, strict=True)}
    steps = {loop: step for loop, step in bound.coordinate.loops.items() if loop in sizes and isinstance(step, int)}
    at = np.array([bound.coordinate.constant])
    if at.dtype == object or any(sizes[loop] > _MOST_POINTS for loop in steps):
        return 1.0
    for loop, step in steps.items():
        at = np.add.outer(at, np.arange(sizes[loop]) * step).ravel()
    return float(np.mean((at >= 0) & (at < estimated(bound.size))))
