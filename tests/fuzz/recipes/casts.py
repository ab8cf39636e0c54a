"""Conversions between element types."""

from __future__ import annotations

from tests.fuzz.graph import Graph
from tests.fuzz.recipe import recipe
from tests.fuzz.tensors import BF16, BOOL, F16, F32, F64, I32, I64, INTEGERS, NUMBERS, U8, onnx_type

TARGETS = (F32, F32, F64, F16, I32, I64, BOOL, U8, *INTEGERS, BF16)


@recipe("Cast", weight=2)
def cast(g: Graph, op: str) -> None:
    """Between any two types."""
    g.add(op, g.pick((*NUMBERS, BOOL)), to=onnx_type(g.choose(TARGETS)))


@recipe("CastLike", since=15, weight=0.4)
def cast_like(g: Graph, op: str) -> None:
    """To the type of another value."""
    g.add(op, g.pick((*NUMBERS, BOOL)), g.pick((*NUMBERS, BOOL)))
