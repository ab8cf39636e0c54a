"""Merging groups that no edge joins: the arms of one dispatch, side by side. First what was one dispatch before the
round, then what writes into one concat, then level by level."""

from __future__ import annotations

from collections.abc import Sequence

from fuseline.ir.rounds import rounds
from fuseline.passes.fusion.chain_merging import ChainMerging
from fuseline.passes.fusion.decision import Legal, WhyNot
from fuseline.passes.fusion.edge_records import Outcome
from fuseline.passes.fusion.group import Group
from fuseline.passes.fusion.horizontal import CONCAT_SLICES, HorizontalMerge, concat_merge, level_merges
from fuseline.passes.fusion.merging import joined
from fuseline.passes.fusion.pair_merging import OUT_OF_FUEL
from fuseline.passes.fusion.starting_groups import StartingGroup

REGION = "region"
"""What stands for a rule where ops are in one region from before the round."""


class ArmsMerging(ChainMerging):
    """Takes groups into one dispatch as its arms."""

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
        for _ in rounds("joining arms", most=len(self.alive) + 1):  # what was joined may go beside others as a whole
            if not self._join_levels():
                break

    def _join_levels(self) -> bool:
        """Join arms level by level; whether there are fewer groups now."""
        before = len(self.alive)
        for join in level_merges(self._joinable(), self.order, self.target, self._takes_arms, self.joins):
            kept = self._restricted(join)
            if isinstance(kept, HorizontalMerge) and (kept is join or self._takes_arms(kept)):
                self._join(kept)
        return len(self.alive) < before

    def _refused_whole(self, join: HorizontalMerge) -> Outcome | None:
        """Why the parts of a concat, or of a region whose arms have grown, cannot be one dispatch, None where they
        can."""
        whole = joined(join.groups)
        refusal = self.limits.bindings(whole) or self.limits.arms(join) or self.limits.refusal(whole)
        return Outcome(join.rule, refusal) if refusal is not None else self.forbidding.together(join.groups)

    def _takes_arms(self, join: HorizontalMerge) -> bool:
        """Whether the target takes groups that no edge joins in one dispatch; where it does not, the record says
        why."""
        refusal = self.limits.side_by_side(join.groups) or self.limits.veto(join.groups)
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
        groups = list(dict.fromkeys(self.group_of[arm.members[0]] for arm in join.groups))
        cycle = self._cycle(groups)
        if cycle is not None:
            self._tell(join.groups[-1], Outcome(join.rule, cycle))
            return
        if not self._fueled(join.rule, [arm.root for arm in join.groups]):
            self._tell(join.groups[-1], Outcome(join.rule, OUT_OF_FUEL))
            return
        group = joined(join.groups)
        outcome = Outcome(join.rule, Legal())
        for arm in join.groups:
            for read in arm.outside_reads():
                if read.producer in group.grid_loop_of or read.producer in group.inlined:
                    self.edge_words[read.producer, read.consumer] = outcome
        for arm in join.groups[1:]:
            self.side_by_side.append((join.rule, join.groups[0].root, arm.root))
        self._replace(groups, group)
