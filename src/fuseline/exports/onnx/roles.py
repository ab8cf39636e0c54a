"""What the nodes are that stay in the main graph: what the host runs, what holds graphs of its own, what needs no
dispatch."""

from __future__ import annotations

import onnx

from fuseline.exports.onnx.bodies import Bodies
from fuseline.exports.onnx.graph import Graph
from fuseline.exports.onnx.value_types import value_types
from fuseline.frontends.onnx.protos import inner_graphs
from fuseline.report.records import CompileRecord

CONTROL = "control flow"
"""A node with bodies or branches, which stay whole."""

HOST = "host operator"
"""A node that runs on the host."""

UNTYPED = "body of another type"
"""A node whose body in the standard has other types than its inputs: runtimes that infer the types inside of a function
refuse it there."""

KEPT = frozenset((CONTROL, HOST, UNTYPED))
"""Roles of nodes that are in no function, unless one cannot run without them."""


def roles_of(proto: onnx.ModelProto, graph: Graph, record: CompileRecord) -> dict[int, str]:
    """The role of each node that has one: control flow, a host operator, a body of another type, or `eliminated by` a
    pass."""
    hosts = {host.node for host in record.host_ops}
    untyped = _untyped(proto, graph)
    roles: dict[int, str] = {}
    for number, node in enumerate(graph.nodes):
        if any(True for _ in inner_graphs(node)):
            roles[number] = CONTROL
        elif node.name in hosts:
            roles[number] = HOST
        elif number in untyped:
            roles[number] = UNTYPED
        elif node.name in record.eliminated:
            roles[number] = f"eliminated by {record.eliminated[node.name]}"
    return roles


def _untyped(proto: onnx.ModelProto, graph: Graph) -> set[int]:
    """Nodes whose body of the standard is wrong for their types; equal questions are asked once."""
    bodies = Bodies(proto, value_types(proto))
    known: dict[object, bool] = {}
    found: set[int] = set()
    for number, node in enumerate(graph.nodes):
        elements = tuple(bodies.types[name].tensor_type.elem_type if name in bodies.types else 0 for name in node.input)
        key = (node.domain, node.op_type, elements, tuple(one.SerializeToString() for one in node.attribute))
        if key not in known:
            known[key] = bodies.infers(node)
        if not known[key]:
            found.add(number)
    return found
