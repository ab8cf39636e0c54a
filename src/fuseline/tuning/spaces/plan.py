"""Knobs about which ops run together, from the decisions of a default compile.

    missed, because it would not pay     join     its two dispatches become one
    fused                                apart    its two ops are in no dispatch together

What is illegal is no knob: a plan could not build it. The edge `a -> b` of a layer that occurs ten times, as
`a-2 -> b-2` and so on, is one knob of ten edges.
"""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Iterable, Sequence

from fuseline.ir.costs import MachineCosts
from fuseline.passes.fusion.plan import id_of
from fuseline.passes.fusion.profit import ANSWERED
from fuseline.report.records import CompileRecord, Decision, DispatchRecord
from fuseline.tuning.knob import Knob

JOIN, APART = "join", "apart"

OVERRULED = frozenset({"unprofitable", "parallelism"})
"""Why a merge is refused that is legal: a plan may ask for it."""

SURE = frozenset({"elementwise-cluster", "elementwise-epilogue"})
"""Rules that only save memory traffic: no work is done again, and nothing is streamed."""

UNSURE = 0.3
"""By how much of the time of the dispatches concerned the cost model may be mistaken about a choice. What it predicts
to lose more than that is not tried."""

MOST = 48
"""Knobs of this space, those first by which most may be gained."""

_COPY_NUMBER = re.compile(r"-\d+$")


def plan_knobs(record: CompileRecord, costs: MachineCosts) -> list[Knob]:
    """The knobs of a default compile, what the model is least sure of first."""
    groups = _group_of(record)
    homes = _homes(record)
    found: dict[str, list[Decision]] = defaultdict(list)
    for decision in record.decisions:
        choice = _choice(decision, groups)
        if choice is not None:
            found[_name(decision, choice)].append(decision)
    ranked = [_ranked(name, edges, costs, homes) for name, edges in found.items()]
    kept = sorted((item for item in ranked if item[0] > 0), key=lambda item: (-item[0], item[1].name))
    return [knob for _, knob in kept[:MOST]]


def bare(id: str) -> str:
    """A structural id without the number that tells repeated layers apart.

    >>> bare("convolution.96eabbfb-12"), bare("96eabbfb")
    ('96eabbfb', '96eabbfb')
    """
    return _COPY_NUMBER.sub("", id_of(id))


def _group_of(record: CompileRecord) -> dict[str, int]:
    return {id_of(name): index for index, names in enumerate(record.groups) for name in names}


def _homes(record: CompileRecord) -> dict[str, DispatchRecord]:
    """The dispatch of each op."""
    return {id_of(op.id): dispatch for dispatch in record.dispatches for op in dispatch.members}


def _choice(decision: Decision, groups: dict[str, int]) -> str | None:
    """What else could be done about an edge, None where nothing."""
    ends = id_of(decision.producer), id_of(decision.consumer)
    if not all(end in groups for end in ends):
        return None
    together = groups[ends[0]] == groups[ends[1]]
    if decision.verdict == "fused" and together:
        return APART if decision.rule not in SURE or not decision.numbers.keys().isdisjoint(ANSWERED) else None
    return JOIN if decision.verdict == "missed" and decision.code in OVERRULED and not together else None


def _name(decision: Decision, choice: str) -> str:
    return f"plan/{choice}/{bare(decision.producer)}+{bare(decision.consumer)}"


def _ranked(
    name: str, edges: Sequence[Decision], costs: MachineCosts, homes: dict[str, DispatchRecord]
) -> tuple[float, Knob]:
    """A knob, and the most that its second choice may gain: what the model may be mistaken by, less what it expects the
    choice to lose, nanoseconds of a run."""
    choice = name.split("/")[1]
    gain = sum(_gain(edge, choice, costs) for edge in edges)
    ends = (id_of(end) for edge in edges for end in (edge.producer, edge.consumer))
    concerned = {dispatch.name: dispatch.predicted_ns for end in ends if (dispatch := homes.get(end)) is not None}
    unsure = UNSURE * sum(concerned.values()) + costs.launch_ns
    first = edges[0]
    why = first.detail if choice == JOIN else f"fused by {first.rule}"
    times_text = f", {len(edges)} times" if len(edges) > 1 else ""
    knob = Knob(
        name,
        "plan",
        ("apart", "join") if choice == JOIN else ("join", "apart"),
        detail=f"{first.producer} -> {first.consumer}{times_text}: {why}",
        gain_ns=float(round(gain)),
        nodes=tuple(dict.fromkeys(_nodes(edges))),
        ops=tuple((id_of(edge.producer), id_of(edge.consumer)) for edge in edges),
    )
    return unsure + gain, knob


def _nodes(edges: Iterable[Decision]) -> Iterable[str]:
    return (node for edge in edges for node in (*edge.producer_nodes, *edge.consumer_nodes))


def _gain(edge: Decision, choice: str, costs: MachineCosts) -> float:
    """What the model expects of the other choice, nanoseconds of a run."""
    if choice == JOIN:
        return -edge.numbers.get("predicted_loss_ns", 0.0)
    kept = edge.numbers.get("bytes_saved", 0.0) / costs.stored_bytes_per_ns + costs.launch_ns
    return sum(edge.numbers.get(name, 0.0) for name in ANSWERED) - kept
