"""Sets that are joined and never parted: which of many things are one, by pairs that are."""

from __future__ import annotations

from collections.abc import Hashable, Iterable
from typing import Generic, TypeVar

T = TypeVar("T", bound=Hashable)


class DisjointSets(Generic[T]):
    """Everything is a set of its own until it is joined; the representative of a set is that of the last joined."""

    def __init__(self, pairs: Iterable[tuple[T, T]] = ()) -> None:
        self._above: dict[T, T] = {}
        for one, other in pairs:
            self.join(one, other)

    def of(self, item: T) -> T:
        """The representative of an item's set."""
        path: list[T] = []
        while (above := self._above.get(item, item)) != item:
            path.append(item)
            item = above
        for visited in path:
            self._above[visited] = item
        return item

    def join(self, one: T, other: T) -> None:
        """Make the sets of both one, which that of `other` stands for."""
        self._above[self.of(one)] = self.of(other)

    def copy(self) -> DisjointSets[T]:
        """The same sets, to be joined further apart from these."""
        found = DisjointSets[T]()
        found._above = dict(self._above)
        return found
