"""Blocks of a long reduction: no more than `BLOCK_STEPS` steps, of one loop where that does, of several where not."""

from __future__ import annotations

from math import prod

from fuseline.analysis.reduction_block import BLOCK_STEPS, LEAST_STEPS, reduction_block, steps_of_block
from fuseline.ir.dim import Dim, symbol
from tests.draws import RNG


def _drawn() -> list[Dim]:
    loops = int(RNG.integers(1, 5))
    return [
        symbol(f"k{i}") if RNG.random() < 0.3 else int(RNG.choice([1, 2, 3, 7, 16, 91, 300, 5000]))
        for i in range(loops)
    ]


def test_a_block_is_not_too_long():
    for _ in range(200):
        extents = _drawn()
        cuts = reduction_block(extents)
        assert 1 <= steps_of_block(extents) <= BLOCK_STEPS and all(steps >= 1 for steps in cuts.values())
        for number, steps in cuts.items():
            extent = extents[number]
            assert not isinstance(extent, int) or steps < extent
        whole = [extent for number, extent in enumerate(extents) if number not in cuts]
        assert all(isinstance(extent, int) for extent in whole)
        assert list(cuts) == sorted(cuts), "outer loops first"


def test_one_loop_is_cut_where_that_leaves_whole_vectors():
    for _ in range(200):
        extents = _drawn()
        cuts = reduction_block(extents)
        if not cuts:
            assert steps_of_block(extents) <= BLOCK_STEPS
            continue
        ((number, steps), *more) = cuts.items()
        others = [extent for other, extent in enumerate(extents) if other != number]
        alone = all(isinstance(extent, int) for extent in others)
        if not more and alone and steps % LEAST_STEPS == 0:
            assert steps + LEAST_STEPS > BLOCK_STEPS // prod(extent for extent in others if isinstance(extent, int))
        else:
            assert not any(_one_does(extents, loop) for loop in range(len(extents)))


def _one_does(extents: list[Dim], number: int) -> bool:
    others = [extent for other, extent in enumerate(extents) if other != number]
    known = [extent for extent in others if isinstance(extent, int)]
    return len(known) == len(others) and BLOCK_STEPS // prod(known) >= LEAST_STEPS
