"""Merging chains of groups that only the limit of roots keeps in pieces: they are cut anew into one part fewer.

Pairs merge by the bytes that they save, so that a chain of 15 roots may be left as 5, 4 and 6, where 8 run in one
dispatch. The groups inside of such a chain are opened, and what they consist of is merged once more, within the parts
of each way to cut it (`chain_cuts.py`): every merge is judged as any other. The way that takes the least time is taken,
where that is less than before.

    5 | 4 | 6    =>    5 + 2 | 2 + 6

A part has members of two groups that may be one, but for the limit. So no path leads out of it and back.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Sequence
from dataclasses import dataclass, replace
from itertools import islice, pairwise

from fuseline.passes.fusion.cached import cached
from fuseline.passes.fusion.chain_cuts import CHAIN_CUTS, cuts, shortest_end
from fuseline.passes.fusion.decision import WhyNot
from fuseline.passes.fusion.edge_records import Outcome
from fuseline.passes.fusion.group import Group
from fuseline.passes.fusion.inner_merging import InnerMerging
from fuseline.passes.fusion.node import Node
from fuseline.passes.fusion.profit import regrouping_loss_ns, weigh
from fuseline.passes.fusion.rule import Merge, count_roots
from fuseline.passes.fusion.softmax_merging import SoftmaxMerging
from fuseline.passes.fusion.walk_epilogue import walk_refusal

MOST_CUTS = 8
"""Ways to cut one chain that are tried."""

LONGEST = 16
"""Groups of a chain, at the most: one root of room in each adds up over as many as the limit of roots."""

LIMITS = frozenset({"binding-limit", "code-limit"})
"""What else a dispatch would have too much of whose roots are too many: it is asked of the parts."""


@dataclass(frozen=True)
class _Trial:
    """The groups that a cut gives, what was said of the edges inside of them, and how much longer they take than those
    before."""

    groups: list[Group]
    words: dict[tuple[Node, Node], Outcome]
    loss_ns: float


class ChainMerging(SoftmaxMerging):
    """Takes chains that only the limit of roots keeps in pieces into fewer groups."""

    def _cut_chains(self) -> None:
        """Cut every chain into one part fewer as long as that saves time."""
        if CHAIN_CUTS not in self.joins or self.target.roots_limit < 2:
            return
        starts = deque(sorted([group for group in self.alive if group.heavy], key=self._depth))
        while starts:
            start = starts.popleft()
            chain = self._chain_from(start) if start in self.alive else []
            if chain:
                starts.extendleft(reversed(self._cut(chain)))

    def _depth(self, group: Group) -> tuple[int, int, str]:
        """Orders groups along chains: how deep the last root lies, and ids among equals."""
        depths = [self.ranks.depths[node] for node in group.members if node.heavy]
        return max(depths, default=0), min(node.order for node in group.members), group.key

    # chains -----------------------------------------------------------------------------------------------------------

    def _chain_from(self, start: Group) -> list[Group]:
        """The first chain on the way from `start` that could be one group fewer, none where there is no such chain."""
        chain = [start]
        for _ in range(LONGEST - 1):
            after = self._next(chain[-1]) if len(chain) == 1 or self._opens(chain[-1]) else None
            if after is None:
                return []
            chain.append(after)
            count = shortest_end([count_roots(group) for group in chain], self.target.roots_limit)
            if count:
                return chain[-count:]
        return []

    def _next(self, group: Group) -> Group | None:
        """The first group that reads from `group` and is apart from it for the limit alone."""
        after = sorted(self.order.consumers(group), key=lambda other: other.key)
        return next((other for other in after if self._is_limited(group, other)), None)

    def _is_limited(self, producer: Group, consumer: Group) -> bool:
        """Whether two groups would merge if a dispatch had more roots."""
        reads = consumer.reads_from(producer)
        words = [self.edge_words.get((read.producer, read.consumer)) for read in reads if read.producer is not None]
        return "roots-limit" in map(_code, words) and self._merges_without(producer, consumer)

    def _merges_without(self, producer: Group, consumer: Group) -> bool:
        """The same of two groups that have too many roots together."""
        known = self._limited.get((producer, consumer))
        if known is None:
            wide = replace(self.target, roots_limit=2 * self.target.roots_limit)
            outcome = self._judge(Merge(producer, consumer, wide))
            known = self._limited[producer, consumer] = outcome.group is not None or _code(outcome) in LIMITS
        return known

    @cached
    def _limited(self) -> dict[tuple[Group, Group], bool]:
        """What was asked of two groups before."""
        return {}

    def _opens(self, group: Group) -> bool:
        """Whether a group may be taken apart: one whose members merged by pairs."""
        return not group.online and not group.arms

    # cuts -------------------------------------------------------------------------------------------------------------

    def _cut(self, chain: Sequence[Group]) -> list[Group]:
        """Cut a chain into one part fewer where that saves time; the new groups."""
        if any(self._cycle(pair) is not None for pair in pairwise(chain)):
            return []
        ways = islice(cuts([count_roots(group) for group in chain], self.target.roots_limit), MOST_CUTS)
        tried = [trial for ends in ways if (trial := self._tried(chain, ends)) is not None]
        best = min(tried, key=lambda trial: trial.loss_ns, default=None)
        if best is None or best.loss_ns > 0 or not self._fueled(CHAIN_CUTS, _new_neighbours(chain, best)):
            return []
        self._exchange(chain, best)
        return best.groups

    def _tried(self, chain: Sequence[Group], ends: Sequence[int]) -> _Trial | None:
        """What the cuts behind `ends` roots give; None where some part does not become one group."""
        inner = InnerMerging(self._parts(chain, ends), self._judge_inside, self.ranks, self.target)
        groups = inner.run()
        if len(groups) >= len(chain):
            return None
        return _Trial(groups, inner.words, regrouping_loss_ns(groups, chain, self.graph, self.target))

    def _judge_inside(self, merge: Merge) -> Outcome:
        """The answer of rules and prices to a merge on which no path leads elsewhere."""
        refusal = walk_refusal(merge)
        if refusal is not None:
            return Outcome("structure", refusal)
        return self._ask_rules(merge, weigh(merge, self.graph).bytes_saved)

    def _parts(self, chain: Sequence[Group], ends: Sequence[int]) -> dict[Group, range]:
        """What a chain consists of, its first and last group whole, with the parts that each may be in: roots in the
        one that counting them says, in order of depth, all else in those that its group has a share of."""
        last, before = len(ends), count_roots(chain[0])
        found = dict[Group, range]()
        for at, group in enumerate(chain[1:-1], 1):
            for piece in self._opened(group):
                roots = count_roots(piece)
                before += roots
                part = sum(end < before for end in ends)
                found[piece] = range(part, part + 1) if roots else range(at - 1, min(at, last) + 1)
        pieces = sorted(found, key=lambda piece: piece.members[0].position)
        parts = {piece: found[piece] for piece in pieces}
        return {replace(chain[0].plain): range(1), **parts, replace(chain[-1].plain): range(last, last + 1)}

    def _opened(self, group: Group) -> list[Group]:
        """What a group was merged from, by depth: single nodes, and groups from before the round."""
        pieces = dict.fromkeys(self._started.get(node, node) for node in group.members)
        opened = [replace(piece) if isinstance(piece, Group) else Group.of(piece) for piece in pieces]
        return sorted(opened, key=self._depth)

    @cached
    def _started(self) -> dict[Node, Group]:
        """The group from before the round of each node that was in one."""
        return {node: group for region in self.start for group in region.groups for node in group.members}

    def _exchange(self, chain: Sequence[Group], trial: _Trial) -> None:
        """The groups of `trial` take the place of `chain`."""
        places = self.order.leave(chain)
        self.alive.difference_update(chain)
        self.alive.update(trial.groups)
        for group in trial.groups:
            self.group_of.own(group, group.body.nodes)
        self.order.enter(trial.groups, places)
        self.edge_words.update(trial.words)
        for group in trial.groups:
            self._examine_around(group)
        self._drain()


def _code(outcome: Outcome | None) -> str:
    """The code of a refusal."""
    return outcome.answer.code if outcome is not None and isinstance(outcome.answer, WhyNot) else ""


def _new_neighbours(chain: Sequence[Group], trial: _Trial) -> list[Node]:
    """The ends of an edge inside each group of `trial` that lay between two of `chain`."""
    home = {node: at for at, group in enumerate(chain) for node in group.members}
    found = list[Node]()
    for group in trial.groups:
        edges = ((producer, consumer) for producer, consumer in trial.words if consumer in group.member_set)
        found += next(((p, c) for p, c in edges if p in group.member_set and home[p] != home[c]), ())
    return found
