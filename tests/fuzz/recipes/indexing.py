"""Reads and writes at places that are themselves values."""

from __future__ import annotations

import numpy as np

from tests.fuzz.graph import Graph
from tests.fuzz.recipe import recipe
from tests.fuzz.recipes.movement import axis_of
from tests.fuzz.tensors import BOOL, F32, F64, I32, I64, NUMBERS, STRING, Shape, Value

ANY = (*NUMBERS, BOOL, F32, F32, F32)


def places(
    g: Graph,
    size: int,
    shape: Shape,
    *,
    negative: bool = True,
    dtypes: tuple[np.dtype[np.generic], ...] = (I64, I64, I32),
) -> Value:
    """Indices below `size`, from either end: a weight, at times a value made at run time."""
    low = -size if negative and g.opset >= 11 and g.chance(0.4) else 0
    array = g.rng.integers(low, max(size, 1), shape)
    found = g.constant(array.astype(g.choose(dtypes)))
    if not g.chance(0.3):
        return found
    fed = g.new_input(found.dtype, list(shape))
    fed.arrays = tuple(found.arrays[0].copy() for _ in fed.arrays)
    return fed


def _least(x: Value, axis: int) -> int:
    return min(shape[axis] for shape in x.shapes)


@recipe("Gather", weight=2)
def gather(g: Graph, op: str) -> None:
    """Rows along any axis; a scalar index too."""
    x = g.pick((*ANY, STRING), lambda v: v.rank > 0)
    axis = axis_of(g, x)
    shape = tuple(g.number(1, 4) for _ in range(g.choose([0, 1, 1, 2])))
    g.add(op, x, places(g, _least(x, axis), shape), axis=axis)


@recipe("GatherElements", since=11)
def gather_elements(g: Graph, op: str) -> None:
    """As many rows as one likes, the other sizes as in the data."""
    x = g.pick(ANY, lambda v: v.rank > 0 and v.static)
    axis = axis_of(g, x)
    shape = tuple(g.number(1, 5) if a == axis % x.rank else g.number(1, max(size, 1)) for a, size in enumerate(x.shape))
    g.add(op, x, places(g, _least(x, axis), shape), axis=axis)


@recipe("GatherND", since=11, weight=0.8)
def gather_nd(g: Graph, op: str) -> None:
    """With batch dimensions from opset 12 on."""
    x = g.pick(ANY, lambda v: v.rank > 0)
    batch = g.number(0, min(1, x.rank - 1)) if g.opset >= 12 and x.fixed(0) else 0
    depth = g.number(1, x.rank - batch)
    rows = (*x.shape[:batch], *(g.number(1, 3) for _ in range(g.choose([0, 1, 1, 2]))))
    columns = [g.rng.integers(0, max(_least(x, batch + i), 1), rows) for i in range(depth)]
    g.add(op, x, g.constant(np.stack(columns, -1).astype(I64)), **({"batch_dims": batch} if g.opset >= 12 else {}))


@recipe("ScatterElements", since=11, weight=0.8)
def scatter_elements(g: Graph, op: str) -> None:
    """Each place at most once without a reduction (the exclusion `written-twice`); any with one."""
    x = g.pick((F32, F64, I32, I64), lambda v: v.rank > 0 and v.static and min(v.shape) > 0)
    axis = axis_of(g, x) % x.rank
    shape = tuple(g.number(1, size) for size in x.shape)
    reduction = (
        g.choose(["none", "add", "mul", *(["max", "min"] if g.opset >= 18 else [])]) if g.opset >= 16 else "none"
    )
    index = _columns(g, shape, axis, x.shape[axis], unique=reduction == "none")
    updates = g.constant(g.contents(x.dtype, shape))
    g.add(
        op, x, g.constant(index.astype(I64)), updates, axis=axis, **({"reduction": reduction} if g.opset >= 16 else {})
    )


def _columns(g: Graph, shape: Shape, axis: int, size: int, *, unique: bool) -> np.ndarray:
    if not unique:
        return g.rng.integers(0, size, shape)
    moved = tuple(s for a, s in enumerate(shape) if a != axis)
    flat = [g.rng.permutation(size)[: shape[axis]] for _ in range(int(np.prod(moved)))]
    return np.moveaxis(np.array(flat).reshape(*moved, shape[axis]), -1, axis)


@recipe("ScatterND", since=11, weight=0.8)
def scatter_nd(g: Graph, op: str) -> None:
    """Rows or elements, each at most once without a reduction (the exclusion `written-twice`)."""
    x = g.pick(
        (F32, F64, I32, I64),
        lambda v: v.rank > 0 and min(min(s) for s in v.shapes) > 0 and all(v.fixed(a) for a in range(1, v.rank)),
    )
    depth = g.number(1, x.rank)
    space = [_least(x, a) for a in range(depth)]
    reduction = (
        g.choose(["none", "add", "mul", *(["max", "min"] if g.opset >= 18 else [])]) if g.opset >= 16 else "none"
    )
    count = g.number(1, min(4, int(np.prod(space))))
    flat = (
        g.rng.permutation(int(np.prod(space)))[:count]
        if reduction == "none"
        else g.rng.integers(0, int(np.prod(space)), count)
    )
    index = np.stack(np.unravel_index(flat, space), -1).astype(I64)
    updates = g.contents(x.dtype, (count, *x.shape[depth:]))
    g.add(op, x, g.constant(index), g.constant(updates), **({"reduction": reduction} if g.opset >= 16 else {}))


@recipe("OneHot", since=9, weight=0.6)
def one_hot(g: Graph, op: str) -> None:
    """Along any new axis."""
    depth = g.number(1, 6)
    index = places(g, depth, tuple(g.number(1, 4) for _ in range(g.number(0, 2))))
    values = g.constant(g.contents(g.choose([F32, F32, I64, I32]), (2,)))
    rank = index.rank + 1
    g.add(
        op,
        index,
        g.constant(np.asarray(g.choose([depth, max(depth - 1, 1)]), I64)),
        values,
        axis=g.number(-rank, rank - 1),
    )


@recipe("Compress", since=9, weight=0.3)
def compress(g: Graph, op: str) -> None:
    """Sizes that only the run knows."""
    x = g.pick((F32, F32, F64, I64, BOOL), lambda v: v.rank > 0)
    axis = g.number(0, x.rank - 1) if g.chance(0.7) else None
    length = _least(x, axis) if axis is not None else min(int(np.prod(s)) for s in x.shapes)
    mask = g.constant(g.rng.integers(0, 2, g.number(0, length)).astype(bool))
    g.add(op, x, mask, **({} if axis is None else {"axis": axis}))


@recipe("NonZero", since=9, weight=0.3)
def nonzero(g: Graph, op: str) -> None:
    """Sizes that only the run knows."""
    g.add(op, g.pick((F32, BOOL, I64, I32)))


@recipe("Unique", since=11, weight=0.3)
def unique(g: Graph, op: str) -> None:
    """Of integers, so that rounding does not matter."""
    x = g.pick([I64], lambda v: v.rank > 0 and min(min(s) for s in v.shapes) > 0)
    axis = {"axis": g.number(0, x.rank - 1)} if g.chance(0.4) else {}
    g.add_all(op, x, outputs=g.choose([1, 2, 3, 4]), sorted=1, **axis)
