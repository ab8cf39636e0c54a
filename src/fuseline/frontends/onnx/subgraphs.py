"""Nodes as protos, and the graphs inside them: loop bodies and branches."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

import onnx
import onnx_ir as ir


def graphs_of(attribute: ir.Attr) -> list[ir.Graph]:
    """The graphs that an attribute holds."""
    if attribute.type == ir.AttributeType.GRAPH:
        return [attribute.as_graph()]
    return list(attribute.as_graphs()) if attribute.type == ir.AttributeType.GRAPHS else []


def has_subgraphs(attributes: Mapping[str, ir.Attr]) -> bool:
    """Whether a node has a body or branches."""
    return any(graphs_of(attribute) for attribute in attributes.values())


def inner_nodes(attributes: Mapping[str, ir.Attr]) -> Iterator[ir.Node]:
    """Every node inside a node's subgraphs, nested ones too."""
    for attribute in attributes.values():
        for graph in graphs_of(attribute):
            for node in graph:
                yield node
                yield from inner_nodes(node.attributes)


def captured_names(attributes: Mapping[str, ir.Attr]) -> list[str]:
    """Names around a node that its subgraphs read, in order of appearance."""
    names: dict[str, None] = {}
    for attribute in attributes.values():
        for graph in graphs_of(attribute):
            _collect(graph, set(), names)
    return list(names)


def _collect(graph: ir.Graph, outer: set[str], names: dict[str, None]) -> None:
    local = outer | {str(v.name) for v in graph.inputs} | set(graph.initializers)
    for inner in graph:
        names.update({str(v.name): None for v in inner.inputs if v is not None and str(v.name) not in local})
        for attribute in inner.attributes.values():
            for nested in graphs_of(attribute):
                _collect(nested, local, names)
        local |= {str(v.name) for v in inner.outputs}
    names.update({str(v.name): None for v in graph.outputs if str(v.name) not in local})


def node_proto(
    source: ir.Node, attributes: Mapping[str, ir.Attr], outer: Mapping[str, ir.Attr] | None = None
) -> onnx.NodeProto:
    """A node with its resolved `attributes`; references inside its subgraphs to attributes of the function around it
    become those of `outer`."""
    proto = ir.serde.serialize_node(source)
    del proto.attribute[:]
    proto.attribute.extend(_attribute(name, attribute) for name, attribute in attributes.items())
    if outer:
        for attribute in proto.attribute:
            _resolve(attribute, outer)
    return proto


def _attribute(name: str, attribute: ir.Attr) -> onnx.AttributeProto:
    """An attribute under `name`: one that a function was called with has the name that the function gives it."""
    out = ir.serde.serialize_attribute(attribute)
    out.name = name
    return out


def _resolve(attribute: onnx.AttributeProto, outer: Mapping[str, ir.Attr]) -> None:
    for graph in (attribute.g, *attribute.graphs):
        for node in graph.node:
            kept = [_replaced(inner, outer) for inner in node.attribute]
            del node.attribute[:]
            node.attribute.extend(inner for inner in kept if inner is not None)


def _replaced(attribute: onnx.AttributeProto, outer: Mapping[str, ir.Attr]) -> onnx.AttributeProto | None:
    if not attribute.ref_attr_name:
        _resolve(attribute, outer)
        return attribute
    given = outer.get(attribute.ref_attr_name)
    if given is None:
        return None
    return _attribute(attribute.name, given)


def resolved(node: ir.Node, outer: Mapping[str, ir.Attr]) -> dict[str, ir.Attr]:
    """The node's attributes; references to a function's attributes are replaced, or left out where the caller gave
    none."""
    out: dict[str, ir.Attr] = {}
    for name, attribute in node.attributes.items():
        if attribute.is_ref():
            given = outer.get(str(attribute.ref_attr_name))
            if given is not None:
                out[name] = given
        else:
            out[name] = attribute
    return out
