"""Halving, where some numbers cannot be told."""

from __future__ import annotations

import math

import pytest

from fuseline.verify.bisect.halving import MOST_UNTOLD, halved


@pytest.mark.parametrize("count", [1, 2, 3, 17, 200])
def test_the_first_that_shows(count: int):
    for first in range(1, count + 1):
        asked: list[int] = []
        assert halved(lambda number: not asked.append(number) and number >= first, 0, count) == (first - 1, first)  # noqa: B023
        assert len(asked) <= math.ceil(math.log2(count)) and 0 not in asked and count not in asked


def test_what_cannot_be_told_is_passed_over():
    answers = {5: None, 4: None}
    assert halved(lambda number: answers.get(number, number >= 7), 0, 10) == (6, 7)
    assert halved(lambda number: answers.get(number, number >= 5), 0, 10) == (3, 6)


def test_where_nothing_can_be_told_it_ends():
    asked: list[int] = []
    assert halved(lambda number: asked.append(number), 0, 1000) == (0, 1000)
    assert len(asked) == MOST_UNTOLD + 1
