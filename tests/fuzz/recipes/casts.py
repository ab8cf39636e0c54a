"""Conversions between element types."""

from __future__ import annotations

from typing import Any

import numpy as np

from tests.fuzz.exclusions import exclude
from tests.fuzz.graph import Graph
from tests.fuzz.recipe import recipe
from tests.fuzz.tensors import (
    BF16,
    BOOL,
    F16,
    F32,
    F64,
    I32,
    I64,
    INTEGERS,
    NUMBERS,
    U8,
    U32,
    Value,
    is_float,
    onnx_type,
)

TARGETS = (F32, F32, F64, F16, I32, I64, BOOL, U8, *INTEGERS, BF16)


@recipe("Cast", weight=2)
def cast(g: Graph, op: str) -> None:
    """Between any two types."""
    x, to = g.pick((*NUMBERS, BOOL)), g.choose(TARGETS)
    _exclude_infinities(x, to)
    g.add(op, x, to=onnx_type(to))


@recipe("CastLike", since=15, weight=0.4)
def cast_like(g: Graph, op: str) -> None:
    """To the type of another value."""
    x, like = g.pick((*NUMBERS, BOOL)), g.pick((*NUMBERS, BOOL))
    _exclude_infinities(x, like.dtype)
    g.add(op, x, like)


def _exclude_infinities(x: Value, to: np.dtype[Any]) -> None:
    lost = is_float(x.dtype) and not all(np.isfinite(array.astype(np.float64)).all() for array in x.arrays)
    exclude("infinity-as-uint32", lost and to == U32)
