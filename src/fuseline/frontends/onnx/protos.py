"""Walks over a model's protos: graphs, nodes and constants, nested ones and those of functions included."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

import onnx
from onnx import AttributeProto


def graphs(proto: onnx.ModelProto) -> Iterator[onnx.GraphProto]:
    """Every graph, each before those inside it."""
    yield from nested_graphs(proto.graph)
    for function in proto.functions:
        for node in function.node:
            for graph in inner_graphs(node):
                yield from nested_graphs(graph)


def nested_graphs(graph: onnx.GraphProto) -> Iterator[onnx.GraphProto]:
    """A graph and every graph inside it."""
    yield graph
    for node in graph.node:
        for inner in inner_graphs(node):
            yield from nested_graphs(inner)


def inner_graphs(node: onnx.NodeProto) -> Iterator[onnx.GraphProto]:
    """The graphs that a node holds itself."""
    for attribute in node.attribute:
        if attribute.type == AttributeProto.GRAPH:
            yield attribute.g
        yield from attribute.graphs


def nodes(proto: onnx.ModelProto) -> Iterator[onnx.NodeProto]:
    """Every node."""
    yield from nested_nodes(proto.graph.node)
    for function in proto.functions:
        yield from nested_nodes(function.node)


def nested_nodes(given: Iterable[onnx.NodeProto]) -> Iterator[onnx.NodeProto]:
    """Nodes and those in their graphs."""
    for node in given:
        yield node
        for graph in inner_graphs(node):
            yield from nested_nodes(graph.node)


def label_of(node: onnx.NodeProto, index: int) -> str:
    """What a node is called in errors and reports: its name, else its operator and place."""
    return node.name or f"{node.op_type}_{index}"


def standard_domain(domain: str) -> str:
    """A domain with the default one always spelled as the empty text."""
    return "" if domain == "ai.onnx" else domain
