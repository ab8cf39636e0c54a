"""Which groups of sites get a form in common, for sites of given heights."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from fuseline.targets.cpu.families.common_forms import disjoint_groups, groups_by_height
from fuseline.targets.cpu.families.family import Shared
from tests.draws import RNG


@dataclass(frozen=True)
class Site:
    number: int
    heights: frozenset[int]


def _shared(members: Sequence[Site], height: int) -> Shared:
    return Shared(tuple(site.number for site in members), (), tuple(1.0 / height for _ in members))


def _groups(sites: Sequence[Site]) -> Iterator[Shared]:
    return groups_by_height(sites, 6, lambda site, height: height in site.heights, _shared)


def _sites(*heights: set[int]) -> list[Site]:
    return [Site(number, frozenset(found)) for number, found in enumerate(heights)]


def test_groups_have_two_members_or_more_and_tiles_of_two_rows_or_more():
    found = list(_groups(_sites({6, 2, 1}, {6, 1}, {2, 1}, {5})))
    assert [one.members for one in found] == [(0, 1), (0, 2)]
    assert not list(_groups(_sites({2})))


def test_many_members_come_first_then_those_that_lose_least():
    by_size = disjoint_groups(_sites({6, 3}, {6, 3}, {3}, {2}), _groups, "forms")
    by_loss = disjoint_groups(_sites({6, 3}, {6, 3}), _groups, "forms")
    assert [one.members for one in by_size] == [(0, 1, 2)]
    assert [one.lost for one in by_loss] == [(1 / 6, 1 / 6)]


def test_every_site_is_in_one_group_at_most_and_no_group_is_left():
    drawn = [set(RNG.integers(2, 7, 2).tolist()) for _ in range(8)]
    sites = _sites(*drawn)
    found = disjoint_groups(sites, _groups, "forms")
    members = [number for one in found for number in one.members]
    assert len(members) == len(set(members))
    left = [site for site in sites if site.number not in members]
    assert not list(_groups(left))
