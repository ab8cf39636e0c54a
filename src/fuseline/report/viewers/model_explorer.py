"""Graphs and node data for Model Explorer: dispatches are layers that open into their ops.

Source: `graph_builder.py` and `node_data_builder.py` of ai-edge-model-explorer 0.1.34, whose field names these are.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from fuseline.report.records import CompileRecord, Decision
from fuseline.report.viewers.fusion_graph import Op, edges_of, facts_of, ops_of, why

GRAPH = "dispatches"

_GRADIENT = [{"stop": 0, "bgColor": "#ffffff"}, {"stop": 1, "bgColor": "#e8772e"}]


def graphs(record: CompileRecord) -> dict[str, Any]:
    """What the viewer loads as a JSON graph (a collection of one)."""
    ops = ops_of(record)
    into: dict[str, list[Decision]] = {}
    for decision in edges_of(record, ops):
        into.setdefault(decision.consumer, []).append(decision)
    layers = {_layer(dispatch.label): facts_of(dispatch) for dispatch in record.dispatches}
    nodes = [_node(op, into.get(op.id, ())) for op in ops]
    graph = {"id": GRAPH, "nodes": nodes, "groupNodeAttributes": layers}
    return {"label": record.model or "fuseline", "graphs": [graph]}


def _layer(label: str) -> str:
    """A namespace of one level: a slash would make two."""
    return label.replace("/", "_")


def _node(op: Op, decisions: Sequence[Decision]) -> dict[str, Any]:
    facts = {"kind": op.kind, "role": op.role, "loops": " x ".join(op.loops), "source nodes": ", ".join(op.nodes)}
    reasons = {f"edge from {decision.producer}": why(decision) for decision in decisions}
    return {
        "id": op.id,
        "label": op.kind,
        "namespace": "" if op.dispatch is None else _layer(op.dispatch.label),
        "attrs": [{"key": key, "value": value} for key, value in {**facts, **reasons}.items() if value],
        "incomingEdges": [
            {"sourceNodeId": decision.producer, "sourceNodeOutputId": "0", "targetNodeInputId": str(number)}
            for number, decision in enumerate(decisions)
        ],
    }


def node_data(record: CompileRecord, seconds: Sequence[float] = ()) -> dict[str, Any]:
    """Microseconds of each dispatch for its root op (measured `seconds`, in the order of the record, else predicted),
    as the viewer's node data: it colours layers by the sum of what is inside."""
    taken = list(seconds) or [dispatch.predicted_ns * 1e-9 for dispatch in record.dispatches]
    results: dict[str, Mapping[str, float]] = {}
    for dispatch, time in zip(record.dispatches, taken, strict=True):
        root = next((member for member in dispatch.members if member.role == "root"), None)
        member = root or next(iter(dispatch.members), None)
        if member is not None:
            results[member.id] = {"value": round(time * 1e6, 4)}
    name = "measured us" if seconds else "predicted us"
    return {GRAPH: {"name": name, "results": results, "gradient": _GRADIENT}}
