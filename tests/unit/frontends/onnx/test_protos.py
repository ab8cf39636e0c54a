"""Walks over a model's protos, nested graphs and functions included."""

from __future__ import annotations

import onnx
from onnx import helper

from fuseline.frontends.onnx import protos


def _graph(name: str, *nodes: onnx.NodeProto) -> onnx.GraphProto:
    return helper.make_graph(list(nodes), name, [], [])


def _relu(name: str) -> onnx.NodeProto:
    return helper.make_node("Relu", ["x"], ["y"], name=name)


def _branches(name: str, otherwise: onnx.GraphProto, then: onnx.GraphProto) -> onnx.NodeProto:
    """An If; the attributes of a node are sorted."""
    return helper.make_node("If", ["c"], ["y"], name=name, else_branch=otherwise, then_branch=then)


INNER = _branches("inner", _graph("e"), _graph("deep", _relu("d")))
OUTER = _branches("outer", _graph("o"), _graph("t", INNER, _relu("t1")))
FUNCTION = helper.make_function("org.example", "F", ["x"], ["y"], [INNER, _relu("f1")], [helper.make_opsetid("", 18)])
MODEL = helper.make_model(_graph("main", _relu("first"), OUTER), functions=[FUNCTION])


def test_every_graph_before_those_inside_it() -> None:
    assert [graph.name for graph in protos.graphs(MODEL)] == ["main", "o", "t", "e", "deep", "e", "deep"]


def test_every_node() -> None:
    names = [node.name for node in protos.nodes(MODEL)]
    assert names == ["first", "outer", "inner", "d", "t1", "inner", "d", "f1"]


def test_graphs_of_a_node_itself() -> None:
    assert [graph.name for graph in protos.inner_graphs(OUTER)] == ["o", "t"]
    several = helper.make_node("Any", [], [], bodies=[_graph("a"), _graph("b")], number=3)
    assert [graph.name for graph in protos.inner_graphs(several)] == ["a", "b"]
    assert list(protos.inner_graphs(_relu("r"))) == []


def test_names() -> None:
    assert protos.label_of(_relu("r"), 4) == "r"
    assert protos.label_of(_relu(""), 4) == "Relu_4"
    assert [protos.standard_domain(domain) for domain in ("", "ai.onnx", "ai.onnx.ml")] == ["", "", "ai.onnx.ml"]
