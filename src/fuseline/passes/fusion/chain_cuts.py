"""Where a chain of groups may be cut into one part fewer, by the roots of each.

    roots    5 | 4 | 6    at most 8 in a part    =>    7 | 8,  8 | 7

The first and the last group stay whole. A part has roots of two groups that follow each other and no others: what each
two of them may have together is known, for only the limit keeps them apart.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import accumulate

CHAIN_CUTS = "chain-cuts"


def fits_fewer(roots: Sequence[int], limit: int) -> bool:
    """Whether a chain of groups with so many `roots` each has room in one part fewer, of `limit` roots each."""
    return sum(roots) <= (len(roots) - 1) * limit


def shortest_end(roots: Sequence[int], limit: int) -> int:
    """How many groups the shortest chain has that ends as this one does and fits fewer parts; 0 for none."""
    lengths = range(3, len(roots) + 1)
    return next((count for count in lengths if fits_fewer(roots[-count:], limit)), 0)


def cuts(roots: Sequence[int], limit: int) -> Iterator[tuple[int, ...]]:
    """The ways to cut a chain of groups with so many `roots` each into one part fewer: how many roots come before each
    cut."""
    yield from _cuts(list(accumulate(roots)), limit, ())


def _cuts(before: Sequence[int], limit: int, ends: tuple[int, ...]) -> Iterator[tuple[int, ...]]:
    """Those that begin with `ends`; `before` has the roots up to the end of each group."""
    at, parts = len(ends), len(before) - 1
    if at == parts - 1:
        yield ends
        return
    start = ends[-1] if ends else 0
    least = max(before[at], start + 1, before[-1] - (parts - 1 - at) * limit)
    most = min(before[at + 1], start + limit)
    for end in range(least, most + 1):
        yield from _cuts(before, limit, (*ends, end))
