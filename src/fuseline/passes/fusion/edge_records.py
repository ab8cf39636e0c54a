"""The decision records of the driver: its last word on an edge of the fusion graph, as reports read it."""

from __future__ import annotations

from dataclasses import dataclass

from fuseline.passes.fusion.decision import Legal, WhyNot
from fuseline.passes.fusion.graph import Node
from fuseline.passes.fusion.group import Group
from fuseline.report.records import Decision


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
    return Decision(
        rule=outcome.rule,
        verdict=verdict,
        producer=producer.name,
        consumer=consumer.name,
        producer_op=producer.kind.value,
        consumer_op=consumer.kind.value,
        producer_nodes=producer.nodes,
        consumer_nodes=consumer.nodes,
        code=refusal.code if refusal is not None else verdict,
        detail=refusal.detail if refusal is not None else "",
        at=refusal.at if refusal is not None else "",
        numbers={**answer.numbers, "bytes_saved": float(outcome.bytes_saved)} if outcome.bytes_saved else dict(answer.numbers),
    )


def arms_record(rule: str, first: Node, other: Node) -> Decision:
    """Two arms of one dispatch: no value goes from one to the other."""
    return Decision(
        rule=rule,
        verdict="fused",
        producer=first.name,
        consumer=other.name,
        producer_op=first.kind.value,
        consumer_op=other.kind.value,
        producer_nodes=first.nodes,
        consumer_nodes=other.nodes,
        code="fused",
        detail="independent: arms of one dispatch",
        arms=True,
    )
