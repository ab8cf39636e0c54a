"""The new model: a function for each placement, and a main graph that calls them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import onnx
from onnx import helper

from fuseline.exports.onnx.bodies import with_defaults
from fuseline.exports.onnx.graph import Graph
from fuseline.exports.onnx.metadata import Reasons, function_metadata, model_metadata, put
from fuseline.exports.onnx.naming import call_name, function_name
from fuseline.exports.onnx.placement import Placement
from fuseline.frontends.onnx.dispatch_functions import DOMAIN, INDEX
from fuseline.frontends.onnx.protos import standard_domain
from fuseline.report.records import CompileRecord

LEAST_IR = 10
"""The first IR version with metadata of nodes and functions."""

INITIALIZERS_APART = 4
"""The first IR version in which an initializer needs no input of its name."""

VERSION = 1
"""The version of our domain."""


def fused_model(
    proto: onnx.ModelProto, graph: Graph, placement: Placement, record: CompileRecord, roles: Mapping[int, str]
) -> onnx.ModelProto:
    """The model of `graph` with functions. `proto` becomes that model; `roles`: what nodes are that are in no
    dispatch."""
    taken = {function.name for function in proto.functions if function.domain == DOMAIN}
    names = _function_names(graph, placement, record, taken)
    calls = {graph.nodes[number].name for what, number in placement.main_nodes if what == "node"}
    reasons = Reasons(record.decisions)
    infos = {info.name: info for info in proto.graph.value_info}
    nodes = [_copy(graph.nodes[number], number) for number in range(len(graph.nodes))]
    imports = [*proto.opset_import]
    opsets = {standard_domain(item.domain): item.version for item in imports}
    main: list[onnx.NodeProto] = []
    for what, number in placement.main_nodes:
        if what == "node":
            put(nodes[number], {"role": roles.get(number, "")})
            main.append(nodes[number])
            continue
        members = placement.functions[number]
        with_defaults([nodes[node] for node in members], opsets)
        inputs, outputs = _borders(graph, placement, number)
        dispatches = [record.dispatches[one] for one in placement.dispatches[number]]
        about = function_metadata(dispatches, [graph.nodes[node].name for node in members], reasons)
        function = _function(names[number], inputs, outputs, [nodes[node] for node in members], imports)
        inner = {name for node in members for name in graph.writes[node]} - set(outputs)
        function.value_info.extend(infos[name] for name in sorted(inner & infos.keys()))
        put(function, about)
        proto.functions.append(function)
        main.append(_call(function, _unique(call_name(dispatches), calls), about["dispatches"]))
    _replace_main(proto, main)
    put(proto, model_metadata(record))
    return proto


def _function_names(graph: Graph, placement: Placement, record: CompileRecord, taken: set[str]) -> dict[int, str]:
    names: dict[int, str] = {}
    for number, members in placement.functions.items():
        numbers = placement.dispatches[number]
        name = function_name(
            [record.dispatches[one] for one in numbers], numbers, [graph.nodes[node] for node in members]
        )
        names[number] = _unique(name, taken)
    return names


def _unique(name: str, taken: set[str]) -> str:
    """`name`, with a number where it is taken; it is, from now on: onnxruntime refuses two nodes of one name."""
    found, number = name, 0
    while found in taken:
        number += 1
        found = f"{name}_{number}"
    taken.add(found)
    return found


def _copy(node: onnx.NodeProto, number: int) -> onnx.NodeProto:
    out = onnx.NodeProto()
    out.CopyFrom(node)
    entry = out.metadata_props.add()
    entry.key, entry.value = INDEX, str(number)
    return out


def _borders(graph: Graph, placement: Placement, number: int) -> tuple[list[str], list[str]]:
    """What a function takes, and what it hands out: names of values in the order of its nodes."""
    members = placement.functions[number]
    made = {name for node in members for name in graph.writes[node]}
    inputs = dict.fromkeys(name for node in members for name in graph.reads[node] if name not in made)
    outputs = [
        name for node in members for name in graph.writes[node] if placement.is_read_outside(graph, name, number)
    ]
    return list(inputs), outputs


def _function(
    name: str,
    inputs: Sequence[str],
    outputs: Sequence[str],
    nodes: Sequence[onnx.NodeProto],
    imports: Sequence[onnx.OperatorSetIdProto],
) -> onnx.FunctionProto:
    nested = any(node.domain == DOMAIN for node in nodes)
    used = [item for item in imports if nested or item.domain != DOMAIN]
    return helper.make_function(DOMAIN, name, inputs, outputs, nodes, used)


def _call(function: onnx.FunctionProto, name: str, dispatches: Sequence[str]) -> onnx.NodeProto:
    call = helper.make_node(function.name, list(function.input), list(function.output), name=name, domain=DOMAIN)
    put(call, {"dispatches": list(dispatches)})
    return call


def _replace_main(proto: onnx.ModelProto, nodes: Sequence[onnx.NodeProto]) -> None:
    graph = proto.graph
    del graph.node[:]
    graph.node.extend(nodes)
    seen = {name for node in nodes for name in node.output}
    kept = [info for info in graph.value_info if info.name in seen]
    del graph.value_info[:]
    graph.value_info.extend(kept)
    if proto.ir_version < INITIALIZERS_APART:
        _drop_initialized_inputs(graph)
    proto.ir_version = max(proto.ir_version, LEAST_IR)
    if all(item.domain != DOMAIN for item in proto.opset_import):
        proto.opset_import.append(helper.make_opsetid(DOMAIN, VERSION))


def _drop_initialized_inputs(graph: onnx.GraphProto) -> None:
    """Before IR version 4 an initializer was an input as well, and no default for one as it is since."""
    names = {tensor.name for tensor in graph.initializer}
    kept = [info for info in graph.input if info.name not in names]
    del graph.input[:]
    graph.input.extend(kept)
