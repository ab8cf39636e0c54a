"""Which merge comes next: what saves more bytes, and what nothing stands in the way of.

Moved data that a root reads where it lies comes first: it costs nothing, and as the tail of another group it would have
to be stored. Ties are broken by canonical ids, so that the result does not depend on the order of the program.
"""

from __future__ import annotations

from collections.abc import Sequence

from fuseline.ir.target_description import TargetDescription
from fuseline.passes.fusion.candidate_queue import Rank
from fuseline.passes.fusion.edge_records import Outcome
from fuseline.passes.fusion.graph import FusionGraph
from fuseline.passes.fusion.group import Group
from fuseline.passes.fusion.parallelism import becomes_serial
from fuseline.passes.fusion.profit import weigh
from fuseline.passes.fusion.root_depths import root_depths
from fuseline.passes.fusion.rule import FusionRule, Merge
from fuseline.passes.fusion.stacked_concats import only_stacks
from fuseline.passes.fusion.waiting_concats import waits_for_others


class CandidateRanks:
    """The ranks of merges of groups of `graph` that `rules` judge for `target`; less comes first."""

    def __init__(self, graph: FusionGraph, rules: Sequence[FusionRule], target: TargetDescription) -> None:
        self.graph, self.target = graph, target
        self.depths = root_depths(graph.nodes)
        self._rules = {rule.name: (number, rule.late) for number, rule in enumerate(rules)}

    def earliest(self, merge: Merge) -> Rank:
        """Where a merge comes at the earliest, whatever the rules say of it."""
        producer, consumer = merge.producer, merge.consumer
        first = 0 if consumer.heavy and producer.moves else 2 if self._waits(consumer) else 1
        saved = weigh(merge, self.graph).bytes_saved
        return first, -saved, 0, self._waiting(merge), producer.key, consumer.key

    def of(self, merge: Merge, outcome: Outcome) -> Rank:
        """Where a merge comes that `outcome` finds legal.

        Moved data that a root reads in place; what keeps the threads busy; what a root evaluates in place, or leaves to
        one thread, or a concat that is memory or waits for others, or a rule is late. Then what saves more bytes, the
        earlier rule, and what is made last of what the consumer reads: of two parts of a sum, the other one may then be
        an arm beside what is made before.
        """
        assert outcome.group is not None
        producer, consumer = merge.producer, merge.consumer
        order, late = self._rules.get(outcome.rule, (len(self._rules), False))
        if consumer.heavy and outcome.group.inlines(producer):
            first = 0 if producer.moves else 2
        else:
            waits = late or self._waits(consumer) or waits_for_others(producer, consumer)
            first = 2 if waits or becomes_serial(outcome.group, (producer, consumer), self.target) else 1
        return first, -outcome.bytes_saved, order, self._waiting(merge), producer.key, consumer.key

    def _waiting(self, merge: Merge) -> int:
        """How many roots later than what a merge is about the last is made that its consumer reads."""
        made = max((self.depths[read.producer] for read in merge.reads if read.producer), default=0)
        members = set(merge.consumer.members)
        others = {read.producer for member in members for read in member.reads} - members
        return max((self.depths[other] for other in others if other is not None), default=made) - made

    def _waits(self, consumer: Group) -> bool:
        """Whether others are merged before it: a concat that is memory and no more."""
        return only_stacks(consumer)
