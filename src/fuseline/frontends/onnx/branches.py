"""The branches of an `If` that runs on the host, each as a model of its own, so that both can be compiled."""

from __future__ import annotations

from collections.abc import Iterable
from typing import NamedTuple

import onnx
from onnx import helper


class BranchModel(NamedTuple):
    """A branch: its inputs are those operands of the host operator, by number, that it reads."""

    proto: onnx.ModelProto
    operands: tuple[int, ...]


class Branches(NamedTuple):
    """Both ways on from a condition, which is the host operator's operand of this number."""

    condition: int
    then: BranchModel
    otherwise: BranchModel


def branches_of(host_model: bytes) -> Branches | None:
    """The branches behind a serialised host operator (a model of one node); None where it is no `If` or its condition
    is no operand."""
    model = onnx.load_model_from_string(host_model)
    node = model.graph.node[0]
    names = [value.name for value in model.graph.input]
    if node.op_type != "If" or node.domain or node.input[0] not in names:
        return None
    bodies = {attribute.name: attribute.g for attribute in node.attribute}
    then, otherwise = (_branch(model, bodies[name], names) for name in ("then_branch", "else_branch"))
    return Branches(names.index(node.input[0]), then, otherwise)


def _branch(model: onnx.ModelProto, body: onnx.GraphProto, names: list[str]) -> BranchModel:
    """A model that computes `body`. What it answers without computing it gets a name of its own: no input may be an
    output."""
    read = _names_read(body)
    used = [i for i, name in enumerate(names) if name in read]
    computed = {name for node in body.node for name in node.output}
    results = [value.name if value.name in computed else f"@r{i}" for i, value in enumerate(body.output)]
    last = [
        helper.make_node("Identity", [value.name], [name])
        for value, name in zip(body.output, results, strict=True)
        if value.name != name
    ]
    outputs = [_renamed(value, name) for value, name in zip(body.output, results, strict=True)]
    constants = [*(tensor for tensor in model.graph.initializer if tensor.name in read), *body.initializer]
    graph = helper.make_graph(
        [*body.node, *last], body.name or "branch", [model.graph.input[i] for i in used], outputs, constants
    )
    graph.value_info.extend(body.value_info)
    proto = helper.make_model(
        graph, opset_imports=model.opset_import, functions=model.functions, ir_version=model.ir_version
    )
    return BranchModel(proto, tuple(used))


def _renamed(value: onnx.ValueInfoProto, name: str) -> onnx.ValueInfoProto:
    """An output without the sizes that the branch declares: exporters state those of one branch for both."""
    out = onnx.ValueInfoProto(name=name)
    out.type.CopyFrom(value.type)
    if out.type.HasField("tensor_type"):
        out.type.tensor_type.ClearField("shape")
    return out


def _names_read(graph: onnx.GraphProto) -> set[str]:
    names = {value.name for value in graph.output}
    for node in graph.node:
        names |= set(node.input)
        for inner in _subgraphs(node):
            names |= _names_read(inner)
    return names


def _subgraphs(node: onnx.NodeProto) -> Iterable[onnx.GraphProto]:
    for attribute in node.attribute:
        if attribute.HasField("g"):
            yield attribute.g
        yield from attribute.graphs
