"""Strings, which stay on the host."""

from __future__ import annotations

from tests.fuzz.graph import Graph
from tests.fuzz.recipe import recipe
from tests.fuzz.tensors import F32, STRING


@recipe("StringNormalizer", since=10, weight=0.08)
def normalizer(g: Graph, op: str) -> None:
    """Of a vector."""
    x = g.new_input(STRING, [g.number(1, 4)])
    g.add(op, x, case_change_action=g.choose(["LOWER", "UPPER", "NONE"]), is_case_sensitive=1)


@recipe("StringConcat", since=20, weight=0.08)
def string_concat(g: Graph, op: str) -> None:
    """Two tensors that broadcast."""
    x = g.new_input(STRING, [g.number(1, 3)])
    g.add(op, x, g.broadcastable(x))


@recipe("StringSplit", since=20, weight=0.05)
def string_split(g: Graph, op: str) -> None:
    """By spaces."""
    x = g.new_input(STRING, [g.number(1, 3)])
    g.add_all(op, x, outputs=2, delimiter=" ")


@recipe("LabelEncoder", weight=0.08)
def label_encoder(g: Graph, op: str) -> None:
    """Words to numbers."""
    x = g.new_input(STRING, [g.number(1, 4)])
    g.add(
        op,
        x,
        domain="ai.onnx.ml",
        keys_strings=["a", "the", "Zebra"],
        values_floats=[1.0, 2.5, -3.0],
        default_float=0.25,
    )


@recipe("Equal", since=19, weight=0.08)
def equal(g: Graph, op: str) -> None:
    """Equal words, as a mask that numbers can use."""
    x = g.pick([STRING], fresh=0.5)
    g.add("Where", g.add(op, x, g.broadcastable(x)), g.new_input(F32, []), g.new_input(F32, []))
