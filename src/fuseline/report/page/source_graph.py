"""The model's own graph: nodes as they were read, who feeds whom, and what became of each."""

from __future__ import annotations

from typing import Any

from fuseline.report.page.inputs import Side, SourceNode
from fuseline.report.records import CompileRecord


def source_graph(side: Side) -> list[dict[str, Any]]:
    """The nodes in the order of the model; those that records name where the model was not at hand (without edges).
    `at`: the dispatches that a node runs in, by position; `gone`: the pass that removed it; `host`: why it runs on the
    host."""
    known = side.sources or [SourceNode(name, "") for name in side.record.source_nodes]
    at, hosts = _homes(side.record), {host.node: host.reason for host in side.record.host_ops}
    return [
        {
            "name": node.name,
            "op": node.operator,
            "inputs": list(node.inputs),
            "at": at.get(node.name, []),
            "gone": side.record.eliminated.get(node.name, ""),
            "host": hosts.get(node.name, ""),
        }
        for node in known
    ]


def _homes(record: CompileRecord) -> dict[str, list[int]]:
    found: dict[str, list[int]] = {}
    for number, dispatch in enumerate(record.dispatches):
        for name in dict.fromkeys(name for member in dispatch.members for name in member.nodes):
            found.setdefault(name, []).append(number)
    return found
