"""Where chains may be cut: every way keeps the limit, leaves the ends whole and has one part fewer."""

from __future__ import annotations

from itertools import combinations, pairwise

import pytest

from fuseline.passes.fusion.chain_cuts import cuts, fits_fewer, shortest_end
from tests.draws import RNG


def _drawn() -> tuple[list[int], int]:
    limit = int(RNG.integers(2, 6))
    return [int(n) for n in RNG.integers(1, limit + 1, int(RNG.integers(3, 6)))], limit


@pytest.mark.parametrize(
    ("roots", "found"), [((5, 4, 6), [(7,), (8,)]), ((1, 8, 6), [(7,), (8,)]), ((8, 1, 7), [(8,)])]
)
def test_a_chain_of_three_is_cut_inside_its_second_group(roots: tuple[int, ...], found: list[tuple[int, ...]]):
    assert list(cuts(roots, 8)) == found


def test_four_groups_may_have_room_in_three_where_no_three_have_in_two():
    roots = (6, 6, 6, 6)
    assert not fits_fewer(roots[1:], 8) and list(cuts(roots, 8)) == [(8, 16)]


@pytest.mark.parametrize("_", range(20))
def test_the_cuts_are_all_that_keep_the_limit_and_each_in_the_group_behind_its_number(_: int):
    roots, limit = _drawn()
    ends = [sum(roots[:count]) for count in range(1, len(roots) + 1)]
    wanted = [
        way
        for way in combinations(range(1, sum(roots)), len(roots) - 2)
        if all(after - before <= limit for before, after in pairwise((0, *way, sum(roots))))
        and all(ends[at] <= end <= ends[at + 1] for at, end in enumerate(way))
    ]
    assert list(cuts(roots, limit)) == wanted
    assert not wanted or fits_fewer(roots, limit)


@pytest.mark.parametrize("_", range(20))
def test_the_shortest_end_fits_and_no_shorter_one_does(_: int):
    roots, limit = _drawn()
    count = shortest_end(roots, limit)
    assert count == 0 or (count >= 3 and fits_fewer(roots[-count:], limit))
    shorter = range(3, count or len(roots) + 1)
    assert not any(fits_fewer(roots[-other:], limit) for other in shorter)
