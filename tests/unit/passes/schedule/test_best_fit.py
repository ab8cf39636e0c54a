"""How lives are packed: never one in another's place, and nearly as tight as can be."""

from __future__ import annotations

import numpy as np
import pytest

from fuseline.passes.schedule.best_fit import Sized, Transient, best_fit, most_live


def _random_lives(count: int) -> Sized:
    rng = np.random.default_rng()
    sizes, firsts, lengths = (
        rng.choice([1, 2, 3, 4, 6, 8, 12, 16], count),
        rng.integers(0, count, count),
        rng.choice([0, 1, 1, 1, 2, 3, 8], count),
    )
    return [
        (int(size), Transient(int(size), int(first), int(first + length)))
        for size, first, length in zip(sizes, firsts, lengths, strict=True)
    ]


def _overlap(one: tuple[int, int], other: tuple[int, int]) -> bool:
    return one[0] < other[1] and other[0] < one[1]


def test_lives_that_overlap_lie_apart() -> None:
    for _ in range(20):
        sized = _random_lives(40)
        offsets, total = best_fit(sized)
        memory = [(offset, offset + size) for offset, (size, _) in zip(offsets, sized, strict=True)]
        lives = [(life.first, life.last + 1) for _, life in sized]
        for i in range(len(sized)):
            for j in range(i):
                assert not (_overlap(lives[i], lives[j]) and _overlap(memory[i], memory[j]))
        assert total == max(end for _, end in memory) >= most_live(sized)


def test_what_lies_on_top_is_placed_first_the_next_time() -> None:
    """By size, by area and by time, these need 23."""
    lives = [(2, 0, 1), (5, 1, 2), (1, 1, 2), (7, 2, 3), (7, 3, 4), (6, 3, 4), (3, 4, 5), (6, 4, 4)]
    sized = [(size, Transient(size, first, last)) for size, first, last in lives]
    assert best_fit(sized)[1] == most_live(sized) == 22


def test_many_random_lives_are_packed_tightly() -> None:
    """Within 2 % of what is live at once, over many draws (0.1 % on average)."""
    draws = [_random_lives(120) for _ in range(20)]
    assert sum(best_fit(sized)[1] for sized in draws) <= 1.02 * sum(map(most_live, draws))


@pytest.mark.ortools
def test_nearly_as_tight_as_a_solver_packs() -> None:
    pytest.importorskip("ortools")
    from benchmarks.packing import optimum

    draws = [_random_lives(30) for _ in range(10)]
    assert sum(best_fit(sized)[1] for sized in draws) <= 1.02 * sum(optimum(sized, 10.0) for sized in draws)
