"""Optimization remarks: the decisions in LLVM's YAML layout and as JSON lines, with regex filters per kind.

LLVM's kinds map so: a fused edge is `!Passed`, a missed one `!Missed`, a superseded one `!Analysis`
(https://llvm.org/docs/Remarks.html). The pass is the rule, the name the reason code, the function the dispatch.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Any

from fuseline.report.advice import advice
from fuseline.report.records import Decision

KINDS = {"fused": "Passed", "missed": "Missed", "superseded": "Analysis"}


@dataclass(frozen=True, slots=True)
class RemarkFilter:
    """Regular expressions a remark must match to be kept, searched in `rule`, `code` and the nodes (source names and
    structural ids).

    `anything` is searched in all of them. None keeps all. Raises re.error from `keeps` for an expression that does not
    compile.
    """

    rule: str | None = None
    code: str | None = None
    node: str | None = None
    anything: str | None = None
    verdicts: tuple[str, ...] = ("fused", "missed", "superseded")

    def keeps(self, decision: Decision) -> bool:
        """Whether `decision` passes; raises re.error for an expression that does not compile."""
        nodes = (*decision.producer_nodes, *decision.consumer_nodes, decision.producer, decision.consumer)
        wanted = (
            (self.rule, (decision.rule,)),
            (self.code, (decision.code,)),
            (self.node, nodes),
            (self.anything, (decision.rule, decision.code, *nodes)),
        )
        return decision.verdict in self.verdicts and all(_matches(pattern, texts) for pattern, texts in wanted)


def _matches(pattern: str | None, texts: Iterable[str]) -> bool:
    return pattern is None or any(re.search(pattern, text) for text in texts)


def _arguments(decision: Decision) -> Iterator[tuple[str, Any]]:
    yield "Producer", " ".join(decision.producer_nodes) or decision.producer
    yield "Consumer", " ".join(decision.consumer_nodes) or decision.consumer
    yield "ProducerId", decision.producer
    yield "ConsumerId", decision.consumer
    if decision.detail:
        yield "Detail", decision.detail
    if decision.at:
        yield "At", decision.at
    if decision.verdict == "missed" and (hint := advice(decision.code)) is not None:
        yield "Hint", hint
    yield from decision.numbers.items()


def yaml_remark(decision: Decision) -> str:
    """One YAML document in LLVM's layout."""
    lines = [
        f"--- !{KINDS[decision.verdict]}",
        f"Pass:            {_scalar(decision.rule)}",
        f"Name:            {_scalar(decision.code)}",
        f"Function:        {_scalar(decision.dispatch or 'main')}",
        "Args:",
        *(f"  - {key}: {_scalar(value)}" for key, value in _arguments(decision)),
        "...",
    ]
    return "\n".join(lines) + "\n"


def _scalar(value: Any) -> str:
    text = f"{value:.10g}" if isinstance(value, int | float) else str(value)
    return "'" + "".join(character if character.isprintable() else "?" for character in text).replace("'", "''") + "'"


def yaml_remarks(decisions: Iterable[Decision], keep: RemarkFilter | None = None) -> str:
    """All kept remarks as one YAML stream."""
    return "".join(yaml_remark(decision) for decision in decisions if keep is None or keep.keeps(decision))


def jsonl_remarks(decisions: Iterable[Decision], keep: RemarkFilter | None = None) -> str:
    """All kept remarks, one JSON object a line."""
    kept = (decision for decision in decisions if keep is None or keep.keeps(decision))
    return "".join(json.dumps(_object(decision)) + "\n" for decision in kept)


def _object(decision: Decision) -> dict[str, Any]:
    return {
        "kind": KINDS[decision.verdict].lower(),
        "pass": decision.rule,
        "name": decision.code,
        "function": decision.dispatch or "main",
        "args": dict(_arguments(decision)),
    }
