"""Stretches that stand several times in a row are found, whatever stands around them."""

from __future__ import annotations

import pytest

from fuseline.report.page.repeated_layers import Repeat, repeated_layers
from tests.draws import RNG


@pytest.mark.parametrize(
    ("items", "found"),
    [
        ("", []),
        ("aaa", []),
        ("aaaa", [Repeat(0, 1, 4)]),
        ("xabcabcabcy", [Repeat(1, 3, 3)]),
        ("ababxcdcdcd", [Repeat(0, 2, 2), Repeat(5, 2, 3)]),
        ("abcd", []),
        ("abcabcab", [Repeat(0, 3, 2)]),
    ],
)
def test_repeats(items: str, found: list[Repeat]) -> None:
    assert repeated_layers(items) == found


def test_what_is_said_stands_there_and_nothing_twice() -> None:
    for _ in range(50):
        items = RNG.integers(0, 3, RNG.integers(0, 60)).tolist()
        last = 0
        for start, period, count in repeated_layers(items):
            layer = items[start : start + period]
            assert start >= last and count > 1
            assert items[start : start + period * count] == layer * count
            last = start + period * count
        assert last <= len(items)
