"""The quotient graph of a partition: who comes before whom among groups, and an order of them that merges keep
topological.

Positions are updated at each merge, touching only the groups that lie between those that merge (Pearce and Kelly, A
dynamic topological sort algorithm for directed acyclic graphs, 2006). So a search for a path between two groups looks
only at groups whose position lies between theirs.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from graphlib import TopologicalSorter
from itertools import zip_longest
from typing import TypeAlias

from fuseline.passes.fusion.group import Group
from fuseline.passes.fusion.node import Node

_Step: TypeAlias = Callable[[Group], "list[Group]"]


class GroupOrder:
    """Groups with their positions. `group_of` is the driver's own map, which it changes after it told of a
    merge."""

    def __init__(self, groups: Iterable[Group], group_of: Mapping[Node, Group]) -> None:
        self.group_of = group_of
        self.position = {group: i for i, group in enumerate(groups)}
        self._producers: dict[Group, list[Group]] = {}
        self._consumers: dict[Group, list[Group]] = {}

    def producers(self, group: Group) -> list[Group]:
        """The groups that `group` reads from, or takes sizes from. The list is not the caller's to change."""
        known = self._producers.get(group)
        if known is None:
            known = self._producers[group] = self._found_producers(group)
        return known

    def _found_producers(self, group: Group) -> list[Group]:
        found = dict.fromkeys(self._groups_of(group.body.producers()))
        found.pop(group, None)
        return list(found)

    def consumers(self, group: Group) -> list[Group]:
        """The groups that read from `group`, or take sizes from it. The list is not the caller's to change."""
        known = self._consumers.get(group)
        if known is None:
            known = self._consumers[group] = self._found_consumers(group)
        return known

    def _found_consumers(self, group: Group) -> list[Group]:
        found = dict.fromkeys(self._groups_of(group.body.consumers()))
        found.pop(group, None)
        return list(found)

    def _groups_of(self, nodes: Iterable[Node]) -> list[Group]:
        """The group of each of `nodes`."""
        return [self.group_of[node] for node in nodes]

    def between(self, joined: Collection[Group]) -> Group | None:
        """A group on a path from one of `joined` to another that leaves them, None where they could be one group.

        The path may lead through another group, or through a scalar or size that no group computes: then it is the
        group that needs it.
        """
        waiting = self._waiting_inside(joined)
        if waiting is not None:
            return waiting
        if not self._led_to(joined) or not self._path_outside(joined):
            return None
        position = self.position
        last = max([position[each] for each in joined])
        # Nothing that comes after the last of them leads back to one.
        stack = [
            group
            for each in joined
            if position[each] < last
            for group in self.consumers(each)
            if position[group] < last and group not in joined
        ]
        seen: set[Group] = set(joined) if stack else set()
        while stack:
            group = stack.pop()
            if group in seen or position[group] > last:
                continue
            seen.add(group)
            after = self.consumers(group)
            if any([other in joined for other in after]):
                return group
            stack += after
        return None

    def _led_to(self, joined: Collection[Group]) -> bool:
        """Whether a group after the first of `joined` leads to another: else no path comes back."""
        first = min([self.position[each] for each in joined])
        return any([self.position[o] > first and o not in joined for each in joined for o in self.producers(each)])

    def _path_outside(self, joined: Collection[Group]) -> bool:
        """Whether a path leads from one of `joined` out of them and back, looked for from both ends, edge by edge: it
        is settled by the end that has fewer (a value that thousands read has one producer)."""
        positions = [self.position[each] for each in joined]
        forward = self._found_from(joined, self.consumers, range(min(positions), max(positions)))
        backward = self._found_from(joined, self.producers, range(min(positions) + 1, max(positions) + 1))
        for ahead, behind in zip_longest(forward, backward):
            if ahead is not None or behind is not None:
                return bool(ahead or behind)
        return False

    def _found_from(self, joined: Collection[Group], step: _Step, within: range) -> Iterator[bool | None]:
        """None for each edge that is followed, from `joined` through groups that lie `within`; True where one leads
        back, False at the end."""
        seen: set[Group] = set(joined)
        pending = [each for each in joined if self.position[each] in within]
        while pending:
            group = pending.pop()
            for other in step(group):
                if other in joined and group not in joined:
                    yield True
                if other not in seen and self.position[other] in within:
                    seen.add(other)
                    pending.append(other)
                yield None
        yield False

    def _waiting_inside(self, joined: Collection[Group]) -> Group | None:
        """One of `joined` that takes a size from another: what makes the size of the data stays outside, and would come
        before and after both."""
        for each in joined:
            for node in each.body.sized:
                if any([other in joined for other in self._groups_of(node.sized_by)]):
                    return each
        return None

    def merge(self, joined: Sequence[Group], new: Group) -> None:
        """`joined`, which no path outside connects, become `new`; to be told before `group_of` changes."""
        positions = [self.position[each] for each in joined]
        low, high = min(positions), max(positions)
        after = self._reached(joined, range(low, high), self.consumers)
        before = self._reached(joined, range(low, high), self.producers)
        slots = sorted([*positions, *(self.position[group] for group in (*before, *after))])
        for each in joined:
            del self.position[each]
        for group, slot in zip(sorted(before, key=self.position.__getitem__), slots, strict=False):
            self.position[group] = slot
        self.position[new] = slots[len(before)]
        for group, slot in zip(
            sorted(after, key=self.position.__getitem__), slots[len(slots) - len(after) :], strict=True
        ):
            self.position[group] = slot
        self._forget(joined)

    def leave(self, former: Sequence[Group]) -> list[int]:
        """`former` are no groups any more; the places that they had, the first one first. To be told before `group_of`
        changes."""
        self._forget(former)
        return sorted([self.position.pop(each) for each in former])

    def enter(self, groups: Sequence[Group], places: Sequence[int]) -> None:
        """`groups`, no more than the `places` that others of the same nodes left, take their place; to be told when
        `group_of` has changed. Raises CycleError for groups that lead to each other."""
        among = sorted(
            [group for group, at in self.position.items() if places[0] < at < places[-1]], key=self.position.__getitem__
        )
        slots = sorted([*places, *(self.position[group] for group in among)])
        inside = {*groups, *among}
        before = {group: [o for o in self.producers(group) if o in inside] for group in (*groups, *among)}
        self.position.update(zip(TopologicalSorter(before).static_order(), slots, strict=False))

    def _forget(self, joined: Sequence[Group]) -> None:
        """Drop what is known of the neighbours of `joined`: from now on they neighbour another group."""
        for each in joined:
            for group in self.producers(each):
                self._consumers.pop(group, None)
            for group in self.consumers(each):
                self._producers.pop(group, None)
            del self._producers[each], self._consumers[each]

    def _reached(self, joined: Sequence[Group], positions: range, step: _Step) -> list[Group]:
        """What `step` leads to from `joined` within `positions`."""
        seen: dict[Group, None] = {}
        stack = [group for each in joined for group in step(each)]
        while stack:
            group = stack.pop()
            if group not in seen and group not in joined and self.position[group] in positions:
                seen[group] = None
                stack += step(group)
        return list(seen)


class InnerOrder(GroupOrder):
    """That of a few groups of a partition; `group_of` knows their nodes only. Paths through others are not seen."""

    def _groups_of(self, nodes: Iterable[Node]) -> list[Group]:
        """The group of each of `nodes` that has one here."""
        found = map(self.group_of.get, nodes)
        return [group for group in found if group is not None]
