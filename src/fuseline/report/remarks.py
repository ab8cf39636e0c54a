"""Optimization remarks: the decisions in LLVM's YAML layout and as JSON lines, with regex filters per kind.

LLVM's kinds map so: a fused edge is `!Passed`, a missed one `!Missed`, a superseded one, or arms that stay
two, `!Analysis` (https://llvm.org/docs/Remarks.html). The pass is the rule, the name the reason code, the function the
dispatch. What is remarked on a single op (an idiom nearly met, a root without a kernel of its own) is `!Missed`, too.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Any

from fuseline.report.advice import advice
from fuseline.report.records import Decision, OpRemark
from fuseline.report.remark_locations import Listing, Location

KINDS = {"fused": "Passed", "missed": "Missed", "superseded": "Analysis", "side-by-side": "Analysis"}


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
    verdicts: tuple[str, ...] = ("fused", "missed", "superseded", "side-by-side")

    def keeps_op(self, remark: OpRemark) -> bool:
        """Whether a remark on one op passes; raises re.error for an expression that does not compile."""
        nodes = (*remark.nodes, remark.op)
        wanted = (
            (self.rule, (remark.rule,)),
            (self.code, (remark.code,)),
            (self.node, nodes),
            (self.anything, (remark.rule, remark.code, *nodes)),
        )
        return "missed" in self.verdicts and all(_matches(pattern, texts) for pattern, texts in wanted)

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
    if decision.verdict in ("missed", "side-by-side") and (hint := advice(decision.code)) is not None:
        yield "Hint", hint
    yield from decision.numbers.items()


@dataclass(frozen=True, slots=True)
class _Remark:
    """What both forms print."""

    kind: str
    rule: str
    name: str
    function: str
    arguments: tuple[tuple[str, Any], ...]
    nodes: tuple[str, ...] = ()


def _of_decision(decision: Decision) -> _Remark:
    arguments = tuple(_arguments(decision))
    nodes = (*decision.consumer_nodes, *decision.producer_nodes)
    return _Remark(KINDS[decision.verdict], decision.rule, decision.code, decision.dispatch or "main", arguments, nodes)


def _of_op(remark: OpRemark) -> _Remark:
    arguments = (("Op", " ".join(remark.nodes) or remark.op), ("OpId", remark.op), ("Detail", remark.detail))
    return _Remark(KINDS["missed"], remark.rule, remark.code, remark.dispatch or "main", arguments, remark.nodes)


def _kept(decisions: Iterable[Decision], ops: Iterable[OpRemark], keep: RemarkFilter | None) -> Iterator[_Remark]:
    yield from (_of_decision(decision) for decision in decisions if keep is None or keep.keeps(decision))
    yield from (_of_op(remark) for remark in ops if keep is None or keep.keeps_op(remark))


def _yaml(remark: _Remark, listing: Listing | None) -> str:
    location = None if listing is None else listing.location(remark.nodes)
    lines = [
        f"--- !{remark.kind}",
        f"Pass:            {_scalar(remark.rule)}",
        f"Name:            {_scalar(remark.name)}",
        *(() if location is None else (f"DebugLoc:        {_yaml_of(location)}",)),
        f"Function:        {_scalar(remark.function)}",
        "Args:",
        *(f"  - {key}: {_scalar(value)}" for key, value in remark.arguments),
        "...",
    ]
    return "\n".join(lines) + "\n"


def _yaml_of(location: Location) -> str:
    return f"{{ File: {_scalar(location.file)}, Line: {location.line}, Column: {location.column} }}"


def _scalar(value: Any) -> str:
    text = f"{value:.10g}" if isinstance(value, int | float) else str(value)
    return "'" + "".join(character if character.isprintable() else "?" for character in text).replace("'", "''") + "'"


def yaml_remarks(
    decisions: Iterable[Decision],
    keep: RemarkFilter | None = None,
    ops: Iterable[OpRemark] = (),
    listing: Listing | None = None,
) -> str:
    """All kept remarks as one YAML stream: on edges, then on single `ops`. With a `listing` they say where (`DebugLoc`,
    without which LLVM's viewers pass over them): an edge where its consumer is."""
    return "".join(_yaml(remark, listing) for remark in _kept(decisions, ops, keep))


def jsonl_remarks(decisions: Iterable[Decision], keep: RemarkFilter | None = None, ops: Iterable[OpRemark] = ()) -> str:
    """All kept remarks, one JSON object a line."""
    return "".join(json.dumps(_object(remark)) + "\n" for remark in _kept(decisions, ops, keep))


def _object(remark: _Remark) -> dict[str, Any]:
    return {
        "kind": remark.kind.lower(),
        "pass": remark.rule,
        "name": remark.name,
        "function": remark.function,
        "args": dict(remark.arguments),
    }
