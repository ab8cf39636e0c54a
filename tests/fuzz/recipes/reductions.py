"""Operators that reduce or scan along axes."""

from __future__ import annotations

import numpy as np

from tests.fuzz.exclusions import exclude
from tests.fuzz.graph import Graph
from tests.fuzz.recipe import recipe
from tests.fuzz.recipes.movement import axis_of
from tests.fuzz.tensors import F32, F64, FLOATS, I32, I64, INTEGERS, NUMBERS, Value

REDUCED = (*FLOATS, I32, I64)


def _axes(g: Graph, x: Value) -> list[int] | None:
    if g.chance(0.15) or not x.rank:
        return None
    axes = sorted(int(a) for a in g.rng.choice(x.rank, g.number(1, x.rank), replace=False))
    return [a - x.rank for a in axes] if g.chance(0.3) else axes


@recipe("ReduceSum", "ReduceMean", "ReduceMax", "ReduceMin", weight=1)
@recipe("ReduceL1", "ReduceL2", "ReduceSumSquare", "ReduceProd", "ReduceLogSum", "ReduceLogSumExp", weight=0.4)
def reduce(g: Graph, op: str) -> None:
    """Axes as an attribute, later as an input; none mean all."""
    narrow = op in ("ReduceMax", "ReduceMin") and g.opset >= 13
    x = g.pick(NUMBERS if narrow else FLOATS if "Log" in op else REDUCED)
    if op == "ReduceLogSum":
        x = g.add("Add", g.add("Abs", x), g.constant(np.asarray(1, x.dtype)))
    exclude("sum-out-of-range", x.dtype in (I32, I64) and _overflows(x, op))
    exclude("reduction-of-nothing", not x.every(lambda a: a.size))
    axes, keep = _axes(g, x), {"keepdims": g.number(0, 1)} if g.chance(0.8) else {}
    if g.opset >= (13 if op == "ReduceSum" else 18):
        nothing = {"noop_with_empty_axes": g.number(0, 1)} if axes is None and g.chance(0.3) else {}
        g.add(op, x, *([] if axes is None else [g.ints(*axes)]), **keep, **nothing)
    else:
        g.add(op, x, **keep, **({} if axes is None else {"axes": axes}))


def _overflows(x: Value, op: str) -> bool:
    """Whether a sum or product of integers may leave the range of 32 bits."""
    most = {"ReduceProd": lambda a: np.prod(np.maximum(a, 1)), "ReduceSumSquare": lambda a: (a * a).sum()}.get(
        op, np.sum
    )
    with np.errstate(all="ignore"):
        return not x.every(lambda a: most(np.abs(a.astype(np.float64))) < 2.0**31)


@recipe("ArgMax", "ArgMin", weight=0.7)
def arg(g: Graph, op: str) -> None:
    """Of any axis that is not empty, first or last."""
    x = g.pick(NUMBERS, lambda v: v.rank > 0 and v.every(lambda a: a.size))
    last = {"select_last_index": g.number(0, 1)} if g.opset >= 12 and g.chance(0.5) else {}
    g.add(op, x, axis=axis_of(g, x), keepdims=g.number(0, 1), **last)


@recipe("CumSum", since=11, weight=0.7)
def cumulative(g: Graph, op: str) -> None:
    """Forwards or backwards, with or without the element itself."""
    x = g.pick((F32, F64, I32, I64), lambda v: v.rank > 0)
    axis = g.constant(np.asarray(g.number(-x.rank, x.rank - 1), g.choose([I32, I64])))
    g.add(op, x, axis, exclusive=g.number(0, 1), reverse=g.number(0, 1))


@recipe("TopK", since=10, weight=0.7)
def top_k(g: Graph, op: str) -> None:
    """Values and indices, in order (the exclusion `top-k-in-any-order`)."""
    x = g.pick((*FLOATS, *INTEGERS), lambda v: v.rank > 0)
    axis = axis_of(g, x)
    least = min(shape[axis] for shape in x.shapes)
    largest = {"largest": g.number(0, 1), "sorted": 1} if g.opset >= 11 else {}
    g.add_all(op, x, g.ints(g.number(min(least, 1), max(least, min(least, 1)))), outputs=2, axis=axis, **largest)


@recipe("Softmax", "LogSoftmax", weight=0.8)
def softmax(g: Graph, op: str) -> None:
    """Any axis; before opset 13 of the matrix that the axis splits the tensor into."""
    x = g.pick(FLOATS, lambda v: v.rank > 0)
    g.add(op, x, **({"axis": axis_of(g, x)} if g.chance(0.8) else {}))


@recipe("Hardmax", weight=0.4)
def hardmax(g: Graph, op: str) -> None:
    """Any axis."""
    x = g.pick(FLOATS, lambda v: v.rank > 0)
    g.add(op, x, axis=axis_of(g, x))


@recipe("LpNormalization", weight=0.4)
def lp_normalization(g: Graph, op: str) -> None:
    """Of order 1 or 2."""
    x = g.pick((F32, F64), lambda v: v.rank > 0)
    g.add(op, x, axis=axis_of(g, x), p=g.number(1, 2))
