"""The decision records of the driver: its last word on an edge of the fusion graph, as reports read it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from fuseline.passes.fusion.decision import Legal, WhyNot
from fuseline.passes.fusion.group import Group
from fuseline.passes.fusion.node import Node
from fuseline.report.records import Decision, Verdict


@dataclass
class Outcome:
    """The last word on a pair of groups: the rule that spoke and what it said."""

    rule: str
    answer: Legal | WhyNot
    group: Group | None = None
    bytes_saved: int = 0


def edge_record(producer: Node, consumer: Node, outcome: Outcome, *, together: bool) -> Decision:
    """The record of one edge; `together`: both ops are in one group in the end, whoever put them there."""
    answer = outcome.answer
    refusal = answer if isinstance(answer, WhyNot) and not together else None
    verdict = "fused" if together else ("missed" if refusal is not None else "superseded")
    return _between(
        outcome.rule,
        (producer, consumer),
        verdict=verdict,
        code=refusal.code if refusal is not None else verdict,
        detail=refusal.detail if refusal is not None else "",
        at=refusal.at if refusal is not None else "",
        numbers={**answer.numbers, "bytes_saved": float(outcome.bytes_saved)}
        if outcome.bytes_saved
        else dict(answer.numbers),
    )


def arms_record(
    rule: str,
    first: Node,
    other: Node,
    detail: str = "independent: arms of one dispatch",
    numbers: Mapping[str, float] | None = None,
) -> Decision:
    """Two parts of one dispatch: no value goes from one to the other."""
    ends = first, other
    return _between(rule, ends, verdict="fused", code="fused", detail=detail, numbers=dict(numbers or {}), arms=True)


def apart_records(
    kept_apart: Sequence[tuple[str, Group, Group, WhyNot]], group_of: Mapping[Node, Group]
) -> list[Decision]:
    """Groups that could have been arms of one dispatch, and in the end are not; each pair once, for the first
    reason."""
    words = {(first.root, other.root): (rule, why) for rule, first, other, why in reversed(kept_apart)}
    return [
        apart_record(rule, *pair, why)
        for pair, (rule, why) in words.items()
        if group_of[pair[0]] is not group_of[pair[1]]
    ]


def apart_record(rule: str, first: Node, other: Node, why: WhyNot, verdict: Verdict = "missed") -> Decision:
    """Two groups that no edge joins, and why they are not made together; `side-by-side` where they are arms of one
    dispatch."""
    return _between(
        rule,
        (first, other),
        verdict=verdict,
        code=why.code,
        detail=why.detail,
        at=why.at,
        numbers=dict(why.numbers),
        arms=True,
    )


def _between(
    rule: str,
    ends: tuple[Node, Node],
    *,
    verdict: Verdict,
    code: str,
    detail: str,
    at: str = "",
    numbers: dict[str, float] | None = None,
    arms: bool = False,
) -> Decision:
    producer, consumer = ends
    return Decision(
        rule=rule,
        verdict=verdict,
        producer=producer.name,
        consumer=consumer.name,
        producer_op=producer.kind.value,
        consumer_op=consumer.kind.value,
        producer_nodes=producer.nodes,
        consumer_nodes=consumer.nodes,
        code=code,
        detail=detail,
        at=at,
        numbers=numbers or {},
        arms=arms,
    )
