"""The driver: starts with one group per node and merges until no candidate is both legal and profitable.

    pair_merging.py       two groups with an edge between them, by profit, to the fixed point
    softmax_merging.py    softmaxes that are still in pieces; then pairs again
    chain_merging.py      chains that only the limit of roots keeps in pieces, cut into fewer
    arms_merging.py       groups without an edge between them, side by side

Every edge ends with one decision record.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass, field

from fuseline.ir.target_description import TargetDescription
from fuseline.passes.fusion.arms_merging import REGION, ArmsMerging
from fuseline.passes.fusion.decision import Legal
from fuseline.passes.fusion.edge_records import Outcome, apart_records, arms_record, edge_record
from fuseline.passes.fusion.graph import FusionGraph
from fuseline.passes.fusion.group import Group
from fuseline.passes.fusion.limits import Veto, no_veto
from fuseline.passes.fusion.node import Node
from fuseline.passes.fusion.rule import FusionRule
from fuseline.passes.fusion.starting_groups import StartingGroup, no_more_groups
from fuseline.passes.fusion.streamed_loops import OnlineReductionNodes
from fuseline.report.records import Decision

IN_A_REGION = Outcome(REGION, Legal())


@dataclass
class Partition:
    """The groups in canonical order, the group of each node, a record for every edge, and the softmaxes that could
    stream."""

    groups: list[Group]
    group_of: dict[Node, Group]
    decisions: list[Decision] = field(default_factory=list[Decision])
    streams: Sequence[OnlineReductionNodes] = ()


class Driver(ArmsMerging):
    """Partitions one fusion graph; the arguments are those of `PairMerging`."""

    def run(self) -> Partition:
        """Merge to the fixed point."""
        for group in sorted(self.alive, key=lambda group: group.members[0].position):
            self._examine_consumers(group)
        self._drain()
        self._stream_softmaxes()
        self._cut_chains()
        self._ask_last_rules()
        self._join_regions()
        self._join_arms()
        groups = [group.plain for group in sorted(self.alive, key=lambda group: group.key)]
        group_of = {node: group for group in groups for node in group.members}
        return Partition(groups, group_of, self._records(), self.streams)

    def _records(self) -> list[Decision]:
        records = [arms_record(*words) for words in self.side_by_side] + apart_records(self.kept_apart, self.group_of)
        for node in self.graph.nodes:
            for consumer in dict.fromkeys(read.consumer for read in node.readers):
                together = self.group_of[node] is self.group_of[consumer]
                words = self.edge_words.get((node, consumer), IN_A_REGION)
                records.append(edge_record(node, consumer, words, together=together))
        return sorted(records, key=lambda record: (record.producer, record.consumer))


def partition(
    graph: FusionGraph,
    rules: Sequence[FusionRule],
    target: TargetDescription,
    level: str = "default",
    veto: Veto = no_veto,
    joins: Collection[str] | None = None,
    start: Sequence[StartingGroup] = (),
) -> Partition:
    """Partition `graph`; equal graphs written in another order give equal partitions. `veto`: what the target refuses
    for reasons of its own; `joins`, `start`: see `PairMerging`."""
    return no_more_groups(lambda start: Driver(graph, rules, target, level, veto, joins, start).run(), graph, start)
