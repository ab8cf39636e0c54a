"""Conversions between element types."""

from __future__ import annotations

from typing import Any

import numpy as np

from tests.fuzz.evaluate import Rejected
from tests.fuzz.graph import Graph
from tests.fuzz.recipe import recipe
from tests.fuzz.tensors import BF16, BOOL, F16, F32, F64, I32, I64, INTEGERS, NUMBERS, U8, Value, is_float, onnx_type

TARGETS = (F32, F32, F64, F16, I32, I64, BOOL, U8, *INTEGERS, BF16)


@recipe("Cast", weight=2)
def cast(g: Graph, op: str) -> None:
    """Between any two types; floats that are no integers of the target's range stay out of integers (what they become is another test's subject)."""
    x, target = g.pick((*NUMBERS, BOOL)), g.choose(TARGETS)
    _require_range(g, x, target)
    g.add(op, x, to=onnx_type(target))


@recipe("CastLike", since=15, weight=0.4)
def cast_like(g: Graph, op: str) -> None:
    """To the type of another value."""
    x, like = g.pick((*NUMBERS, BOOL)), g.pick((*NUMBERS, BOOL))
    _require_range(g, x, like.dtype)
    g.add(op, x, like)


def _require_range(g: Graph, x: Value, target: np.dtype[Any]) -> None:
    if g.wild or not is_float(x.dtype) or target not in INTEGERS:
        return
    limits = np.iinfo(target)
    if not x.every(lambda a: not a.size or (a.astype(np.float64).min() > limits.min - 1 and a.astype(np.float64).max() < limits.max)):
        raise Rejected("out of the range of the target")
