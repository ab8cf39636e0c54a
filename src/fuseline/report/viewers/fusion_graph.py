"""The fusion graph as viewers want it: ops, each in its dispatch, and the edges that decisions are about."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import NamedTuple

from fuseline.report.advice import advice
from fuseline.report.records import CompileRecord, Decision, DispatchRecord


class Op(NamedTuple):
    """One op: its structural id, kind, source nodes, loops, and the dispatch that it runs in (None: in none)."""

    id: str
    kind: str
    nodes: tuple[str, ...]
    loops: tuple[str, ...]
    dispatch: DispatchRecord | None
    role: str


def ops_of(record: CompileRecord) -> list[Op]:
    """The ops in the order of their dispatches, then those that have none."""
    found = [
        Op(member.id, member.kind, member.nodes, _loops(record, member.id), dispatch, member.role)
        for dispatch in record.dispatches
        for member in dispatch.members
    ]
    known = {op.id for op in found}
    rest = (Op(id, node.kind, node.nodes, node.loops, None, "") for id, node in record.fusion_nodes.items())
    return found + [op for op in rest if op.id not in known]


def _loops(record: CompileRecord, id: str) -> tuple[str, ...]:
    node = record.fusion_nodes.get(id)
    return () if node is None else node.loops


def edges_of(record: CompileRecord, ops: Sequence[Op]) -> Iterator[Decision]:
    """The decisions about edges between ops that are there; arms that lie side by side have none."""
    known = {op.id for op in ops}
    return (
        decision
        for decision in record.decisions
        if not decision.arms and decision.producer in known and decision.consumer in known
    )


def facts_of(dispatch: DispatchRecord) -> dict[str, str]:
    """What a viewer shows of a dispatch."""
    return {
        "root": dispatch.root,
        "family": dispatch.family,
        "executable": dispatch.executable,
        "flops": str(dispatch.flops),
        "bytes read": str(dispatch.bytes_read),
        "bytes written": str(dispatch.bytes_written),
        "predicted us": f"{dispatch.predicted_ns / 1e3:.3g}",
    }


def why(decision: Decision) -> str:
    """A decision in words: verdict, reason, and what would change it."""
    words = f"{decision.verdict} [{decision.rule}] {decision.code}" + (decision.detail and f": {decision.detail}")
    change = advice(decision.code) if decision.verdict == "missed" else None
    return f"{words}. To change it: {change}" if change else words
