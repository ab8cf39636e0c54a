"""Sets that are joined and never parted."""

from __future__ import annotations

import random

from fuseline.analysis.disjoint_sets import DisjointSets


def test_everything_is_by_itself_until_it_is_joined():
    sets = DisjointSets[str]()
    assert (sets.of("a"), sets.of("b")) == ("a", "b")
    sets.join("a", "b")
    assert sets.of("a") == sets.of("b") == "b"


def test_pairs_are_joined_in_any_order_to_the_same_sets():
    numbers = range(40)
    pairs = [(i, i + 3) for i in numbers if i + 3 in numbers]
    random.shuffle(pairs)
    sets = DisjointSets(pairs)
    assert [[sets.of(i) == sets.of(j) for j in numbers] for i in numbers] == [
        [(i - j) % 3 == 0 for j in numbers] for i in numbers
    ]


def test_a_copy_is_joined_by_itself():
    sets = DisjointSets[int]([(1, 2)])
    other = sets.copy()
    other.join(2, 3)
    assert (other.of(1), sets.of(1), sets.of(3)) == (3, 2, 3)
