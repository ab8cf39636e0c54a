"""Which dispatches get a form in common: groups of sites (a dispatch each), every site in one group at most."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Protocol, TypeVar

from fuseline.ir.rounds import rounds
from fuseline.targets.cpu.families.family import Shared


class Site(Protocol):
    """A dispatch that may share a form."""

    @property
    def number(self) -> int:
        """Its number among those asked about."""
        ...


SiteT = TypeVar("SiteT", bound=Site)


def disjoint_groups(
    sites: Sequence[SiteT], groups: Callable[[Sequence[SiteT]], Iterable[Shared]], task: str
) -> list[Shared]:
    """The best of `groups(sites)`, then the best of what it leaves, until none is left: many members first, then those
    that lose least. `task` names the search, should it not end."""
    found: list[Shared] = []
    left = sites
    for _ in rounds(task, most=len(sites)):
        best = max(groups(left), key=_merit, default=None)
        if best is None:
            break
        found.append(best)
        left = [site for site in left if site.number not in best.members]
    return found


def groups_by_height(
    sites: Sequence[SiteT],
    tallest: int,
    fits: Callable[[SiteT, int], bool],
    shared: Callable[[Sequence[SiteT], int], Shared],
) -> Iterator[Shared]:
    """For each height of tiles from `tallest` rows down to 2, the group of all sites that it `fits`."""
    for height in range(tallest, 1, -1) if len(sites) > 1 else ():
        members = [site for site in sites if fits(site, height)]
        if len(members) > 1:
            yield shared(members, height)


def _merit(group: Shared) -> tuple[int, float]:
    return len(group.members), -sum(group.lost)
