"""One compile as the document that the page's script reads: every list by position, so that nothing is said twice."""

from __future__ import annotations

from dataclasses import asdict
from typing import Any

import msgspec

from fuseline.report.dispatches import member_nodes
from fuseline.report.edge_counts import EdgeCounts, count_edges
from fuseline.report.op_remarks import op_remarks
from fuseline.report.page.decision_groups import decision_groups
from fuseline.report.page.inputs import Side
from fuseline.report.page.repeated_layers import repeated_layers
from fuseline.report.page.source_graph import source_graph
from fuseline.report.records import CompileRecord, DispatchRecord
from fuseline.report.sharing import sharing_json
from fuseline.report.statistics import statistics_rows


def side_document(side: Side) -> dict[str, Any]:
    """The document of one compile."""
    record, sharing = side.record, sharing_json(side.record)
    return {
        "title": side.title,
        "model": record.model,
        "target": record.target or "cpu",
        "threads": record.threads,
        "fusion": record.fusion,
        "dedup": record.dedup,
        "fingerprint": record.fingerprint,
        "statistics": [list(row) for row in statistics_rows(record)],
        "edges": _edge_counts(count_edges(record.decisions)),
        "phases": record.phase_seconds,
        "seconds": side.total_seconds,
        "peaks": None if side.peaks is None else asdict(side.peaks),
        "dispatches": _dispatches(side),
        "layers": [list(one) for one in repeated_layers([_structure(one) for one in record.dispatches])],
        "ops": _ops(record),
        "decisions": [msgspec.to_builtins(decision) for decision in record.decisions],
        "groups": decision_groups(record),
        "sources": source_graph(side),
        "memory": _memory(record),
        "classes": sharing["classes"],
        "sharing": sharing["decisions"],
        "quantization": msgspec.to_builtins(record.quantization),
        "hosts": msgspec.to_builtins(record.host_ops),
        "remarks": msgspec.to_builtins(op_remarks(record)),
        "eliminated": record.eliminated,
        "warnings": [*record.warnings, *record.notes],
        "assembly": list(side.assembly),
        "hasIr": bool(side.ir),
    }


def _edge_counts(counts: EdgeCounts) -> dict[str, Any]:
    return {
        "fused": counts.fused,
        "superseded": counts.superseded,
        "missed": counts.missed,
        "beside": counts.side_by_side,
    }


def _structure(dispatch: DispatchRecord) -> tuple[Any, ...]:
    """What dispatches of repeated layers have in common."""
    return dispatch.root, dispatch.shape, tuple(member.kind for member in dispatch.members)


def _dispatches(side: Side) -> list[dict[str, Any]]:
    seconds = list(side.seconds) or [None] * len(side.record.dispatches)
    return [_dispatch(one, taken) for one, taken in zip(side.record.dispatches, seconds, strict=True)]


def _dispatch(dispatch: DispatchRecord, seconds: float | None) -> dict[str, Any]:
    return {
        "name": dispatch.name,
        "label": dispatch.label,
        "root": dispatch.root,
        "family": dispatch.family,
        "form": dispatch.form,
        "executable": dispatch.executable,
        "kernels": list(dispatch.kernels),
        "loops": list(dispatch.loops),
        "members": [[member.id, member.role] for member in dispatch.members],
        "nodes": list(member_nodes(dispatch)),
        "flops": dispatch.flops,
        "read": dispatch.bytes_read,
        "written": dispatch.bytes_written,
        "scratch": dispatch.scratch_bytes,
        "workgroups": dispatch.workgroups,
        "codeBytes": dispatch.code_bytes,
        "predicted": dispatch.predicted_ns * 1e-9,
        "seconds": seconds,
        "fallback": dispatch.fallback,
        "unshared": list(dispatch.unshared),
    }


def _ops(record: CompileRecord) -> dict[str, Any]:
    """Every op by its structural id: kind, loops, source nodes."""
    found: dict[str, Any] = {
        id: {"kind": node.kind, "loops": list(node.loops), "nodes": list(node.nodes), "idiom": node.idiom}
        for id, node in record.fusion_nodes.items()
    }
    for dispatch in record.dispatches:
        for member in dispatch.members:
            known = {"kind": member.kind, "loops": [], "nodes": list(member.nodes), "idiom": ""}
            found.setdefault(member.id, known)
    return found


def _memory(record: CompileRecord) -> dict[str, Any]:
    figures = record.statistics
    return {
        "arena": figures.get("arena_bytes", 0),
        "transient": figures.get("transient_bytes", 0),
        "constants": figures.get("constant_bytes", {}),
        "transients": [msgspec.structs.astuple(one) for one in record.transients],
    }
