"""Merging two groups at a time: what is legal by the structure of the graph, by a rule and by the target, and pays.

Candidates wait in a queue by profit (`candidate_ranks.py`). An answer stays valid until one of its groups changes; a
merge re-examines the neighbours of the new group only. Rules are asked when a candidate could be the next: most of them
are gone by then, for one of their groups has become another.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Sequence

from fuseline.ir.target_description import TargetDescription
from fuseline.passes.fusion.candidate_queue import CandidateQueue
from fuseline.passes.fusion.candidate_ranks import CandidateRanks
from fuseline.passes.fusion.decision import Legal, NotApplicable, WhyNot
from fuseline.passes.fusion.edge_records import Outcome
from fuseline.passes.fusion.forbidding import Forbidding, forbidden
from fuseline.passes.fusion.graph import FusionGraph
from fuseline.passes.fusion.group import Group
from fuseline.passes.fusion.group_order import GroupOrder
from fuseline.passes.fusion.group_owners import GroupOwners
from fuseline.passes.fusion.limits import DispatchLimits, Veto, no_veto
from fuseline.passes.fusion.node import Node
from fuseline.passes.fusion.parallelism import loses_it_for_few, loses_parallelism
from fuseline.passes.fusion.profit import ANSWERED, CONVERSION, QUANTIZES, unprofitable, weigh
from fuseline.passes.fusion.rule import FusionRule, Merge, unmergeable
from fuseline.passes.fusion.rule_choice import JOINS
from fuseline.passes.fusion.starting_groups import StartingGroup, with_single_nodes
from fuseline.passes.fusion.stored_rows import STORED_BYTES
from fuseline.passes.fusion.streamed_softmax import online_reductions
from fuseline.passes.fusion.walk_epilogue import walk_refusal, walk_takes

Pair = tuple[Group, Group]

OUT_OF_FUEL = WhyNot("out-of-fuel", "the compile was given fuel for fewer merges", "")


def _misses_bound(word: Outcome) -> bool:
    """Whether a refusal is for want of a bound."""
    return isinstance(word.answer, WhyNot) and word.answer.code == "unbounded-size"


def _is_nearer(word: Outcome, told: Outcome) -> bool:
    """Whether a refusal says more than an earlier rule's: that the merge can be made, and by how much it is slower. Not
    more than that a bound is missing, which the last rules go by."""
    prices = [isinstance(one.answer, WhyNot) and one.answer.code == "unprofitable" for one in (word, told)]
    return prices == [True, False] and not _misses_bound(told)


def _ends(merge: Merge) -> Iterator[Node]:
    """The two ops of the first edge of a merge."""
    for read in merge.reads:
        if read.producer is not None:
            yield from (read.producer, read.consumer)
            return


class PairMerging:
    """Merges two groups at a time under `rules` for `target`; `level` is `default` or `aggressive`.

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
        self.ranks = CandidateRanks(graph, rules, target)
        self.queue: CandidateQueue[tuple[Merge, Outcome | None]] = CandidateQueue()
        self.side_by_side: list[tuple[str, Node, Node]] = []
        self.kept_apart: list[tuple[str, Group, Group, WhyNot]] = []
        self.streams = online_reductions(graph, target)
        self.last_rules = frozenset(rule.name for rule in rules if rule.last)
        self.asks_last = False

    def _drain(self) -> None:
        while self.queue:
            rank, (merge, outcome) = self.queue.pop()
            if merge.producer not in self.alive or merge.consumer not in self.alive:
                continue
            if outcome is None:
                self._settle(merge, bytes_saved=-rank[1])
            else:
                self._apply((merge.producer, merge.consumer), outcome)

    def _ask_last_rules(self) -> None:
        """Go over what is apart for want of a bound once more, with the rules that come last."""
        self.asks_last = bool(self.last_rules)
        if self.asks_last:
            for group in sorted(self.alive, key=lambda group: group.members[0].position):
                for other in self.order.consumers(group):
                    if self._is_left(Merge(group, other, self.target)):
                        self._examine(group, other)
            self._drain()

    def _is_left(self, merge: Merge) -> bool:
        """Whether the last rules are asked about a merge: all others were, and miss a bound."""
        if not self.asks_last:
            return False
        words = [self.edge_words.get((read.producer, read.consumer)) for read in merge.reads if read.producer]
        return any([word is not None and (word.rule in self.last_rules or _misses_bound(word)) for word in words])

    def _examine_consumers(self, group: Group) -> None:
        for other in self.order.consumers(group):
            self._examine(group, other)

    def _fueled(self, rule: str, about: Iterable[Node]) -> bool:
        """Whether there is fuel for a merge that is about these nodes; it is spent then."""
        fuel = self.graph.fuel
        if fuel is None:
            return True
        if not fuel.left("fusion"):
            return False
        nodes = dict.fromkeys(about)
        names = dict.fromkeys(name for node in nodes for name in node.nodes)
        fuel.spend("fusion", rule, tuple(node.name for node in nodes), tuple(names))
        return True

    def _replace(self, groups: Sequence[Group], group: Group) -> None:
        """`groups` are one group from now on."""
        self.order.merge(groups, group)
        self.alive.difference_update(groups)
        self.alive.add(group)
        self.group_of.own(group, group.form())

    def _examine(self, producer: Group, consumer: Group) -> None:
        """Put a candidate into the queue where it comes at the earliest; whoever pops it asks the rules."""
        merge = Merge(producer, consumer, self.target)
        refusal = self._structural(merge)
        if refusal is not None:
            self._note(merge, Outcome("structure", refusal))
            return
        self.queue.push(self.ranks.earliest(merge), (merge, None))

    def _settle(self, merge: Merge, bytes_saved: int) -> None:
        """Ask the rules about a candidate, and queue it again where its answer says."""
        outcome = self._ask_rules(merge, bytes_saved)
        self._note(merge, outcome)
        if outcome.group is not None:
            self.queue.push(self.ranks.of(merge, outcome), (merge, outcome))

    def _note(self, merge: Merge, outcome: Outcome) -> None:
        """The last word so far on the edges between two groups."""
        for read in merge.reads:
            assert read.producer is not None
            self.edge_words[read.producer, read.consumer] = outcome

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
            if (rule.last and not self._is_left(merge)) or not walk_takes(merge, rule.shape):
                continue
            answer = given[rule.name] if rule.name in given else rule.matches(merge, self.graph)
            if isinstance(answer, NotApplicable):
                continue
            if isinstance(answer, Legal):
                accepted = self._accept(merge, rule, answer, bytes_saved)
                if accepted.group is not None:
                    return accepted
                answer = accepted.answer
            word = Outcome(rule.name, answer)
            told = word if told is None or rule.last or _is_nearer(word, told) else told
        return told or Outcome(
            "none", WhyNot("no-rule", "no fusion rule covers this pair of ops", merge.consumer.root.name)
        )

    def _accept(self, merge: Merge, rule: FusionRule, answer: Legal, saved: int) -> Outcome:
        group = merge.formed(rule.shape)
        saved -= int(answer.numbers.get(STORED_BYTES, 0))
        refusal = self.limits.refusal(group) or self._costs_time(group, merge, saved, answer)
        if refusal is not None:
            return Outcome(rule.name, refusal)
        return Outcome(rule.name, answer, group, saved)

    def _costs_time(self, group: Group, merge: Merge, bytes_saved: int, answer: Legal) -> WhyNot | None:
        waived = self.level == "aggressive" and QUANTIZES in answer.numbers
        longer = {} if waived else {name: answer.numbers[name] for name in ANSWERED if name in answer.numbers}
        merged = (merge.producer, merge.consumer)
        serial = loses_parallelism(group, merged, self.graph, self.target) or loses_it_for_few(
            group, merged, self.target
        )
        return serial or unprofitable(
            group, merge, self.graph, bytes_saved, self.level, longer, converts=CONVERSION in answer.numbers
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

    def _cycle(self, groups: Sequence[Group]) -> WhyNot | None:
        """The refusal of groups with a node outside of them on a path between them."""
        between = self.order.between(groups)
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
        if not self._fueled(outcome.rule, _ends(Merge(*pair, self.target))):
            self._note(Merge(*pair, self.target), Outcome(outcome.rule, OUT_OF_FUEL))
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
