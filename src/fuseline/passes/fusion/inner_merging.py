"""Merging pairs among a few groups apart from all others, each merge inside one of several parts: a trial, whose groups
take the place of others where it is worth it."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TypeAlias

from fuseline.ir.target_description import TargetDescription
from fuseline.passes.fusion.candidate_queue import CandidateQueue
from fuseline.passes.fusion.candidate_ranks import CandidateRanks
from fuseline.passes.fusion.edge_records import Outcome
from fuseline.passes.fusion.group import Group
from fuseline.passes.fusion.group_order import InnerOrder
from fuseline.passes.fusion.group_owners import GroupOwners
from fuseline.passes.fusion.node import Node
from fuseline.passes.fusion.rule import Merge

Judge: TypeAlias = Callable[[Merge], Outcome]
"""What rules and prices say of a merge."""


class InnerMerging:
    """Merges the groups of `parts`, each before those that read from it, as long as `judge` finds one legal; `parts`
    says which parts each may be in. No path from one part to itself may lead through other groups. `words` are the
    answers on the edges that are inside a group in the end."""

    def __init__(
        self, parts: Mapping[Group, range], judge: Judge, ranks: CandidateRanks, target: TargetDescription
    ) -> None:
        self._parts, self._judge, self._ranks, self._target = dict(parts), judge, ranks, target
        self._group_of = GroupOwners(parts)
        self._order = InnerOrder(parts, self._group_of)
        self._queue: CandidateQueue[tuple[Merge, Outcome | None]] = CandidateQueue()
        self.words: dict[tuple[Node, Node], Outcome] = {}

    def run(self) -> list[Group]:
        """The groups that are left, those of the first part first."""
        for group in self._parts:
            self._examine_consumers(group)
        while self._queue:
            _, (merge, outcome) = self._queue.pop()
            if merge.producer in self._parts and merge.consumer in self._parts:
                self._step(merge, outcome)
        return sorted(self._parts, key=lambda group: (self._parts[group].start, group.key))

    def _step(self, merge: Merge, outcome: Outcome | None) -> None:
        """Ask about a candidate that could be the next, or make one that is."""
        if outcome is None:
            judged = self._judge(merge)
            if judged.group is not None:
                self._queue.push(self._ranks.of(merge, judged), (merge, judged))
        elif self._order.between((merge.producer, merge.consumer)) is None:
            self._apply(merge, outcome)

    def _apply(self, merge: Merge, outcome: Outcome) -> None:
        pair, group = (merge.producer, merge.consumer), outcome.group
        assert group is not None
        for read in merge.reads:
            assert read.producer is not None
            self.words[read.producer, read.consumer] = outcome
        self._order.merge(pair, group)
        self._parts[group] = _common(self._parts.pop(pair[0]), self._parts.pop(pair[1]))
        self._group_of.own(group, group.form())
        for other in self._order.producers(group):
            self._examine(other, group)
        self._examine_consumers(group)

    def _examine_consumers(self, group: Group) -> None:
        for other in self._order.consumers(group):
            self._examine(group, other)

    def _examine(self, producer: Group, consumer: Group) -> None:
        """Put a candidate into the queue where both may be in one part."""
        if _common(self._parts[producer], self._parts[consumer]) and self._order.between((producer, consumer)) is None:
            merge = Merge(producer, consumer, self._target)
            self._queue.push(self._ranks.earliest(merge), (merge, None))


def _common(one: range, other: range) -> range:
    return range(max(one.start, other.start), min(one.stop, other.stop))
