"""Reductions too long to lie in scratch are traversed in blocks: some steps of one loop at a time, the others whole."""

from __future__ import annotations

from collections.abc import Sequence

from fuseline.ir.dim import Dim, product

BLOCK_STEPS = 256
"""Steps of a block: as many as a partial sum of floats has, and 112 rows of so many lie in 112 KiB."""

LEAST_STEPS = 16
"""The loop that is cut goes so many steps at a time, or multiples: whole vectors."""


def reduction_block(extents: Sequence[Dim]) -> tuple[int, int] | None:
    """Which of the loops of a reduction is cut, and how many steps of it a block has: the most; of equals the innermost
    one. None where too much would be left inside, or a second loop is of unknown length.

    >>> reduction_block((40000,)), reduction_block((3, 3, 2376)), reduction_block((5000, 5000))
    ((0, 256), (2, 16), None)
    """
    found: list[tuple[int, int]] = []
    for number in range(len(extents)):
        others = product(extent for other, extent in enumerate(extents) if other != number)
        steps = BLOCK_STEPS // max(others, 1) // LEAST_STEPS * LEAST_STEPS if isinstance(others, int) else 0
        if steps:
            found.append((steps, number))
    return (max(found)[1], max(found)[0]) if found else None


def steps_of_block(extents: Sequence[Dim]) -> int | None:
    """The steps of a block of the reduction in all, None where it has none."""
    found = reduction_block(extents)
    if found is None:
        return None
    number, steps = found
    others = product(extent for other, extent in enumerate(extents) if other != number)
    assert isinstance(others, int)
    return steps * others
