"""Tiles at the edges by themselves."""

from __future__ import annotations

import pytest

from fuseline.targets.cpu.combinators.peel import peel
from fuseline.targets.cpu.combinators.split import Tiles


def runs(count: int, low: int, high: int) -> list[tuple[int, int]]:
    """Tiles of 4 of which the first `low` meet the low edge and the last `high` the high one."""
    found = peel(Tiles(4, 0, 0, count), lambda start: (start // 4 < low, start // 4 >= count - high))
    assert all((one.height, one.offset) == (4, 0) for one in found)
    return [(one.begin, one.end) for one in found]


@pytest.mark.parametrize(
    ("count", "low", "high", "expected"),
    [
        (6, 1, 1, [(0, 1), (1, 5), (5, 6)]),
        (6, 2, 0, [(0, 2), (2, 6)]),
        (6, 0, 2, [(0, 4), (4, 6)]),
        (6, 0, 0, [(0, 6)]),
        (2, 2, 2, [(0, 2)]),
        (3, 2, 2, [(0, 2), (2, 3)]),
        (1, 1, 1, [(0, 1)]),
        (0, 0, 0, []),
    ],
)
def test_runs(count: int, low: int, high: int, expected: list[tuple[int, int]]):
    assert runs(count, low, high) == expected


def test_tiles_that_do_not_begin_at_the_first():
    found = peel(Tiles(3, 2, 4, 8), lambda start: (start < 15, start >= 21))  # they begin at 14, 17, 20, 23
    assert [(one.begin, one.end) for one in found] == [(4, 5), (5, 7), (7, 8)]
