"""The two numbers between which something begins to show, by halving."""

from __future__ import annotations

from collections.abc import Callable

MOST_UNTOLD = 4
"""How many numbers that cannot be told are passed over."""


def halved(shows: Callable[[int], bool | None], right: int, wrong: int) -> tuple[int, int]:
    """Two numbers, of which the first does not show and the second does: neighbours, or with nothing between them but
    what cannot be told (`shows` answers None). With `right` it does not show, with `wrong` it does."""
    untold: set[int] = set()
    while True:
        left = [number for number in range(right + 1, wrong) if number not in untold]
        if not left or len(untold) > MOST_UNTOLD:
            return right, wrong
        middle = (right + wrong) // 2
        number = min(left, key=lambda number: abs(number - middle))
        answer = shows(number)
        if answer is None:
            untold.add(number)
        elif answer:
            wrong = number
        else:
            right = number
