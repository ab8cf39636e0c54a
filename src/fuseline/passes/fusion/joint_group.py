"""A group that would come of two: known by the two as long as it is a candidate, and where it is formed it takes over
what they have.

Most candidates are judged by sums and unions of what is known of the halves. Whoever looks inside (`members`,
`grid_loop_of`, `inlined`) gets it built.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from collections.abc import Set as AbstractSet
from typing import Any

from fuseline.ir.dim import Dim
from fuseline.passes.fusion.cached import cached
from fuseline.passes.fusion.group import Group
from fuseline.passes.fusion.group_body import GroupBody, Renumbering, is_stored
from fuseline.passes.fusion.node import Node, Read, root_rank

_FACTS = (
    *("size", "key", "root", "heavy", "reduces", "moves", "fusable", "reads_elsewhere", "body_operations"),
    *("most_points", "root_points", "unbounded", "reducing_count", "placed_roots", "is_sequential"),
)
"""What is asked of the halves of later groups, so that nobody has to ask theirs."""


class JointGroup(Group):
    """`producer` and `consumer` as one over `grid`. `numbers`: the new numbers of their grid loops, None where they
    keep them. The members of `in_place`, one of the two, are evaluated where they are read."""

    def __init__(
        self,
        producer: Group,
        consumer: Group,
        grid: tuple[Dim, ...],
        numbers: tuple[Renumbering | None, Renumbering | None] = (None, None),
        in_place: Group | None = None,
    ) -> None:
        self.grid = grid
        self.online = producer.online + consumer.online
        self.halves: tuple[Group, Group] | None = (producer, consumer)
        self.numbers, self.in_place = numbers, in_place

    def __getattr__(self, name: str) -> Any:
        """The fields of a group, built when somebody asks."""
        build = _FIELDS.get(name)
        if build is None:
            raise AttributeError(name)
        found = self.__dict__[name] = build(self)
        return found

    # what the halves say ----------------------------------------------------------------------------------------------

    @property
    def _halves(self) -> tuple[Group, Group]:
        assert self.halves is not None
        return self.halves

    @property
    def _placed(self) -> tuple[Group, ...]:
        return tuple([half for half in self._halves if half is not self.in_place])

    @cached
    def body(self) -> GroupBody:
        """What it consists of as a candidate. One that is part of another group has none."""
        assert self.halves is not None, "the group is part of another one"
        return super().body

    @cached
    def size(self) -> int:
        """How many members there are."""
        return sum([half.size for half in self._halves])

    @cached
    def key(self) -> str:
        """The least member id."""
        return min([half.key for half in self._halves])

    @cached
    def root(self) -> Node:
        """The op that the dispatch is built around."""
        return max([half.root for half in self._placed], key=root_rank)

    @cached
    def is_sequential(self) -> bool:
        """Whether a member is made in one walk by a kernel of its own."""
        return any([half.is_sequential for half in self._halves])

    @cached
    def heavy(self) -> bool:
        """Whether any member is a contraction, convolution or pooling."""
        return any([half.heavy for half in self._halves])

    @cached
    def reduces(self) -> bool:
        """Whether any member reduces."""
        return any([half.reduces for half in self._halves])

    @cached
    def moves(self) -> bool:
        """Whether all members only move data."""
        return all([half.moves for half in self._halves])

    @cached
    def fusable(self) -> bool:
        """Whether rules may speak about this group."""
        return all([half.fusable for half in self._halves])

    @cached
    def reads_elsewhere(self) -> bool:
        """Whether any member reads at another point than its own."""
        return any([half.reads_elsewhere for half in self._halves])

    @cached
    def body_operations(self) -> int:
        """Operations of one evaluation of every member."""
        return sum([half.body_operations for half in self._halves])

    @cached
    def most_points(self) -> int:
        """Points of the largest member."""
        return max([half.most_points for half in self._halves])

    @cached
    def unbounded(self) -> bool:
        """Whether nobody knows how many points some member has at most."""
        return any([half.unbounded for half in self._halves])

    @cached
    def root_points(self) -> int:
        """Points of all roots together."""
        return sum([half.root_points for half in self._halves])

    @cached
    def reducing_count(self) -> int:
        """How many members reduce that are not read in place."""
        return sum([half.reducing_count for half in self._placed])

    @cached
    def placed_roots(self) -> frozenset[Node]:
        """The roots that are not read in place."""
        return frozenset([node for half in self._placed for node in half.placed_roots])

    def grid_loops(self, node: Node) -> tuple[int | None, ...]:
        """The grid loop of each loop of a placed member."""
        if self.halves is None:
            return self.body.grid_loop_of[node]
        at = 0 if node in self.halves[0].member_set else 1
        loops, numbers = self.halves[at].grid_loops(node), self.numbers[at]
        return loops if numbers is None else tuple(map(numbers.get, loops))

    def is_inlined(self, node: Node) -> bool:
        """Whether a member is evaluated where it is read."""
        if self.halves is None:
            return node in self.body.inlined
        half = self.halves[0 if node in self.halves[0].member_set else 1]
        return half is self.in_place or half.is_inlined(node)

    def inlines(self, other: Group) -> bool:
        """Whether all members of `other`, one of the halves, are read in place."""
        return other is self.in_place

    def bindings(self) -> int:
        """How many buffers a dispatch of this group binds."""
        if self.halves is None:
            return super().bindings()
        mine, theirs = (half.body for half in self.halves)
        read = {id(read.value) for read in self._inside}
        inputs = len(mine.inputs) + len(theirs.inputs) - _common(mine.inputs, theirs.inputs)
        inputs -= sum([value in theirs.inputs for value in read])
        return inputs + len(mine.results) + len(theirs.results) - len(self._kept_inside)

    @cached
    def _inside(self) -> Sequence[Read]:
        producer, consumer = self._halves
        return consumer.reads_from(producer)

    @cached
    def _kept_inside(self) -> list[int]:
        """The values between the halves that nobody outside needs."""
        mine, theirs = (half.member_set for half in self._halves)
        values = {id(read.value): read for read in self._inside}
        return [value for value, read in values.items() if not is_stored(read, (mine, theirs))]

    # where it is formed -----------------------------------------------------------------------------------------------

    def form(self) -> Collection[Node]:
        """Take over what the halves have, which are not to be used any more; the nodes that are in another body now."""
        for name in _FACTS:
            getattr(self, name)
        producer, consumer = (half.body for half in self._halves)
        for half, numbers in zip(self._halves, self.numbers, strict=True):
            if half is self.in_place:
                half.body.inline()
            elif numbers is not None:
                half.body.renumber(numbers)
        read = consumer.detach(producer, self._kept_inside)
        large, small = (producer, consumer) if len(producer.nodes) > len(consumer.nodes) else (consumer, producer)
        large.absorb(small)
        large.settle(read)
        self._forget(self._halves)
        self.__dict__["body"] = large
        return small.nodes

    def _forget(self, halves: tuple[Group, Group]) -> None:
        for half in halves:
            del half.body
            half.__dict__.pop("_reads", None)
        self.halves = self.in_place = None
        for name in ("_inside", "_kept_inside", "member_set"):
            self.__dict__.pop(name, None)

    @cached
    def member_set(self) -> AbstractSet[Node]:
        """The members."""
        return self.body.nodes if self.halves is None else frozenset(self.members)

    @property
    def plain(self) -> Group:
        """The same group by itself."""
        return Group(
            self.members, self.grid, self.grid_loop_of, self.inlined, self.arms, online=self.online, along=self.along
        )


def _common(mine: Collection[int], theirs: Collection[int]) -> int:
    few, many = (mine, theirs) if len(mine) < len(theirs) else (theirs, mine)
    return sum([value in many for value in few])


# fields of a group ----------------------------------------------------------------------------------------------------


def _members(group: JointGroup) -> list[Node]:
    """In program order."""
    nodes = group.body.nodes if group.halves is None else [node for half in group.halves for node in half.members]
    return sorted(nodes, key=lambda node: node.position)


def _grid_loop_of(group: JointGroup) -> dict[Node, tuple[int | None, ...]]:
    if group.halves is None:
        return dict(group.body.grid_loop_of)
    found: dict[Node, tuple[int | None, ...]] = {}
    for half, numbers in zip(group.halves, group.numbers, strict=True):
        if half is not group.in_place:
            loops_of = half.grid_loop_of
            found |= loops_of if numbers is None else {n: tuple(map(numbers.get, at)) for n, at in loops_of.items()}
    return found


def _inlined(group: JointGroup) -> set[Node]:
    if group.halves is None:
        return set(group.body.inlined)
    in_place = group.in_place.members if group.in_place is not None else ()
    return group.halves[0].inlined.union(group.halves[1].inlined, in_place)


_FIELDS = {"members": _members, "grid_loop_of": _grid_loop_of, "inlined": _inlined}
