"""Reductions too long to lie in scratch are traversed in blocks: some steps of one loop at a time, the others whole; of
several loops where the others would be too long.

    59 x 91 steps:   2 of the outer loop at a time, the inner one whole
    ? x ? x 16:      1 of the first, 16 of the second, the third whole
"""

from __future__ import annotations

from collections.abc import Sequence
from math import prod

from fuseline.ir.dim import Dim, product

BLOCK_STEPS = 256
"""Steps of a block: as many as a partial sum of floats has, and 112 rows of so many lie in 112 KiB."""

LEAST_STEPS = 16
"""A loop that is cut alone goes so many steps at a time, or multiples: whole vectors."""


def reduction_block(extents: Sequence[Dim], most: int = BLOCK_STEPS) -> dict[int, int]:
    """Which loops of a reduction are cut, and how many steps of each a block has; the others are whole. One loop where
    that leaves few enough steps inside: the one of the most steps, of equals the innermost. None where all are few.
    `most`: steps of a block.

    >>> reduction_block((40000,)), reduction_block((3, 3, 2376)), reduction_block((5000, 5000))
    ({0: 256}, {2: 16}, {0: 1, 1: 256})
    """
    whole = product(extents)
    if isinstance(whole, int) and whole <= most:
        return {}
    found: list[tuple[int, int]] = []
    for number in range(len(extents)):
        others = product(extent for other, extent in enumerate(extents) if other != number)
        steps = most // max(others, 1) // LEAST_STEPS * LEAST_STEPS if isinstance(others, int) else 0
        if steps:
            found.append((steps, number))
    return {max(found)[1]: max(found)[0]} if found else _from_the_innermost(extents, most)


def _from_the_innermost(extents: Sequence[Dim], most: int) -> dict[int, int]:
    """As many of the inner loops whole as fit, what is left of a block of the next one, single steps of the others."""
    cuts: dict[int, int] = {}
    left = most
    for number, extent in reversed(list(enumerate(extents))):
        if isinstance(extent, int) and extent <= left:
            left //= max(extent, 1)
        else:
            cuts[number], left = left, 1
    return dict(sorted(cuts.items()))


def steps_of_block(extents: Sequence[Dim]) -> int:
    """The steps of a block of the reduction in all."""
    cuts = reduction_block(extents)
    return prod(cuts.get(number) or _known(extent) for number, extent in enumerate(extents))


def _known(extent: Dim) -> int:
    assert isinstance(extent, int), "what is not cut is known"
    return extent
