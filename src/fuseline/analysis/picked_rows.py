"""Rows of which bodies pick several elements each: a workgroup keeps one, where there are enough of them.

    %h[y, x] = lerp(%a[p[y], x], %a[q[y], x])       made once per row y, kept
    %r[y, z] = lerp(%h[y, u[z]], %h[y, v[z]])       both picked from there

What fusion puts into one dispatch, a kernel has to keep: evaluated where they are picked, elements of a linear resize
take 1.04 to 2.4 of the time of two dispatches. So both ask here.
"""

from __future__ import annotations

from collections.abc import Iterable

from fuseline.ir.costs import assumed_size
from fuseline.ir.dim import Dim, product

LEAST_ROWS = 4
"""Rows that a thread should have: of fewer, the last one would wait for the others."""


def enough_rows(extents: Iterable[Dim], threads: int) -> bool:
    """Whether a grid of `extents`, the one that lanes run along aside, has rows enough to keep one at a time."""
    return assumed_size(product(extents)) >= LEAST_ROWS * threads
