"""Candidates in the order in which they are merged."""

from __future__ import annotations

import heapq
from typing import Generic, TypeAlias, TypeVar

T = TypeVar("T")

Rank: TypeAlias = "tuple[int, int, int, int, str, str]"
"""Less comes first: the class of the merge, minus the bytes it saves, the rank of its rule, how much later than its
producer another one of its consumer lies, the keys of the two groups."""


class CandidateQueue(Generic[T]):
    """Items by rank; of equal ranks the one that was pushed first."""

    def __init__(self) -> None:
        self._heap: list[tuple[Rank, int, T]] = []
        self._pushed = 0

    def __len__(self) -> int:
        return len(self._heap)

    def push(self, rank: Rank, item: T) -> None:
        """Add `item`."""
        self._pushed += 1
        heapq.heappush(self._heap, (rank, self._pushed, item))

    def pop(self) -> tuple[Rank, T]:
        """Take the first item out; raises IndexError where there is none."""
        rank, _, item = heapq.heappop(self._heap)
        return rank, item
