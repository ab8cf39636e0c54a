"""Whether neighbouring windows over an image have much in common: what a block of points reads around itself.

y[p] += x[p + r] * w[r]          r < 3: two taps of three are those of the next point as well
y[p] += x[16 * p + r] * w[r]     r < 16: each point has its own, as in a product
"""

from __future__ import annotations

from collections.abc import Collection, Sequence

from xdsl.ir.affine import AffineExpr

from fuseline.analysis.convolution_dims import linear_terms
from fuseline.analysis.indexing_maps import dims_of
from fuseline.analysis.structured import WINDOWS, StructuredOp, kind
from fuseline.ir.dim import Dim

MOST_SHARED = 0.25
"""Windows that have no more in common with their neighbours are met once, as tiles are: of 8 in steps of 6 two products
in one dispatch take .85 to .92 of the time of two (AVX-512, one thread; .4 to .8 on two)."""


def overlaps(coordinate: AffineExpr, points: Collection[int], loops: Sequence[Dim]) -> bool:
    """Whether windows at neighbouring steps of the loops `points` have more than `MOST_SHARED` of what they read in
    common.

    Args:
        coordinate: where in the image they read. loops: the extents of the op's loops.
    """
    found = linear_terms(coordinate)
    if found is None:
        return True
    steps, _ = found
    inner = [(abs(step), loops[loop]) for loop, step in steps.items() if loop not in points]
    if not all(isinstance(size, int) for _, size in inner):
        return True
    extent = 1 + sum(step * (size - 1) for step, size in inner if isinstance(size, int))
    return min(abs(steps[loop]) for loop in points) < (1 - MOST_SHARED) * extent


def has_overlapping_windows(view: StructuredOp, loops: Sequence[Dim]) -> bool:
    """Whether an op of these extents meets much of an image again at its next point."""
    if kind(view.op) not in WINDOWS:
        return False
    parallel = {loop for loop, what in enumerate(view.iterators) if what == "parallel" and loops[loop] != 1}
    windows = [c for map_ in view.input_maps for c in map_.results if len(dims_of(c)) > 1 and parallel & dims_of(c)]
    return any(overlaps(c, parallel & dims_of(c), loops) for c in windows)
