"""Operators that move data: nothing is computed."""

from __future__ import annotations

import numpy as np

from tests.fuzz.evaluate import Rejected
from tests.fuzz.graph import Graph
from tests.fuzz.recipe import recipe
from tests.fuzz.tensors import BOOL, F32, FLOATS, I32, I64, INTEGERS, NUMBERS, STRING, Value

ANY = (*NUMBERS, BOOL, F32, F32, F32)
WITH_STRINGS = (*ANY, STRING)


def axis_of(g: Graph, x: Value) -> int:
    """An axis, counted from either end; raises Rejected for a scalar."""
    if not x.rank:
        raise Rejected("a scalar has no axis")
    return g.number(-x.rank if g.opset >= 11 else 0, x.rank - 1)


@recipe("Transpose", weight=2)
def transpose(g: Graph, op: str) -> None:
    """Any permutation; reversed without one."""
    x = g.pick(WITH_STRINGS)
    g.add(op, x, **({"perm": [int(i) for i in g.rng.permutation(x.rank)]} if x.rank and g.chance(0.85) else {}))


@recipe("Reshape", weight=2)
def reshape(g: Graph, op: str) -> None:
    """Joins and splits dimensions; 0 keeps one, -1 is worked out."""
    x = g.pick(WITH_STRINGS)
    target = _factors(g, int(np.prod(x.shape))) if x.static and g.chance(0.7) else _joined(g, x)
    target = _with_wildcard(g, x, target)
    zero = {"allowzero": 1} if g.opset >= 14 and 0 in target and g.chance(0.2) else {}
    g.add(op, x, g.ints(*target), **zero)


def _factors(g: Graph, count: int) -> list[int]:
    sizes: list[int] = []
    while count > 1 and len(sizes) < 4:
        size = g.choose([d for d in range(1, count + 1) if count % d == 0])
        sizes.append(size)
        count //= size
    return [*sizes, count] if count != 1 or not sizes else sizes


def _joined(g: Graph, x: Value) -> list[int]:
    """One dimension takes all that are not fixed; before it 0 keeps them."""
    free = [axis for axis in range(x.rank) if not x.fixed(axis)]
    first = free[0] if free else g.number(0, max(x.rank - 1, 0))
    last = free[-1] if free else first
    tail = [x.shape[axis] for axis in range(last + 1, x.rank)]
    return [0 if g.chance(0.5) else x.shape[axis] for axis in range(first)] + [-1] + tail


def _with_wildcard(g: Graph, x: Value, target: list[int]) -> list[int]:
    if -1 in target or not target or 0 in target or g.chance(0.5):
        return target
    place = g.number(0, len(target) - 1)
    return [-1 if i == place else size for i, size in enumerate(target)]


@recipe("Flatten")
def flatten(g: Graph, op: str) -> None:
    """At any axis."""
    x = g.pick(ANY)
    g.add(op, x, axis=g.number(-x.rank if g.opset >= 11 else 0, x.rank))


@recipe("Squeeze")
def squeeze(g: Graph, op: str) -> None:
    """Dimensions of size 1; all of them where the shape is fixed."""
    x = g.pick(WITH_STRINGS, lambda v: any(v.fixed(a) and v.shape[a] == 1 for a in range(v.rank)))
    ones = [a for a in range(x.rank) if x.fixed(a) and x.shape[a] == 1]
    if x.static and g.chance(0.3):
        g.add(op, x)
        return
    axes = sorted(g.rng.choice(ones, g.number(1, len(ones)), replace=False).tolist())
    _with_axes(g, op, x, axes)


@recipe("Unsqueeze")
def unsqueeze(g: Graph, op: str) -> None:
    """One or two new dimensions."""
    x = g.pick(WITH_STRINGS)
    count = g.number(1, 2)
    axes = sorted(g.rng.choice(x.rank + count, count, replace=False).tolist())
    if g.opset >= 11 and g.chance(0.3):
        axes = [a - x.rank - count for a in axes]
    _with_axes(g, op, x, axes)


def _with_axes(g: Graph, op: str, x: Value, axes: list[int]) -> None:
    if g.opset >= 13:
        g.add(op, x, g.ints(*axes))
    else:
        g.add(op, x, axes=axes)


@recipe("Expand", since=8)
def expand(g: Graph, op: str) -> None:
    """To more rows, more dimensions, or to the shape of another value that is known at run time only."""
    x = g.pick(ANY)
    if g.chance(0.3):
        other = g.pick(ANY, fresh=0)
        g.add(op, x, g.add("Shape", other))
        return
    sizes = [
        g.choose([1, x.shape[a]]) if x.fixed(a) and x.shape[a] != 1 else g.number(1, 4) if x.fixed(a) else 1
        for a in range(x.rank)
    ]
    g.add(op, x, g.ints(*[g.number(1, 3) for _ in range(g.choose([0, 0, 1]))], *sizes))


@recipe("Concat", weight=2)
def concat(g: Graph, op: str) -> None:
    """One to four values that differ along the axis only."""
    x = g.pick(WITH_STRINGS)
    axis = axis_of(g, x)
    others = [
        g.pick([x.dtype], lambda v: _joins(v, x, axis % x.rank), fresh=0) for _ in range(g.choose([0, 1, 1, 1, 2, 3]))
    ]
    g.add(op, *(g.rng.permutation(np.array([x, *others], object)).tolist()), axis=axis)


def _joins(value: Value, x: Value, axis: int) -> bool:
    return all(
        len(a) == len(b) and a[:axis] == b[:axis] and a[axis + 1 :] == b[axis + 1 :]
        for a, b in zip(value.shapes, x.shapes, strict=True)
    )


