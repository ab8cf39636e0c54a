"""What the nodes are that stay in the main graph: what the host runs, what holds graphs of its own, what needs no
dispatch."""

from __future__ import annotations

from collections.abc import Container

import onnx

from fuseline.exports.onnx.graph import Graph
from fuseline.exports.onnx.value_types import value_types
from fuseline.frontends.onnx.protos import inner_graphs
from fuseline.report.records import CompileRecord

CONTROL = "control flow"
"""A node with bodies or branches, which stay whole."""

HOST = "host operator"
"""A node that runs on the host."""

UNTYPED = "body of another type"
"""A node whose body in the standard is of f32 alone: other runtimes ask for its types inside of a function."""

KEPT = frozenset((CONTROL, HOST, UNTYPED))
"""Roles of nodes that are in no function, unless one cannot run without them."""


_OF_F32 = frozenset(("MeanVarianceNormalization",))


def roles_of(proto: onnx.ModelProto, graph: Graph, record: CompileRecord) -> dict[int, str]:
    """The role of each node that has one: control flow, a host operator, a body of another type, or `eliminated by` a
    pass."""
    types = value_types(proto) if any(node.op_type in _OF_F32 for node in graph.nodes) else {}
    hosts = {host.node for host in record.host_ops}
    roles: dict[int, str] = {}
    for number, node in enumerate(graph.nodes):
        if any(True for _ in inner_graphs(node)):
            roles[number] = CONTROL
        elif node.name in hosts:
            roles[number] = HOST
        elif node.op_type in _OF_F32 and not _is_f32(types.get(node.input[0])):
            roles[number] = UNTYPED
        elif node.name in record.eliminated:
            roles[number] = f"eliminated by {record.eliminated[node.name]}"
    return roles


def _is_f32(type_: onnx.TypeProto | None) -> bool:
    return type_ is not None and type_.tensor_type.elem_type == onnx.TensorProto.FLOAT


def spelled_from(name: str, known: Container[str]) -> str:
    """The node behind a name in the records: operators of onnxruntime's are read as several, named after them."""
    return name if name in known else name.rpartition("/")[0]
