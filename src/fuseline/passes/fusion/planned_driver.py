"""The driver under a fusion plan: its own merges, so that every rule and limit holds, but inside the sets that the plan
draws.

A plan decides what is worth it, never what is legal. Its groups are built first as the default would build them, in the
same order, so that a plan that was emitted gives its partition back; what is then still in pieces is joined as arms, or
merged whatever it costs. A set that cannot be one group is refused with the pair of ops and the reason.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import replace
from itertools import combinations

from fuseline.analysis.structured import Kind
from fuseline.errors import FuselineError
from fuseline.ir.rounds import rounds
from fuseline.ir.target_description import TargetDescription
from fuseline.passes.fusion.decision import Forbid, Legal, WhyNot
from fuseline.passes.fusion.driver import Driver, Partition, partition
from fuseline.passes.fusion.edge_records import Outcome
from fuseline.passes.fusion.graph import FusionGraph
from fuseline.passes.fusion.group import Group
from fuseline.passes.fusion.horizontal import HorizontalMerge, concat_merge
from fuseline.passes.fusion.limits import Veto, no_veto
from fuseline.passes.fusion.merging import joined
from fuseline.passes.fusion.node import Node
from fuseline.passes.fusion.pair_merging import Pair
from fuseline.passes.fusion.plan_constraints import PlanConstraints, PlannedSet
from fuseline.passes.fusion.rule import FusionRule, Merge, unfusable
from fuseline.passes.fusion.starting_groups import StartingGroup, no_more_groups
from fuseline.passes.fusion.streamed_softmax import Candidate

PLAN = "plan"
"""What stands for a rule where the plan decided."""


class PlannedDriver(Driver):
    """Partitions one fusion graph as `constraints` ask; raises E0703 for a set that cannot be one group."""

    def __init__(
        self,
        graph: FusionGraph,
        rules: Sequence[FusionRule],
        target: TargetDescription,
        level: str,
        constraints: PlanConstraints,
        veto: Veto = no_veto,
        joins: Collection[str] | None = None,
        start: Sequence[StartingGroup] = (),
    ) -> None:
        super().__init__(graph, rules, target, level, veto, joins, start)
        self.constraints = constraints
        self.wanted = frozenset(node for planned in constraints.sets for node in planned.nodes)
        self.paid_for: frozenset[Node] = frozenset()

    def run(self) -> Partition:
        """Forced ops first, before anything else takes them; then as by default, inside the sets."""
        for planned in self.constraints.sets:
            if planned.extendable:
                self._merge_pieces(planned)
        return super().run()

    # what the plan restricts ------------------------------------------------------------------------------------------

    def _ask_rules(self, merge: Merge, bytes_saved: int) -> Outcome:
        outcome = super()._ask_rules(merge, bytes_saved)
        refusal = self.constraints.refusal(merge.producer, merge.consumer) if outcome.group is not None else None
        return Outcome(PLAN, refusal) if refusal is not None else outcome

    def _costs_time(self, group: Group, merge: Merge, bytes_saved: int, answer: Legal) -> WhyNot | None:
        wanted = any(node in self.paid_for for node in merge.producer.members) and any(
            node in self.paid_for for node in merge.consumer.members
        )
        return None if wanted else super()._costs_time(group, merge, bytes_saved, answer)

    def _judge_stream(self, candidate: Candidate) -> Outcome:
        refusals = (self.constraints.refusal(first, second) for first, second in combinations(candidate.joined, 2))
        refusal = next((why for why in refusals if why is not None), None)
        return Outcome(PLAN, refusal) if refusal is not None else super()._judge_stream(candidate)

    def _stream_costs_time(self, candidate: Candidate, bytes_saved: int) -> WhyNot | None:
        wanted = all(any(node in self.paid_for for node in merged.members) for merged in candidate.joined)
        return None if wanted else super()._stream_costs_time(candidate, bytes_saved)

    def _opens(self, group: Group) -> bool:
        """What a plan puts together is never taken apart."""
        return super()._opens(group) and not any(node in self.wanted for node in group.members)

    def _joinable(self) -> list[Group]:
        return [group for group in super()._joinable() if self.constraints.free(group)]

    def _restricted(self, join: HorizontalMerge | WhyNot | None) -> HorizontalMerge | WhyNot | None:
        if not isinstance(join, HorizontalMerge):
            return join
        kept, refused = list[Group](), list[WhyNot]()
        for group in reversed(join.groups):  # the concat that the others write into is the last
            clash = next(
                ((other, why) for other in kept if (why := self.constraints.refusal(group, other)) is not None), None
            )
            if clash is None:
                kept.insert(0, group)
            else:
                refused.append(clash[1])
                self.kept_apart.append((PLAN, group, *clash))
        return replace(join, groups=tuple(kept)) if len(kept) > 1 else refused[-1]

    # what the plan asks for -------------------------------------------------------------------------------------------

    def _join_arms(self) -> None:
        """First the sets: pieces that cannot run side by side are merged whatever it costs, then all are joined; then
        the rest by default."""
        for planned in self.constraints.sets:
            if self._unjoinable(self._pieces(planned)) is not None:
                self._merge_pieces(planned)
        self._drain()
        for planned in self.constraints.sets:
            self._complete(planned)
        super()._join_arms()

    def _complete(self, planned: PlannedSet) -> None:
        """Make the pieces of a set the arms of one group; raises E0703 where they cannot be."""
        pieces = self._pieces(planned)
        if len(pieces) == 1:
            return
        refusal = self._unjoinable(pieces)
        if refusal is None:
            self._join(HorizontalMerge(PLAN, tuple(arm for piece in pieces for arm in (piece.arms or (piece,)))))
        elif not planned.optional:
            self._refuse(planned, refusal)

    def _pieces(self, planned: PlannedSet) -> list[Group]:
        """The groups of a set's nodes in canonical order; a concat that others may write into comes last."""
        return sorted(
            {self.group_of[node] for node in planned.nodes}, key=lambda group: (_is_lone_concat(group), group.key)
        )

    def _merge_pieces(self, planned: PlannedSet) -> None:
        self.paid_for = frozenset(planned.nodes)
        for _ in rounds("merging what a plan asks for", most=len(planned.nodes)):  # each merge leaves a piece less
            candidates = self._candidates(self._pieces(planned))
            if not candidates or (self.graph.fuel is not None and not self.graph.fuel.left("fusion")):
                break
            self._apply(*min(candidates, key=lambda one: self.ranks.of(Merge(*one[0], self.target), one[1])))
        for stream in self.streams:
            if self.paid_for.issuperset(stream.nodes):
                self._stream_softmax(stream)
        self.paid_for = frozenset()

    def _candidates(self, pieces: Sequence[Group]) -> list[tuple[Pair, Outcome]]:
        """The merges between pieces that are legal."""
        found: list[tuple[Pair, Outcome]] = []
        for producer in pieces:
            for consumer in self.order.consumers(producer):
                if consumer in pieces:
                    outcome = self._judge(Merge(producer, consumer, self.target))
                    if outcome.group is not None:
                        found.append(((producer, consumer), outcome))
        return found

    # arms -------------------------------------------------------------------------------------------------------------

    def _unjoinable(self, pieces: Sequence[Group]) -> WhyNot | None:
        """Why pieces cannot be arms of one group, None where they can (or are one group already)."""
        if len(pieces) == 1:
            return None
        at = next((piece for piece in pieces if not piece.fusable), None)
        if at is not None:
            return unfusable(at.root)
        for first, second in combinations(pieces, 2):
            refusal = self.constraints.refusal(first, second)
            if refusal is not None:
                return refusal
        arms = HorizontalMerge(PLAN, tuple(pieces))
        whole = joined(pieces)
        return (
            self._dependent(pieces)
            or self.limits.bindings(whole)
            or self.limits.arms(arms)
            or self.limits.veto(pieces)
            or self._forbidden(pieces)
        )

    def _forbidden(self, pieces: Sequence[Group]) -> WhyNot | None:
        """What a rule has against pieces as one group."""
        outcome = self.forbidding.together(pieces)
        return outcome.answer if outcome is not None and isinstance(outcome.answer, WhyNot) else None

    def _dependent(self, pieces: Sequence[Group]) -> WhyNot | None:
        """Why pieces cannot run beside each other, None where they can: a part may be written into a concat, nothing
        else may be read."""
        for piece in pieces:
            direct = [other for other in self.order.consumers(piece) if other in pieces]
            bad = next((other for other in direct if not self._writes_into(piece, other)), None)
            if bad is not None:
                return WhyNot(
                    "cycle",
                    f"{bad.root.name} reads what {piece.root.name} makes, and arms run side by side",
                    bad.root.name,
                )
        between = self.order.between(pieces)
        return (
            WhyNot("cycle", f"{between.root.name} lies on a path between them", between.root.name)
            if between is not None
            else None
        )

    def _writes_into(self, piece: Group, concat: Group) -> bool:
        join = concat_merge(concat, self.order) if _is_lone_concat(concat) else None
        return isinstance(join, HorizontalMerge) and set(piece.arms or (piece,)) <= set(join.groups)

    # refusals ---------------------------------------------------------------------------------------------------------

    def _refuse(self, planned: PlannedSet, refusal: WhyNot) -> None:
        """Raise E0703 with the first pair of ops between which a merge was refused."""
        self.paid_for = frozenset(planned.nodes)
        pieces = self._pieces(planned)
        producer, consumer = pieces[0].root, pieces[1].root
        edge = self._edge_between(pieces)
        if edge is not None and refusal.code == "cycle":  # no arms: what counts is why they do not merge
            producer, consumer = edge
            answer = self._judge(Merge(self.group_of[producer], self.group_of[consumer], self.target)).answer
            refusal = answer if isinstance(answer, WhyNot) else refusal
        message = (
            f"{planned.name} cannot be one dispatch: {producer.name} -> {consumer.name}: {refusal.code}: "
            f"{refusal.detail}"
        )
        rule = self._forbidding_rule(pieces, producer, consumer) if isinstance(refusal, Forbid) else ""
        nodes = ", ".join((*producer.nodes, *consumer.nodes)) or producer.name
        raise FuselineError("E0703", message, node=nodes, hint=_hint(refusal, rule))

    def _forbidding_rule(self, pieces: Sequence[Group], producer: Node, consumer: Node) -> str:
        """The name of the rule that forbids `pieces` as one, or the two ops."""
        whole = self.forbidding.together(pieces)
        one = whole or self._judge(Merge(self.group_of[producer], self.group_of[consumer], self.target))
        return one.rule

    def _edge_between(self, pieces: Sequence[Group]) -> tuple[Node, Node] | None:
        for piece in pieces:
            for node in piece.members:
                for read in node.readers:
                    if self.group_of[read.consumer] is not piece and self.group_of[read.consumer] in pieces:
                        return node, read.consumer
        return None


