"""Axes in tiles of two heights, grids in blocks."""

from __future__ import annotations

import pytest

from fuseline.targets.cpu.combinators.split import Tiles, block_of, in_runs, split_tiles
from fuseline.targets.cpu.tiles import split_rows

from .visits import Visits, visited


def covered(v: Visits, tiles: Tiles, within: tuple[int, int] | None = None) -> None:
    tiles.each(v.kernel, lambda t, start: [v.note(v.kernel.add(start, i)) for i in range(tiles.height)], within)


@pytest.mark.parametrize("height", range(1, 9))
@pytest.mark.parametrize("extent", [1, 2, 5, 7, 13, 40])
def test_tiles_cover_an_axis_once_in_order(extent: int, height: int):
    split = split_rows(extent, min(extent, height))
    assert visited(lambda v: [covered(v, tiles) for tiles in split_tiles(split)]) == list(range(extent))


@pytest.mark.parametrize("within", [(0, 0), (0, 2), (1, 3), (2, 9), (4, 4)])
def test_only_tiles_of_the_range_are_made(within: tuple[int, int]):
    split = split_rows(13, 4)  # tiles of 4, 3, 3, 3
    starts = [0, 4, 7, 10, 13]
    last = min(within[1], 4)
    found = visited(lambda v: [covered(v, tiles, within) for tiles in split_tiles(split)])
    assert found == (list(range(starts[within[0]], starts[last])) if within[0] < last else [])


def test_a_range_known_at_run_time():
    def emit(v: Visits) -> None:
        for tiles in split_tiles(split_rows(13, 4)):
            tiles.each(v.kernel, v.note, (v.kernel.size(0), v.kernel.size(1)))

    assert visited(emit, [1, 3]) == [1, 4, 2, 7]


def test_the_spread_is_of_first_positions():
    for tiles in split_tiles(split_rows(23, 5)):
        starts = [tiles.first_of(t) for t in range(tiles.begin, tiles.end)]
        assert tiles.start_range == (starts[0], starts[-1])


@pytest.mark.parametrize(("size", "count"), [(1, 5), (3, 7), (3, 6), (7, 7), (9, 7), (4, 1)])
def test_blocks_cover_all_once(size: int, count: int):
    def emit(v: Visits) -> None:
        for index in range(-(-count // size)):
            v.kernel.loop(*block_of(v.kernel, v.kernel.add(v.kernel.size(0), index), size, v.kernel.size(1)), 1, v.note)

    assert visited(emit, [0, count]) == list(range(count))


def test_one_block_is_all():
    kernel = Visits().kernel
    assert block_of(kernel, kernel.size(0), 8, 7) == (0, 7)


@pytest.mark.parametrize("length", [1, 3, 4, 20])
@pytest.mark.parametrize(("begin", "end"), [(0, 12), (4, 9), (5, 6), (3, 3), (0, 1)])
def test_a_run_is_entered_once_for_those_of_it_in_the_range(begin: int, end: int, length: int):
    def emit(v: Visits) -> None:
        within = v.kernel.size(0), v.kernel.size(1)
        in_runs(v.kernel, length, within, lambda run: v.note(-1, run), lambda number: v.note(number))

    expected: list[int] = []
    for run in range(begin // length, -(-end // length)):
        expected += [-1, run, *(n % length for n in range(begin, end) if n // length == run)]
    assert visited(emit, [begin, end]) == expected
