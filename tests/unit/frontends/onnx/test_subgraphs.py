"""Graphs inside nodes: which there are, what they read, and a node as a proto."""

from __future__ import annotations

import onnx
import onnx_ir as ir
from onnx import AttributeProto, TensorProto, helper

from fuseline.frontends.onnx import subgraphs


def _graph(*nodes: onnx.NodeProto, inputs: str = "", outputs: str = "", held: str = "") -> onnx.GraphProto:
    given, asked = ([onnx.ValueInfoProto(name=name) for name in text.split()] for text in (inputs, outputs))
    weights = [helper.make_tensor(name, TensorProto.FLOAT, [1], [1.0]) for name in held.split()]
    return helper.make_graph(list(nodes), "g", given, asked, weights)


def _op(op_type: str, inputs: str, outputs: str, **attributes: object) -> onnx.NodeProto:
    return helper.make_node(op_type, inputs.split(), outputs.split(), **attributes)  # pyright: ignore[reportArgumentType]


def _node(proto: onnx.NodeProto) -> ir.Node:
    return ir.from_proto(proto)


DEEP = _op("If", "flag", "d", then_branch=_graph(_op("Abs", "far", "u"), outputs="u"), else_branch=_graph(outputs="x"))
THEN = _graph(_op("Add", "x w", "t"), DEEP, _op("Mul", "t near", "v"), inputs="x", outputs="v last", held="w")
CHOICE = _op("If", "c", "y", then_branch=THEN, else_branch=_graph(_op("Neg", "other", "n"), outputs="n"))


def test_graphs_of_attributes() -> None:
    attributes = _node(CHOICE).attributes
    assert [len(subgraphs.graphs_of(attribute)) for attribute in attributes.values()] == [1, 1]
    several = _node(_op("Any", "", "y", bodies=[_graph(), _graph(_op("Abs", "x", "t"))], number=3)).attributes
    assert [len(list(graph)) for graph in subgraphs.graphs_of(several["bodies"])] == [0, 1]
    assert subgraphs.graphs_of(several["number"]) == []
    assert subgraphs.has_subgraphs(attributes) and subgraphs.has_subgraphs(several)
    assert not subgraphs.has_subgraphs(_node(_op("Relu", "x", "y")).attributes)


def test_nodes_inside_each_other() -> None:
    found = [node.op_type for node in subgraphs.inner_nodes(_node(CHOICE).attributes)]
    assert sorted(found) == ["Abs", "Add", "If", "Mul", "Neg"]
    assert found.index("If") < found.index("Abs") < found.index("Mul")


def test_names_that_are_read_around_a_node() -> None:
    """Not those of inputs, weights and earlier nodes inside; those of outputs that no node inside makes."""
    assert sorted(subgraphs.captured_names(_node(CHOICE).attributes)) == ["far", "flag", "last", "near", "other"]
    hidden = _graph(_op("Neg", "t", "t2"), _op("Abs", "t2", "t"), outputs="t")
    assert subgraphs.captured_names(_node(_op("If", "c", "y", then_branch=hidden)).attributes) == ["t"]


def _referring(op_type: str, name: str, to: str, kind: int) -> onnx.NodeProto:
    node = _op(op_type, "x", "y")
    node.attribute.append(AttributeProto(name=name, ref_attr_name=to, type=kind))  # pyright: ignore[reportArgumentType]
    return node


def test_a_node_as_a_proto_has_the_attributes_it_is_given() -> None:
    source = _node(_op("LeakyRelu", "x", "y", alpha=0.5))
    given = {"alpha": ir.AttrFloat32("slope", 2.0)}  # as the function around it calls it
    (attribute,) = subgraphs.node_proto(source, given).attribute
    assert (attribute.name, attribute.f, list(subgraphs.node_proto(source, {}).attribute)) == ("alpha", 2.0, [])
    assert source.attributes["alpha"].as_float() == 0.5


def test_references_inside_are_resolved() -> None:
    inner = _graph(_referring("Softmax", "axis", "ax", AttributeProto.INT), outputs="y")
    nested = _graph(_op("If", "c", "z", then_branch=inner, else_branch=inner), outputs="z")
    source = _node(_op("If", "c", "y", then_branch=nested, else_branch=nested))

    def axis(outer: dict[str, ir.Attr] | None) -> list[AttributeProto]:
        proto = subgraphs.node_proto(source, source.attributes, outer)
        return list(proto.attribute[0].g.node[0].attribute[1].g.node[0].attribute)

    (found,) = axis({"ax": ir.AttrInt64("ax", 2)})
    assert (found.name, found.i, found.ref_attr_name) == ("axis", 2, "")
    assert axis({"other": ir.AttrInt64("other", 2)}) == []  # the caller gives none: the default holds
    (kept,) = axis(None)
    assert kept.ref_attr_name == "ax"
