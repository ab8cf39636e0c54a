"""A box of a row-major tensor as rows: stretches of neighbouring bytes, and the loops over them.

    2x3 in 4x5           rows of 3 elements, 2 of them 5 elements apart
    2x5 in 4x5           one row of 10 elements
    2x1x3 in 4x6x5       rows of 3 elements, 2 of them 30 elements apart

Dimensions merge where they are known to be whole.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from fuseline.ir import dim as d
from fuseline.ir.dim import Dim

ROW_LOOPS = 3
"""Loops over rows that the runtime copies a box with."""


class BoxRows(NamedTuple):
    """Rows of `length` bytes; `loops` are how many there are of each loop and how far apart they lie in the tensor
    (bytes), outermost first."""

    length: Dim
    loops: tuple[tuple[Dim, Dim], ...]


def box_rows(sizes: Sequence[Dim], whole: Sequence[Dim], element: int) -> BoxRows:
    """The rows of a box of `sizes` in a tensor of sizes `whole`, of elements of so many bytes.

    >>> box_rows((2, 3), (4, 5), 4)
    BoxRows(length=12, loops=((2, 20),))
    >>> box_rows((2, 1, 5), (4, 6, 5), 1)
    BoxRows(length=5, loops=((2, 30),))
    """
    length: Dim = element
    stride: Dim = element
    loops: list[tuple[Dim, Dim]] = []
    merges = True  # whether the dimensions further in take all of theirs
    for size, extent in zip(reversed(sizes), reversed(whole), strict=True):
        if merges and not loops:
            length = d.mul(length, size)
        elif merges:
            loops[-1] = d.mul(loops[-1][0], size), loops[-1][1]
        elif size != 1:
            loops.append((size, stride))
            merges = True
        merges = merges and size == extent
        stride = d.mul(stride, extent)
    return BoxRows(length, tuple(reversed(loops)))


def box_distance(offsets: Sequence[Dim], whole: Sequence[Dim], element: int) -> Dim:
    """Bytes from the start of the tensor to that of a box at `offsets`."""
    flat: Dim = 0
    for offset, extent in zip(offsets, whole, strict=True):
        flat = d.add(d.mul(flat, extent), offset)
    return d.mul(flat, element)
