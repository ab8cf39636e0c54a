"""Which group each node is in, while groups grow: nodes belong to a body, and bodies change hands."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping

from fuseline.passes.fusion.group import Group
from fuseline.passes.fusion.group_body import GroupBody
from fuseline.passes.fusion.node import Node


class GroupOwners(Mapping[Node, Group]):
    """The group of each node."""

    def __init__(self, groups: Iterable[Group]) -> None:
        self._bodies: dict[Node, GroupBody] = {}
        self._owners: dict[GroupBody, Group] = {}
        for group in groups:
            self.own(group, group.body.nodes)

    def own(self, group: Group, moved: Iterable[Node]) -> None:
        """The body of `group` is its own from now on, with the nodes `moved` that were in another one."""
        body = group.body
        self._owners[body] = group
        self._bodies.update(dict.fromkeys(moved, body))

    def __getitem__(self, node: Node) -> Group:
        return self._owners[self._bodies[node]]

    def __iter__(self) -> Iterator[Node]:
        return iter(self._bodies)

    def __len__(self) -> int:
        return len(self._bodies)