def _is_lone_concat(group: Group) -> bool:
    return len(group.members) == 1 and group.members[0].kind is Kind.CONCAT


def _hint(refusal: WhyNot, rule: str) -> str:
    if rule:
        return f"the rule {rule} forbids it: take one of the two out of the group, or leave that rule out"
    at = f" at {refusal.at}" if refusal.at else ""
    return (
        f"docs/why-not.md explains {refusal.code}{at}; take one of the two out of the group, or add the op that is "
        f"missing between them"
    )


def guided_partition(
    graph: FusionGraph,
    rules: Sequence[FusionRule],
    target: TargetDescription,
    level: str = "default",
    constraints: PlanConstraints | None = None,
    veto: Veto = no_veto,
    joins: Collection[str] | None = None,
    start: Sequence[StartingGroup] = (),
) -> Partition:
    """Partition `graph` as `constraints` ask, by default where it is None or silent.

    Raises E0702 where `start`, the regions of an earlier round, has ops together that the plan keeps apart, E0703 for a
    set that cannot be one group.
    """
    if constraints is None:
        return partition(graph, rules, target, level, veto, joins, start)
    for region in start:
        _require_one_home(region, constraints)
    return no_more_groups(
        lambda start: PlannedDriver(graph, rules, target, level, constraints, veto, joins, start).run(), graph, start
    )


def _require_one_home(region: StartingGroup, constraints: PlanConstraints) -> None:
    """Raises E0702 for a region that crosses what the plan draws: the plan was made before the round that formed it."""
    nodes = sorted(region.nodes, key=lambda node: node.position)
    for first, second in combinations(nodes, 2):
        refusal = constraints.refusal(Group.of(first), Group.of(second))
        if refusal is not None:
            raise FuselineError(
                "E0702",
                f"an earlier round put {first.name} and {second.name} into one dispatch region: {refusal.detail}",
                node=second.name,
                hint="make a plan of the program as it is now: fuseline compile MODEL --emit plan",
            )
