"""Layers that repeat: stretches of a list that stand there several times in a row.

a b c b c b c d     ->     (1, 2, 3): from 1 on, 2 items, 3 times
"""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from typing import NamedTuple

LONGEST_LAYER = 256
"""Items of a layer, at most."""

SHORTEST_REPEAT = 4
"""Items that a repeat takes together, at least: less is read faster as it is."""


class Repeat(NamedTuple):
    """`times` layers of `period` items each, one behind the other from `start` on."""

    start: int
    period: int
    times: int


def repeated_layers(items: Sequence[Hashable]) -> list[Repeat]:
    """The repeats, none inside another: from the left, the one that covers most; of those that cover as much, the one
    of the shortest layer.

    >>> repeated_layers("abcbcbcd")
    [Repeat(start=1, period=2, times=3)]
    >>> repeated_layers("abcabc")
    [Repeat(start=0, period=3, times=2)]
    """
    found: list[Repeat] = []
    at = 0
    while at < len(items):
        best = _best(items, at)
        if best is None:
            at += 1
        else:
            found.append(best)
            at += best.period * best.times
    return found


def _best(items: Sequence[Hashable], start: int) -> Repeat | None:
    longest = min(LONGEST_LAYER, (len(items) - start) // 2)
    repeats = (Repeat(start, period, _count(items, start, period)) for period in range(1, longest + 1))
    long = [one for one in repeats if one.times > 1 and one.period * one.times >= SHORTEST_REPEAT]
    return max(long, key=lambda one: (one.period * one.times, -one.period), default=None)


def _count(items: Sequence[Hashable], start: int, period: int) -> int:
    """How often the `period` items from `start` on stand there in a row."""
    at = start + period
    while at < len(items) and items[at] == items[at - period]:
        at += 1
    return (at - start) // period
