"""What the nodes are that stay in the main graph: what the host runs, what holds graphs of its own, what needs no
dispatch."""

from __future__ import annotations

from collections.abc import Container

from fuseline.exports.onnx.graph import Graph
from fuseline.frontends.onnx.protos import inner_graphs
from fuseline.report.records import CompileRecord

CONTROL = "control flow"
"""A node with bodies or branches, which stay whole."""

HOST = "host operator"
"""A node that runs on the host."""

KEPT = frozenset((CONTROL, HOST))
"""Roles of nodes that are in no function, unless one cannot run without them."""


def roles_of(graph: Graph, record: CompileRecord) -> dict[int, str]:
    """The role of each node that has one: control flow, a host operator, or `eliminated by` a pass."""
    hosts = {host.node for host in record.host_ops}
    roles: dict[int, str] = {}
    for number, node in enumerate(graph.nodes):
        if any(True for _ in inner_graphs(node)):
            roles[number] = CONTROL
        elif node.name in hosts:
            roles[number] = HOST
        elif node.name in record.eliminated:
            roles[number] = f"eliminated by {record.eliminated[node.name]}"
    return roles


def spelled_from(name: str, known: Container[str]) -> str:
    """The node behind a name in the records: operators of onnxruntime's are read as several, named after them."""
    return name if name in known else name.rpartition("/")[0]
