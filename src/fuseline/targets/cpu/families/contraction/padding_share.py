"""How much of the work of a window lies in the image: taps that fall into the padding are left out, and so are the
filter's columns for them.

image of 17, taps 36 apart: of three taps only the middle one ever meets the image       =>       a third
"""

from __future__ import annotations

from math import prod

import numpy as np

from fuseline.analysis.operand_access import Bound
from fuseline.targets.cpu.families.contraction.axes import estimated
from fuseline.targets.cpu.families.contraction.loops import ContractionLoops, RowSegment

_MOST_POINTS = 4096
"""Points of a loop beyond which the border is too small a part of it to count on."""


def share_inside(loops: ContractionLoops) -> float:
    """The share of the steps of all rows that read the image, the mean over the segments of the reduction; 1 without
    bounds."""
    shares = [prod(_share(loops, segment, bound) for bound in segment.access.padding) for segment in loops.segments]
    return float(np.mean(shares)) if shares else 1.0


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
