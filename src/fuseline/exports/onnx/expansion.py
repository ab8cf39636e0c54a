"""Nodes that a partition splits, as the nodes of their bodies: where a compile of those gives the same plan, each part
stands in the function of its dispatch.

    Conv with a bias in two dispatches    =>    Conv in the one, Add in the other
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping
from dataclasses import replace

import onnx

from fuseline.errors import FuselineError
from fuseline.exports.onnx.bodies import Bodies
from fuseline.exports.onnx.metadata import put
from fuseline.exports.onnx.partition import Partition
from fuseline.exports.onnx.source import SOURCE, name_nodes
from fuseline.exports.onnx.value_types import value_types
from fuseline.frontends.onnx.model_file import OpenedModel
from fuseline.frontends.onnx.protos import nested_nodes
from fuseline.ir.rounds import rounds
from fuseline.passes.fusion.plan import plan_id

Compile = Callable[[OpenedModel], Partition]

_MOST_ROUNDS = 64
"""How deep functions may call each other."""


def expanded(
    model: OpenedModel, partition: Partition, compile_again: Compile
) -> tuple[OpenedModel, Partition, list[str]]:
    """The model with nodes that `partition` splits as their bodies, what a compile makes of it, and those nodes: all of
    them where that gives the same plan, else those whose operator alone does."""
    done: list[str] = []
    tried: set[str] = set()
    for _ in rounds("expanding nodes", most=_MOST_ROUNDS):
        found = {name: operator for name, operator in _split(model, partition).items() if name not in tried}
        if not found:
            break
        tried |= found.keys()
        for names in _choices(found):
            larger = None if set(names) <= set(done) else _with_bodies(model, names)
            if larger is None:
                continue
            other = _compiled(larger, compile_again)
            if other is not None and plan_id(other.record) == plan_id(partition.record):
                model, partition = larger, other
                done += names
    return model, partition, sorted(done)


def _compiled(model: OpenedModel, compile_again: Compile) -> Partition | None:
    """What a compile makes of a model; None where it refuses: a plan, say, knows nothing of the nodes of a body."""
    try:
        return compile_again(model)
    except FuselineError:
        return None


def _choices(found: Mapping[str, str]) -> list[list[str]]:
    """Sets of nodes to try: all, then those of one operator at a time."""
    operators = sorted(set(found.values()))
    alone = [[name for name, its in found.items() if its == operator] for operator in operators]
    return [list(found), *(alone if len(alone) > 1 else [])]


def _split(model: OpenedModel, partition: Partition) -> dict[str, str]:
    """The operators of nodes that stand in several dispatches and are not computed in each, and of calls of functions
    that the host has a part of, by name."""
    nodes = {node.name: node for node in model.split.proto.graph.node}
    hosts = {host.node for host in partition.record.host_ops}
    local = {(one.domain, one.name) for one in model.split.proto.functions}
    homes = partition.homes()
    found: dict[str, str] = {}
    for name, node in nodes.items():
        calls_out = (node.domain, node.op_type) in local and name in hosts
        if calls_out or (len(homes.get(name, ())) > 1 and not partition.is_repeatable(name)):
            found[name] = f"{node.domain}:{node.op_type}"
    return found


def _with_bodies(model: OpenedModel, names: Collection[str]) -> OpenedModel | None:
    """The model with the bodies of some nodes in their place; None where none of them has one."""
    old = model.split.proto
    bodies = Bodies(old, value_types(old))
    found = {node.name: bodies.of(node) for node in old.graph.node if node.name in names}
    if not any(found.values()):
        return None
    proto = onnx.ModelProto()
    proto.CopyFrom(old)
    del proto.graph.node[:]
    for node in old.graph.node:
        inner = found.get(node.name)
        proto.graph.node.extend([node] if inner is None else _marked(inner, node.name))
    _forget_functions(proto, _called(old) - _called(proto))
    name_nodes(proto.graph.node)
    return replace(model, split=replace(model.split, proto=proto))


def _called(proto: onnx.ModelProto) -> set[tuple[str, str, str]]:
    """The functions of a model that its graph calls, directly or through others."""
    functions = {(one.domain, one.name, one.overload): one for one in proto.functions}
    found: set[tuple[str, str, str]] = set()
    waiting = list(nested_nodes(proto.graph.node))
    while waiting:
        node = waiting.pop()
        name = (node.domain, node.op_type, node.overload)
        if name in functions and name not in found:
            found.add(name)
            waiting += nested_nodes(functions[name].node)
    return found


def _forget_functions(proto: onnx.ModelProto, names: Collection[tuple[str, str, str]]) -> None:
    kept = [one for one in proto.functions if (one.domain, one.name, one.overload) not in names]
    del proto.functions[:]
    proto.functions.extend(kept)


def _marked(nodes: list[onnx.NodeProto], source: str) -> list[onnx.NodeProto]:
    for node in nodes:
        put(node, {SOURCE: source})
    return nodes
