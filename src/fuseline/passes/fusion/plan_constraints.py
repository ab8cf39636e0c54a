"""A fusion plan as seen by one graph: which nodes its entries mean, what they keep apart, and which of them are
stale."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field

from fuseline.errors import FuselineError
from fuseline.passes.fusion.decision import WhyNot
from fuseline.passes.fusion.graph import FusionGraph
from fuseline.passes.fusion.group import Group
from fuseline.passes.fusion.node import Node
from fuseline.passes.fusion.plan import FusionPlan, Ids
from fuseline.report.records import CompileRecord

SHOWN = 5
"""How many stale entries an error names."""


@dataclass(frozen=True, eq=False)
class PlannedSet:
    """Nodes that become one group. `extendable`: others may join them. `optional`: the plan forbids some of them to
    share it, so they need not."""

    name: str
    nodes: tuple[Node, ...]
    extendable: bool = False
    optional: bool = False


@dataclass
class PlanConstraints:
    """What a plan says about the nodes of one graph.

    `sets` are wanted as one group each; a node of a closed set fuses only inside it. `apart` are nodes that a node must
    not share a group with. `only`: nodes that the plan does not list stay alone.
    """

    sets: tuple[PlannedSet, ...] = ()
    apart: dict[Node, frozenset[Node]] = field(default_factory=dict[Node, frozenset[Node]])
    only: bool = False

    def __post_init__(self) -> None:
        self.home = {node: planned for planned in self.sets if not planned.extendable for node in planned.nodes}

    def free(self, group: Group) -> bool:
        """Whether the default fusion may have the group."""
        return not self.only and not any(node in self.home for node in group.members)

    def refusal(self, first: Group, second: Group) -> WhyNot | None:
        """Why the plan keeps two groups apart, None where it does not."""
        mine, theirs = self.home.get(first.members[0]), self.home.get(second.members[0])
        if mine is not theirs or (mine is None and self.only):
            return WhyNot("forbidden", "the plan puts them into different groups", second.root.name)
        clash = self._clash(first, second)
        if clash is None:
            return None
        return WhyNot("forbidden", f"the plan keeps {clash[0].name} and {clash[1].name} apart", clash[1].name)

    def _clash(self, first: Group, second: Group) -> tuple[Node, Node] | None:
        if not self.apart:
            return None
        others = set(second.members)
        for node in first.members:
            found = others & self.apart.get(node, frozenset())
            if found:
                return node, min(found, key=lambda other: other.id)
        return None


class PlanMatcher:
    """Matches a plan against the graphs of a module, entry by entry."""

    def __init__(self, plan: FusionPlan) -> None:
        self.plan = plan
        self.known: set[str] = set()
        self.matched: set[Ids] = set()

    def guide(self, graph: FusionGraph, *, only: bool = False) -> PlanConstraints:
        """What the plan says about `graph`."""
        nodes = {node.id: node for node in graph.nodes}
        self.known.update(nodes)
        groups = [(f"group {i}", self._nodes(ids, nodes)) for i, ids in enumerate(self.plan.groups, 1)]
        force = [(f"force {i}", self._nodes(ids, nodes)) for i, ids in enumerate(self.plan.force, 1)]
        apart = _apart([node for id in ids if (node := nodes.get(id)) is not None] for ids in self.plan.forbid)
        self.matched.update(ids for ids in self.plan.forbid if all(id in nodes for id in ids))
        return PlanConstraints(
            tuple(_sets([g for g in groups if g[1]], [f for f in force if f[1]], apart)), apart, only
        )

    def _nodes(self, ids: Ids, nodes: dict[str, Node]) -> tuple[Node, ...]:
        """The nodes of an entry; none of an entry that does not match as a whole."""
        if not all(id in nodes for id in ids):
            return ()
        self.matched.add(ids)
        return tuple(nodes[id] for id in ids)

    def stale(self) -> list[str]:
        """The entries that matched in no graph, each with the ids that are not there."""
        entries = (("group", self.plan.groups), ("force", self.plan.force), ("forbid", self.plan.forbid))
        return [
            f"{name} {i} {self._missing(ids)}"
            for name, sets in entries
            for i, ids in enumerate(sets, 1)
            if ids not in self.matched
        ]

    def _missing(self, ids: Ids) -> str:
        gone = [id for id in ids if id not in self.known]
        if not gone:
            return "has ops of several functions"
        return f"does not match: {', '.join(gone[:SHOWN])}{' and others' if len(gone) > SHOWN else ''} not in the graph"

    def check(self, record: CompileRecord, *, strict: bool) -> list[str]:
        """What to tell about entries that did not match, and about what else the plan was made for.

        Raises E0702 for a plan of another graph, and under `strict` for any stale entry.
        """
        stale = self.stale()
        if stale and not self.known.intersection(self.plan.ids):
            message = (
                f"no op of the plan is in the graph: the plan is for {self.plan.graph or 'another graph'}, the "
                f"graph is {record.fingerprint}"
            )
            raise FuselineError(
                "E0702",
                message,
                node=self.plan.model or None,
                hint="make a new plan: fuseline compile MODEL --emit plan",
            )
        if stale and strict:
            shown = "; ".join(stale[:SHOWN]) + (f"; and {len(stale) - SHOWN} more" if len(stale) > SHOWN else "")
            raise FuselineError(
                "E0702",
                shown,
                node=self.plan.model or None,
                hint="correct the entries, or leave --plan-strict out to skip them",
            )
        return [*self._differences(record), *(f"plan: {line}; skipped" for line in stale)]

    def _differences(self, record: CompileRecord) -> Iterator[str]:
        made_for = {
            "graph": record.fingerprint,
            "target": record.target,
            "threads": record.threads,
            "pipeline": record.pipeline,
        }
        for name, now in made_for.items():
            then = getattr(self.plan, name)
            if then and now and then != now:
                yield f"plan: made for {name} {then}, this is {now}"


def _apart(sets: Iterable[Sequence[Node]]) -> dict[Node, frozenset[Node]]:
    found: dict[Node, frozenset[Node]] = {}
    for nodes in sets:
        for node in nodes:
            found[node] = found.get(node, frozenset()) | (frozenset(nodes) - {node})
    return {node: others for node, others in found.items() if others}


def _sets(
    groups: list[tuple[str, tuple[Node, ...]]],
    force: list[tuple[str, tuple[Node, ...]]],
    apart: dict[Node, frozenset[Node]],
) -> Iterator[PlannedSet]:
    """Groups and forced sets that share a node are one set; it is extendable where it has no group."""
    merged: list[tuple[list[str], dict[Node, None], bool]] = []
    at: dict[Node, int] = {}
    for name, nodes, extendable in [*((n, g, False) for n, g in groups), *((n, f, True) for n, f in force)]:
        touched = sorted({at[node] for node in nodes if node in at})
        names, members, still_open = [name], dict.fromkeys(nodes), extendable
        for index in reversed(touched):
            other = merged[index]
            names, members, still_open = [*other[0], *names], other[1] | members, still_open and other[2]
            merged[index] = ([], {}, True)
        merged.append((names, members, still_open))
        at.update(dict.fromkeys(members, len(merged) - 1))
    for names, members, extendable in merged:
        if members:
            optional = any(apart.get(node, frozenset()) & members.keys() for node in members)
            yield PlannedSet(" + ".join(names), tuple(members), extendable, optional)
