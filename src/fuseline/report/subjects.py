"""What a user means by a name: an ONNX node, a structural id (`convolution.96eabbfb` or `96eabbfb`), or a dispatch
(`012_convolution`, `012_convolution_1x56x56x64_f32`, `12`)."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from fuseline.report.records import CompileRecord, Decision, DispatchRecord, HostOpRecord


@dataclass(frozen=True, slots=True)
class Subject:
    """What `name` stands for: structural ids (several where one ONNX node became several ops), and the dispatches they
    are in.

    `dispatch` is set where the name is that of a dispatch; `eliminated` names the pass that removed the node; `host` is
    set for a host op.
    """

    name: str
    ids: frozenset[str] = frozenset()
    dispatches: tuple[DispatchRecord, ...] = ()
    dispatch: DispatchRecord | None = None
    eliminated: str = ""
    host: HostOpRecord | None = None


def find_subject(record: CompileRecord, name: str) -> Subject | None:
    """What `name` stands for in `record`, None for a name that nothing has. ONNX names come first, then ids, then
    dispatches."""
    return _source_node(record, name) or _structural(record, name) or _dispatch(record, name)


def _source_node(record: CompileRecord, name: str) -> Subject | None:
    ids = {known for known, node in record.fusion_nodes.items() if name in node.nodes}
    ids |= {member.id for dispatch in record.dispatches for member in dispatch.members if name in member.nodes}
    for decision in record.decisions:
        ids |= {end for end, nodes in _ends(decision) if name in nodes}
    host = next((host for host in record.host_ops if host.node == name), None)
    eliminated = record.eliminated.get(name, "")
    if not (ids or host or eliminated or name in record.source_nodes):
        return None
    homes = tuple(d for d in record.dispatches if any(name in member.nodes or member.id in ids for member in d.members))
    return Subject(name, frozenset(ids), homes, eliminated=eliminated, host=host)


def _ends(decision: Decision) -> Iterable[tuple[str, tuple[str, ...]]]:
    yield decision.producer, decision.producer_nodes
    yield decision.consumer, decision.consumer_nodes


def _structural(record: CompileRecord, name: str) -> Subject | None:
    known = dict.fromkeys(record.fusion_nodes)
    known |= dict.fromkeys(end for decision in record.decisions for end, _ in _ends(decision))
    known |= dict.fromkeys(member.id for dispatch in record.dispatches for member in dispatch.members)
    found = next((full for full in known if name == full or ("." in full and name == full.partition(".")[2])), None)
    if found is None:
        return None
    homes = tuple(d for d in record.dispatches if any(member.id == found for member in d.members))
    return Subject(found, frozenset([found]), homes)


def _dispatch(record: CompileRecord, name: str) -> Subject | None:
    found = next((d for i, d in enumerate(record.dispatches) if d.is_called(name, i)), None)
    return (
        Subject(found.name, frozenset(member.id for member in found.members), (found,), found)
        if found is not None
        else None
    )


def suggestions(record: CompileRecord, name: str, limit: int = 5) -> list[str]:
    """Names like `name`: source nodes, then ids, that contain it."""
    lowered = name.lower()
    return [known for known in (*record.source_nodes, *record.fusion_nodes) if lowered in known.lower()][:limit]