@recipe("Split")
def split(g: Graph, op: str) -> None:
    """Equal parts, or parts of given sizes, 0 among them."""
    x = g.pick(ANY, lambda v: any(v.fixed(a) and v.shape[a] for a in range(v.rank)))
    axis = g.choose([a for a in range(x.rank) if x.fixed(a) and x.shape[a]])
    count = g.number(1, min(3, x.shape[axis]))
    cuts = sorted(g.rng.integers(0, x.shape[axis] + 1, count - 1).tolist())
    sizes = np.diff([0, *cuts, x.shape[axis]]).tolist()
    if x.shape[axis] % count == 0 and g.chance(0.4):
        g.add_all(op, x, outputs=count, axis=axis, **({"num_outputs": count} if g.opset >= 18 else {}))
    elif g.opset >= 13:
        g.add_all(op, x, g.ints(*sizes), outputs=count, axis=axis)
    else:
        g.add_all(op, x, outputs=count, axis=axis, split=sizes)


@recipe("Tile")
def tile(g: Graph, op: str) -> None:
    """0 to 3 times."""
    x = g.pick(ANY)
    g.add(op, x, g.ints(*[g.choose([1, 1, 2, 3, 1, 0 if g.chance(0.1) else 1]) for _ in range(x.rank)]))


@recipe("DepthToSpace", weight=0.5)
def depth_to_space(g: Graph, op: str) -> None:
    """Both modes."""
    block = g.number(1, 3)
    x = g.pick(FLOATS, lambda v: v.rank == 4 and v.fixed(1) and v.shape[1] % block**2 == 0 and v.shape[1] > 0)
    g.add(op, x, blocksize=block, **({"mode": g.choose(["DCR", "CRD"])} if g.opset >= 11 else {}))


@recipe("SpaceToDepth", weight=0.5)
def space_to_depth(g: Graph, op: str) -> None:
    """Blocks of 1 to 3."""
    block = g.number(1, 3)
    x = g.pick(FLOATS, lambda v: v.rank == 4 and all(s % block == 0 for shape in v.shapes for s in shape[2:]))
    g.add(op, x, blocksize=block)


@recipe("Slice", weight=2)
def slice_(g: Graph, op: str) -> None:
    """Any bounds, steps of either sign from opset 10 on; axes left out at times."""
    x = g.pick(WITH_STRINGS, lambda v: v.rank > 0)
    axes = sorted(g.rng.choice(x.rank, g.number(1, x.rank), replace=False).tolist())
    bounds = [_bounds(g, x.shape[axis]) for axis in axes]
    if g.opset < 10:
        g.add(op, x, axes=axes, starts=[b[0] for b in bounds], ends=[b[1] for b in bounds])
        return
    kind = g.choose([I64, I64, I32])
    steps = [g.choose([1, 1, 2, 3, -1, -2]) for _ in axes]
    columns = [[b[end if s > 0 else 1 - end] for b, s in zip(bounds, steps, strict=True)] for end in (0, 1)]
    inputs = [g.constant(np.array(column, kind)) for column in (*columns, axes, steps)]
    g.add(op, x, *(inputs if g.chance(0.8) else inputs[:3]))


def _bounds(g: Graph, size: int) -> tuple[int, int]:
    start, end = sorted(g.rng.integers(0, size + 2, 2).tolist())
    if g.chance(0.3):
        end = g.choose([2**31 - 1, -1, size])
    return (start - size if g.chance(0.2) and start < size else start), end


@recipe("Pad", weight=1)
def pad(g: Graph, op: str) -> None:
    """All modes; crops at times; axes from opset 18 on."""
    x = g.pick((*FLOATS, *INTEGERS) if g.opset >= 13 else FLOATS, lambda v: v.rank > 0)
    mode = g.choose(["constant", "constant", "reflect", "edge", *(["wrap"] if g.opset >= 19 else [])])
    low = -1 if g.chance(0.15) and x.every(lambda a: min(a.shape) > 1) else 0
    axes = list(range(x.rank))
    if g.opset >= 18 and g.chance(0.4):
        axes = sorted(g.rng.choice(x.rank, g.number(1, x.rank), replace=False).tolist())
    pads = [g.choose([0, 0, 1, 2, low]) for _ in range(2 * len(axes))]
    if g.opset < 11:
        g.add(op, x, pads=pads, mode=mode, **({"value": 1.5} if g.chance(0.5) else {}))
        return
    value = g.constant(np.asarray(2, x.dtype)) if g.chance(0.5) else None
    extra = [g.ints(*axes)] if len(axes) < x.rank else []
    inputs = [g.ints(*pads), value, *extra]
    g.add(op, x, *(inputs if extra or value else inputs[:1]), mode=mode)


@recipe("Trilu", since=14, weight=0.6)
def trilu(g: Graph, op: str) -> None:
    """Either half, any diagonal."""
    x = g.pick((*NUMBERS, BOOL), lambda v: v.rank >= 2)
    k = [g.constant(np.asarray(g.number(-3, 3), I64))] if g.chance(0.6) else []
    g.add(op, x, *k, upper=g.number(0, 1))


@recipe("ReverseSequence", since=10, weight=0.5)
def reverse_sequence(g: Graph, op: str) -> None:
    """Time first or batch first."""
    batch = g.number(0, 1)
    x = g.pick(
        ANY, lambda v: v.rank >= 2 and v.fixed(batch) and v.shape[batch] > 0 and min(s[1 - batch] for s in v.shapes) > 0
    )
    lengths = g.rng.integers(1, min(s[1 - batch] for s in x.shapes) + 1, x.shape[batch])
    g.add(op, x, g.constant(lengths.astype(I64)), batch_axis=batch, time_axis=1 - batch)
