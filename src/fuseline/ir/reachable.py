"""Everything that steps from one thing to the next lead to."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from typing import TypeVar

T = TypeVar("T")


def reachable(start: Iterable[T], step: Callable[[T], Iterable[T]]) -> Iterator[T]:
    """What `step` leads to from `start`, that included, each once and depth first. `step` is asked only of what the
    caller has taken.

    >>> list(reachable([6], lambda n: [n // 2, n - 1] if n > 3 else []))
    [6, 5, 4, 3, 2]
    """
    pending, seen = list(start), set[T]()
    while pending:
        found = pending.pop()
        if found not in seen:
            seen.add(found)
            yield found
            pending += step(found)
