"""The tiles at the edges of an axis by themselves, so that those inside need no checks.

tiles 0 to 6, of which 0 meets the low edge and 5 the high one        0 | 1 2 3 4 | 5
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

from fuseline.targets.cpu.combinators.split import Tiles


def peel(tiles: Tiles, meets: Callable[[int], tuple[bool, bool]]) -> list[Tiles]:
    """Tiles in up to three runs: those that meet the low edge, those inside, those that meet the high edge.

    `meets(first position)` says whether a tile meets the edge at its low and at its high side. A tile that meets both
    is of the first run.

    >>> [(one.begin, one.end) for one in peel(Tiles(4, 0, 0, 6), lambda start: (start < 2, start + 4 > 20))]
    [(0, 1), (1, 5), (5, 6)]
    """
    low, high = tiles.begin, tiles.end
    while low < tiles.end and meets(tiles.first_of(low))[0]:
        low += 1
    while high > low and meets(tiles.first_of(high - 1))[1]:
        high -= 1
    runs = ((tiles.begin, low), (low, high), (high, tiles.end))
    return [replace(tiles, begin=begin, end=end) for begin, end in runs if begin < end]
