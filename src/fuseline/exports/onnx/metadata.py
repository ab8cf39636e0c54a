"""What the model says of its functions: dispatches, ops, source nodes, and why they are fused, as metadata."""

from __future__ import annotations

import json
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from fuseline.exports.onnx.source import PREFIX
from fuseline.passes.fusion.plan import plan_id
from fuseline.report.explain import decision_line
from fuseline.report.records import CompileRecord, Decision, DispatchRecord


def put(holder: Any, values: Mapping[str, Any]) -> None:
    """Add entries to the metadata of a model, function or node (a proto), under our prefix; lists as JSON, and nothing
    for what is empty."""
    for key, value in values.items():
        if value:
            entry = holder.metadata_props.add()
            entry.key = PREFIX + key
            entry.value = value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)


def model_metadata(record: CompileRecord) -> dict[str, Any]:
    """What holds for the whole model."""
    return {
        "plan": plan_id(record),
        "graph": record.fingerprint,
        "target": record.target,
        "threads": str(record.threads),
        "fusion": record.fusion,
        "pipeline": record.pipeline,
    }


def function_metadata(dispatches: Sequence[DispatchRecord], nodes: Sequence[str], reasons: Reasons) -> dict[str, Any]:
    """What holds for one function: its dispatches, their ops by structural id, its source nodes, and the decisions."""
    members = [f"{member.kind}.{member.id.rpartition('.')[2]}" for one in dispatches for member in one.members]
    return {
        "dispatches": [dispatch.label for dispatch in dispatches],
        "members": members,
        "nodes": list(nodes),
        "reasons": reasons.of(dispatches),
    }


class Reasons:
    """Decisions by op, as lines."""

    def __init__(self, decisions: Iterable[Decision]) -> None:
        self._by_op: dict[str, list[Decision]] = defaultdict(list)
        for decision in decisions:
            for op in {decision.producer, decision.consumer}:
                self._by_op[op].append(decision)

    def of(self, dispatches: Sequence[DispatchRecord]) -> list[str]:
        """What was decided about the ops of some dispatches: why they are together, and why nothing else is with
        them."""
        ops = dict.fromkeys(member.id for dispatch in dispatches for member in dispatch.members)
        found = {id(decision): decision for op in ops for decision in self._by_op[op]}
        ranked = sorted(found.values(), key=lambda decision: decision.verdict != "fused")
        return list(dict.fromkeys(" ".join(decision_line(decision).split()) for decision in ranked))
