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
    Array,
    Value,
    is_float,
    onnx_type,
)

TARGETS = (F32, F32, F64, F16, I32, I64, BOOL, U8, *INTEGERS, BF16)


@recipe("Cast", weight=2)
def cast(g: Graph, op: str) -> None:
    """Between any two types."""
    x, to = g.pick((*NUMBERS, BOOL)), g.choose(TARGETS)
    _exclude_outsiders(x, to)
    g.add(op, x, to=onnx_type(to))


@recipe("CastLike", since=15, weight=0.4)
def cast_like(g: Graph, op: str) -> None:
    """To the type of another value."""
    x, like = g.pick((*NUMBERS, BOOL)), g.pick((*NUMBERS, BOOL))
    _exclude_outsiders(x, like.dtype)
    g.add(op, x, like)


def _exclude_outsiders(x: Value, to: np.dtype[Any]) -> None:
    exclude("outside-of-uint32", to == U32 and is_float(x.dtype) and not x.every(_within))


def _within(array: Array) -> bool:
    """Whether all elements are numbers that 32 bits hold, with or without a sign."""
    wide = array.astype(np.float64)
    return bool(((wide > -(2.0**31)) & (wide < 2.0**32)).all())
