"""The driver: starts with one group per node and merges until no candidate is both legal and profitable.

Candidates wait in a queue by profit, then by canonical ids, so that the result does not depend on the order of the
program. Moved data that a root reads where it lies comes first: it costs nothing, and as the tail of another group it
would have to be stored. An answer stays valid until one of its groups changes; a merge re-examines the neighbours of
the new group only. Rules are asked when a candidate could be the next: most of them are gone by then, for one of their
groups has become another. Every edge ends with one decision record.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass, field

from fuseline.ir.target_description import TargetDescription
from fuseline.passes.fusion.candidate_queue import CandidateQueue, Rank
from fuseline.passes.fusion.decision import Legal, NotApplicable, WhyNot
from fuseline.passes.fusion.edge_records import Outcome, apart_records, arms_record, edge_record
from fuseline.passes.fusion.forbidding import Forbidding, forbidden
from fuseline.passes.fusion.graph import FusionGraph
from fuseline.passes.fusion.group import Group
from fuseline.passes.fusion.group_order import GroupOrder
from fuseline.passes.fusion.group_owners import GroupOwners
from fuseline.passes.fusion.horizontal import CONCAT_SLICES, HorizontalMerge, concat_merge, level_merges
from fuseline.passes.fusion.limits import DispatchLimits, Veto, no_veto
from fuseline.passes.fusion.merging import joined
from fuseline.passes.fusion.node import Node
from fuseline.passes.fusion.profit import (
    EVALUATION_NS,
    becomes_serial,
    costs_more,
    loses_parallelism,
    unprofitable,
    weigh,
    weigh_reads,
)
from fuseline.passes.fusion.rule import FusionRule, Merge, unmergeable
from fuseline.passes.fusion.rule_choice import JOINS
from fuseline.passes.fusion.starting_groups import StartingGroup, no_more_groups, with_single_nodes
from fuseline.passes.fusion.streamed_loops import OnlineReductionNodes
from fuseline.passes.fusion.streamed_softmax import (
    STREAMED_SOFTMAX,
    Candidate,
    candidates,
    illegal,
    online_reductions,
    scores_of,
)
from fuseline.passes.fusion.walk_epilogue import walk_refusal
from fuseline.report.records import Decision

Pair = tuple[Group, Group]

REGION = "region"
"""What stands for a rule where ops are in one region from before the round."""

IN_A_REGION = Outcome(REGION, Legal())


@dataclass
class Partition:
    """The groups in canonical order, the group of each node, a record for every edge, and the softmaxes that could
    stream."""

    groups: list[Group]
    group_of: dict[Node, Group]
    decisions: list[Decision] = field(default_factory=list[Decision])
    streams: Sequence[OnlineReductionNodes] = ()


class Driver:
    """Partitions one fusion graph under `rules` for `target`; `level` is `default` or `aggressive`.

    `joins`: those of `rule_choice.JOINS` that are done; None for all where there are rules. `start`: the regions of an
    earlier round, which this one extends or merges.
    """

    def __init__(
        self,
        graph: FusionGraph,
        rules: Sequence[FusionRule],
        target: TargetDescription,
        level: str = "default",
        veto: Veto = no_veto,
        joins: Collection[str] | None = None,
        start: Sequence[StartingGroup] = (),
    ) -> None:
        self.graph, self.rules, self.target, self.level = graph, rules, target, level
        self.limits = DispatchLimits(graph, target, veto)
        self.joins = joins if joins is not None else JOINS if rules else ()
        self.forbidding = Forbidding(rules, graph, target)
        self.start = start
        self.closed = frozenset(group for region in start if region.closed for group in region.groups)
        groups = with_single_nodes(graph, start)
        self.group_of = GroupOwners(groups)
        self.alive = set(groups)
        self.order = GroupOrder(groups, self.group_of)
        self.edge_words: dict[tuple[Node, Node], Outcome] = {}
        self.queue: CandidateQueue[tuple[Merge, Outcome | None]] = CandidateQueue()
        self.side_by_side: list[tuple[str, Node, Node]] = []
        self.kept_apart: list[tuple[str, Group, Group, WhyNot]] = []
        self.streams = online_reductions(graph, target)

    def run(self) -> Partition:
        """Merge to the fixed point."""
        for group in sorted(self.alive, key=lambda group: group.members[0].position):
            self._examine_consumers(group)
        self._drain()
        self._stream_softmaxes()
        self._join_regions()
        self._join_arms()
        groups = [group.plain for group in sorted(self.alive, key=lambda group: group.key)]
        group_of = {node: group for group in groups for node in group.members}
        return Partition(groups, group_of, self._records(), self.streams)

    def _drain(self) -> None:
        while self.queue:
            rank, (merge, outcome) = self.queue.pop()
            if merge.producer not in self.alive or merge.consumer not in self.alive:
                continue
            if outcome is None:
                self._settle(merge, bytes_saved=-rank[1])
            else:
                self._apply((merge.producer, merge.consumer), outcome)

    def _examine_consumers(self, group: Group) -> None:
        for other in self.order.consumers(group):
            self._examine(group, other)

    def _replace(self, parts: Sequence[Group], group: Group) -> None:
        """`parts` are one group from now on."""
        self.order.merge(parts, group)
        self.alive.difference_update(parts)
        self.alive.add(group)
        self.group_of.own(group, group.form())

    def _examine(self, producer: Group, consumer: Group) -> None:
        """Put a candidate into the queue where it comes at the earliest; whoever pops it asks the rules."""
        merge = Merge(producer, consumer, self.target)
        refusal = self._structural(merge)
        if refusal is not None:
            self._note(merge, Outcome("structure", refusal))
            return
        first = 0 if consumer.heavy and producer.moves else 1
        saved = weigh(merge, self.graph).bytes_saved
        self.queue.push((first, -saved, 0, producer.key, consumer.key), (merge, None))

    def _settle(self, merge: Merge, bytes_saved: int) -> None:
        """Ask the rules about a candidate, and queue it again where its answer says."""
        outcome = self._ask_rules(merge, bytes_saved)
        self._note(merge, outcome)
        if outcome.group is not None:
            self.queue.push(self._priority(merge.producer, merge.consumer, outcome), (merge, outcome))

    def _note(self, merge: Merge, outcome: Outcome) -> None:
        """The last word so far on the edges between two groups."""
        for read in merge.reads:
            assert read.producer is not None
            self.edge_words[read.producer, read.consumer] = outcome

    def _priority(self, producer: Group, consumer: Group, outcome: Outcome) -> Rank:
        """Less comes first.

        Moved data that a root reads in place; what keeps the threads busy; what a root evaluates in place, or leaves to
        one thread. Then what saves more bytes, and the earlier rule.
        """
        assert outcome.group is not None
        if consumer.heavy and outcome.group.inlines(producer):
            first = 0 if producer.moves else 2
        else:
            first = 2 if becomes_serial(outcome.group, (producer, consumer), self.target) else 1
        order = next((i for i, rule in enumerate(self.rules) if rule.name == outcome.rule), len(self.rules))
        return first, -outcome.bytes_saved, order, producer.key, consumer.key

    def _judge(self, merge: Merge) -> Outcome:
        """The rules' answer where the structure of the graph permits the merge."""
        refusal = self._structural(merge)
        if refusal is not None:
            return Outcome("structure", refusal)
        return self._ask_rules(merge, weigh(merge, self.graph).bytes_saved)

    def _ask_rules(self, merge: Merge, bytes_saved: int) -> Outcome:
        """What a rule forbids; else the first rule that finds the merge legal, the target permitting; else the most
        telling refusal."""
        given = self.forbidding.answers(merge)
        told = forbidden(given)
        if told is not None:
            return told
        for rule in self.rules:
            answer = given[rule.name] if rule.name in given else rule.matches(merge, self.graph)
            if isinstance(answer, NotApplicable):
                continue
            if isinstance(answer, Legal):
                accepted = self._accept(merge, rule, answer, bytes_saved)
                if accepted.group is not None:
                    return accepted
                answer = accepted.answer
            told = told or Outcome(rule.name, answer)
        return told or Outcome(
            "none", WhyNot("no-rule", "no fusion rule covers this pair of ops", merge.consumer.root.name)
        )

    def _accept(self, merge: Merge, rule: FusionRule, answer: Legal, saved: int) -> Outcome:
        group = merge.formed(rule.shape)
        refusal = self.limits.refusal(group) or self._costs_time(group, merge, saved, answer)
        if refusal is not None:
            return Outcome(rule.name, refusal)
        return Outcome(rule.name, answer, group, saved)

    def _costs_time(self, group: Group, merge: Merge, bytes_saved: int, answer: Legal) -> WhyNot | None:
        evaluated = answer.numbers.get(EVALUATION_NS, 0.0)
        return loses_parallelism(group, (merge.producer, merge.consumer), self.target) or unprofitable(
            group, merge, self.graph, bytes_saved, self.level, evaluated
        )

    def _structural(self, merge: Merge) -> WhyNot | None:
        return (
            self._complete_region(merge)
            or unmergeable(merge.producer)
            or unmergeable(merge.consumer)
            or walk_refusal(merge)
            or self._cycle((merge.producer, merge.consumer))
        )

    def _complete_region(self, merge: Merge) -> WhyNot | None:
        """The refusal of a region that stays as it is."""
        whole = next((group for group in (merge.producer, merge.consumer) if group in self.closed), None)
        return WhyNot("region", "it is a region of several arms already", whole.root.name) if whole else None

    def _cycle(self, parts: Sequence[Group]) -> WhyNot | None:
        """The refusal of groups with a node outside of them on a path between them."""
        between = self.order.between(parts)
        return (
            WhyNot("cycle", f"{between.root.name} lies on a path between them", between.root.name)
            if between is not None
            else None
        )

    def _apply(self, pair: Pair, outcome: Outcome) -> None:
        group = outcome.group
        assert group is not None
        if self._cycle(pair) is not None:
            self._examine(*pair)
            return
        for read in pair[1].reads_from(pair[0]):
            assert read.producer is not None
            self.edge_words[read.producer, read.consumer] = outcome
        self._replace(pair, group)
        self._examine_around(group)

    def _examine_around(self, group: Group) -> None:
        for other in self.order.producers(group):
            self._examine(other, group)
        self._examine_consumers(group)

    # softmaxes over loops of any length -------------------------------------------------------------------------------

    def _stream_softmaxes(self) -> None:
        """Softmaxes that are still in pieces become one group each, where the target can stream them; then the usual
        merges go on."""
        for stream in self.streams:
            self._stream_softmax(stream)
        self._drain()

    def _stream_softmax(self, stream: OnlineReductionNodes) -> None:
        if STREAMED_SOFTMAX not in self.joins:
            return
        scores = scores_of(stream)
        for candidate in candidates(
            stream,
            [self.group_of[node] for node in stream.nodes],
            self.group_of[scores] if scores is not None else None,
        ):
            outcome = self._judge_stream(candidate)
            for read in candidate.reads:
                assert read.producer is not None
                self.edge_words[read.producer, read.consumer] = outcome
            if outcome.group is not None:
                self._replace(candidate.parts, outcome.group)
                self._examine_around(outcome.group)
                return

    def _judge_stream(self, candidate: Candidate) -> Outcome:
        """Whether the parts of a softmax may be one group, and whether that pays."""
        parts, group = candidate.parts, candidate.group
        cycle = self._cycle(parts)
        if cycle is not None:
            return Outcome("structure", cycle)
        banned = self.forbidding.together(parts)
        if banned is not None:
            return banned
        saved = weigh_reads(candidate.reads, parts, self.graph).bytes_saved
        refusal = (
            illegal(candidate, self.target) or self.limits.refusal(group) or self._stream_costs_time(candidate, saved)
        )
        if refusal is not None:
            return Outcome(STREAMED_SOFTMAX, refusal)
        return Outcome(
            STREAMED_SOFTMAX,
            Legal({"scratch_bytes": float(group.scratch_bytes or 0), "grid_loops": float(len(group.grid))}),
            group,
            saved,
        )

    def _stream_costs_time(self, candidate: Candidate, bytes_saved: int) -> WhyNot | None:
        parts, group = candidate.parts, candidate.group
        serial = loses_parallelism(group, parts, self.target)
        return serial or costs_more(group, parts, self.graph, self.target, bytes_saved, self.level)

    # arms -------------------------------------------------------------------------------------------------------------

    def _join_regions(self) -> None:
        """What was one dispatch before this round is one again, whatever its arms have merged with."""
        for region in self.start:
            pieces = list(dict.fromkeys(self.group_of[group.members[0]] for group in region.groups))
            arms = tuple(arm for piece in pieces for arm in (piece.arms or (piece,)))
            if len(pieces) > 1 and self._rejoins(arms, pieces, region):
                self._join(HorizontalMerge(REGION, arms))

    def _rejoins(self, arms: tuple[Group, ...], pieces: Sequence[Group], region: StartingGroup) -> bool:
        """Whether the arms that a region has come to may be one dispatch: those that it had may."""
        if set(arms) <= set(region.groups):
            return True
        few = len(arms) <= max(len(region.groups), self.target.arms_limit)
        return few and self._cycle(pieces) is None and self._refused_whole(HorizontalMerge(REGION, arms)) is None

    def _join_arms(self) -> None:
        """Groups that do not depend on each other become arms: first those that write into one concat, then level by
        level."""
        for group in self._joinable() if CONCAT_SLICES in self.joins else ():
            join = self._restricted(concat_merge(group, self.order)) if group in self.alive else None
            if isinstance(join, WhyNot):
                self._tell(group, Outcome(CONCAT_SLICES, join))
            elif join is not None:
                refused = self._refused_whole(join)
                if refused is None:
                    self._join(join)
                else:
                    self._tell(group, refused)
        for join in level_merges(self._joinable(), self.order, self.target, self._takes_arms, self.joins):
            kept = self._restricted(join)
            if isinstance(kept, HorizontalMerge) and (kept is join or self._takes_arms(kept)):
                self._join(kept)

    def _refused_whole(self, join: HorizontalMerge) -> Outcome | None:
        """Why the parts of a concat, or of a region whose arms have grown, cannot be one dispatch, None where they
        can."""
        whole = joined(join.groups)
        refusal = self.limits.bindings(whole) or self.limits.arms(join) or self.limits.refusal(whole)
        return Outcome(join.rule, refusal) if refusal is not None else self.forbidding.together(join.groups)

    def _takes_arms(self, join: HorizontalMerge) -> bool:
        """Whether the target takes groups that no edge joins in one dispatch; where it does not, the record says
        why."""
        refusal = self.limits.veto(join.groups)
        refused = Outcome(join.rule, refusal) if refusal is not None else self.forbidding.together(join.groups)
        if refused is not None and isinstance(refused.answer, WhyNot):
            self.kept_apart.append((refused.rule, join.groups[0], join.groups[-1], refused.answer))
        return refused is None

    def _joinable(self) -> list[Group]:
        """The groups that may become arms, in canonical order."""
        return sorted(self.alive - self.closed, key=lambda group: group.key)

    def _restricted(self, join: HorizontalMerge | WhyNot | None) -> HorizontalMerge | WhyNot | None:
        """What of a join a plan permits: all of it where there is none."""
        return join

    def _tell(self, consumer: Group, outcome: Outcome) -> None:
        """The last word on every edge into `consumer`."""
        for read in consumer.outside_reads():
            if read.producer is not None:
                self.edge_words[read.producer, read.consumer] = outcome

    def _join(self, join: HorizontalMerge) -> None:
        parts = list(dict.fromkeys(self.group_of[arm.members[0]] for arm in join.groups))
        cycle = self._cycle(parts)
        if cycle is not None:
            self._tell(join.groups[-1], Outcome(join.rule, cycle))
            return
        group = joined(join.groups)
        outcome = Outcome(join.rule, Legal())
        for arm in join.groups:
            for read in arm.outside_reads():
                if read.producer in group.grid_loop_of or read.producer in group.inlined:
                    self.edge_words[read.producer, read.consumer] = outcome
        for arm in join.groups[1:]:
            self.side_by_side.append((join.rule, join.groups[0].root, arm.root))
        self._replace(parts, group)

    # records ----------------------------------------------------------------------------------------------------------

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
    for reasons of its own; `joins`, `start`: see `Driver`."""
    return no_more_groups(lambda start: Driver(graph, rules, target, level, veto, joins, start).run(), graph, start)
