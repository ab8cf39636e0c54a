"""What rules forbid. A `Forbid` of any rule wins over every `Legal`, wherever groups become one: in a merge of two, in
a softmax that streams, as arms of one dispatch.

Only rules from outside forbid: those of the tree say what can be computed, and are not asked again.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import combinations
from typing import ClassVar

from fuseline.ir.target_description import TargetDescription
from fuseline.passes.fusion.cached import cached
from fuseline.passes.fusion.decision import Answer, Forbid
from fuseline.passes.fusion.edge_records import Outcome
from fuseline.passes.fusion.graph import FusionGraph
from fuseline.passes.fusion.group import Group
from fuseline.passes.fusion.merging import Alignment, joined
from fuseline.passes.fusion.rule import FusionRule, Merge, is_builtin


@dataclass(eq=False)
class JointMerge(Merge):
    """Two sides of groups that become one without a rule."""

    joint: ClassVar[bool] = True

    @cached
    def alignment(self) -> Alignment:
        """Each side keeps its loops."""
        return Alignment((), frozenset(range(len(self.producer.grid))), frozenset(range(len(self.consumer.grid))))

    @cached
    def shared(self) -> Group:
        """Both, side by side."""
        return joined([*_arms(self.producer), *_arms(self.consumer)])

    @cached
    def inlined(self) -> Group:
        """The same: nothing is read in place."""
        return self.shared


class Forbidding:
    """The rules of `rules` that may forbid, asked about groups of `graph` for `target`."""

    def __init__(self, rules: Sequence[FusionRule], graph: FusionGraph, target: TargetDescription) -> None:
        self.rules = [rule for rule in rules if not is_builtin(rule)]
        self.graph, self.target = graph, target

    def answers(self, merge: Merge) -> dict[str, Answer]:
        """What each of the rules says of a merge, by its name."""
        return {rule.name: rule.matches(merge, self.graph) for rule in self.rules}

    def together(self, groups: Sequence[Group]) -> Outcome | None:
        """The first `Forbid` of groups that would become one at once, None where no rule has one.

        Rules see two sides at a time: each pair, and each group with all before it.
        """
        if not self.rules or len(groups) < 2:
            return None
        found = (forbidden(self.answers(JointMerge(*sides, self.target))) for sides in _sides(groups))
        return next((outcome for outcome in found if outcome is not None), None)


def forbidden(answers: Mapping[str, Answer]) -> Outcome | None:
    """The first answer that forbids, by the rule that gave it."""
    return next((Outcome(rule, answer) for rule, answer in answers.items() if isinstance(answer, Forbid)), None)


def _sides(groups: Sequence[Group]) -> Iterator[tuple[Group, Group]]:
    """Producer and consumer, where one reads the other."""
    for first, second in combinations(groups, 2):
        yield _directed(first, second)
    for count in range(2, len(groups)):
        yield _directed(joined([arm for group in groups[:count] for arm in _arms(group)]), groups[count])


def _arms(group: Group) -> Sequence[Group]:
    return group.arms or (group,)


def _directed(first: Group, second: Group) -> tuple[Group, Group]:
    return (second, first) if first.reads_from(second) and not second.reads_from(first) else (first, second)
