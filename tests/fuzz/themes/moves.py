"""Gathers, reductions, moves, softmaxes and norms along any axis: rows, and columns of a hundred rows and more."""

from __future__ import annotations

import numpy as np

from tests.fuzz import layers
from tests.fuzz.exclusions import exclude
from tests.fuzz.graph import Graph
from tests.fuzz.tensors import F16, F32, F64, FLOATS, I32, I64, Value, is_float
from tests.fuzz.theme import Theme

THEME = Theme("moves", sizes=(1, 2, 3, 5, 8, 16, 17, 31, 64, 96, 127, 129, 160), parts=(2, 8))

LENGTHS = (1, 2, 3, 4, 5, 7, 8, 12, 16, 17, 24, 31, 32, 33, 48, 64, 65, 96, 127, 128, 129, 130, 160, 200, 256, 300)


@THEME.start()
def tensor(g: Graph) -> None:
    """Of two to five dimensions, one or two of them long."""
    rank = g.choose([2, 2, 3, 3, 4, 4, 5])
    long = set(g.rng.choice(rank, min(rank, g.choose([1, 2, 2])), replace=False).tolist())
    dims = [
        layers.extent(g, *LENGTHS) if axis in long else layers.extent(g, 1, 2, 3, 4, 6, 8, symbolic=0.15)
        for axis in range(rank)
    ]
    g.new_input(g.choose([F32, F32, F32, F32, F16, F64, I64, I32]), dims)


def _axis(g: Graph, x: Value) -> int:
    return g.number(0, x.rank - 1)


def _filled(g: Graph, dtypes: object = FLOATS, rank: int = 1) -> Value:
    return g.pick(dtypes, lambda v: v.rank >= rank and v.every(lambda a: a.size > 0))  # pyright: ignore[reportArgumentType]


def _means(g: Graph, op: str, x: Value, axes: list[int], *, keep: bool = True) -> Value:
    """A reduction, as the operator set writes it."""
    exclude(
        "sum-out-of-range",
        not is_float(x.dtype) and not x.every(lambda a: np.abs(a.astype(np.float64)).sum() < 2.0**31),
    )
    if g.opset >= (13 if op == "ReduceSum" else 18):
        return g.add(op, x, g.ints(*axes), keepdims=int(keep))
    return g.add(op, x, axes=axes, keepdims=int(keep))


def _axes(g: Graph, x: Value) -> list[int]:
    return sorted(int(a) for a in g.rng.choice(x.rank, g.number(1, min(x.rank, 3)), replace=False))


@THEME.part(2)
def reduction(g: Graph) -> None:
    """Over any axes, kept or not."""
    x = _filled(g, (*FLOATS, I32, I64))
    op = g.choose(["ReduceSum", "ReduceMean", "ReduceMax", "ReduceMin", "ReduceSum"])
    if op == "ReduceMean" and not is_float(x.dtype):
        op = "ReduceMax"
    _means(g, op, x, _axes(g, x), keep=g.chance(0.5))


@THEME.part(1.5)
def centred(g: Graph) -> None:
    """Less a sum, a mean or the largest, or divided by it."""
    x = _filled(g)
    op = g.choose(["ReduceMean", "ReduceMax", "ReduceSum"])
    of = _means(g, op, x, _axes(g, x))
    if op == "ReduceSum" and g.chance(0.3):
        positive = g.add("Exp", g.add("Tanh", x))
        g.add("Div", positive, _means(g, op, positive, _axes(g, x)))
    else:
        g.add("Sub", x, of)


@THEME.part(2)
def softmax(g: Graph) -> None:
    """The operator, or its parts."""
    x = _filled(g)
    axis = _axis(g, x)
    if g.chance(0.6):
        g.add(g.choose(["Softmax", "Softmax", "LogSoftmax"]), x, axis=g.choose([axis, axis - x.rank]))
        return
    e = g.add("Exp", g.add("Sub", x, _means(g, "ReduceMax", x, [axis])))
    g.add("Div", e, _means(g, "ReduceSum", e, [axis]))


@THEME.part(2)
def norm(g: Graph) -> None:
    """A layer norm or one by root mean square over any axes, written out, scaled at times."""
    x = _filled(g)
    axes = _axes(g, x)
    d = g.add("Sub", x, _means(g, "ReduceMean", x, axes)) if g.chance(0.7) else x
    square = g.add("Mul", d, d) if g.chance(0.6) else g.add("Pow", d, layers.scalar(g, 2, d.dtype))
    deviation = g.add("Sqrt", g.add("Add", _means(g, "ReduceMean", square, axes), layers.scalar(g, 0.1, x.dtype)))
    y = g.add("Div", d, deviation)
    axis = _axis(g, x)
    if x.fixed(axis) and g.chance(0.5):
        shape = tuple(x.shape[axis] if a == axis else 1 for a in range(x.rank))
        g.add("Mul", y, g.constant(g.contents(x.dtype, shape)))


@THEME.part(0.7)
def shuffle(g: Graph) -> None:
    """Channels in groups, turned: by reshapes, or halves that are joined the other way round."""
    axis = 1
    x = g.pick(FLOATS, lambda v: v.rank >= 3 and v.fixed(1) and v.shape[1] % 2 == 0 and v.shape[1] > 0)
    count, groups = x.shape[axis], g.choose([2, 4] if x.shape[axis] % 4 == 0 else [2])
    if g.chance(0.4):
        first, second = g.add_all("Split", x, g.ints(count // 2, count // 2), outputs=2, axis=axis)
        g.add("Concat", second, g.add("Relu", first) if g.chance(0.5) else first, axis=axis)
        return
    if sum(not x.fixed(a) for a in range(2, x.rank)) > 1 or not x.fixed(0):
        return
    tail = [s if x.fixed(a + 2) else -1 for a, s in enumerate(x.shape[2:])]
    parted = g.add("Reshape", x, g.ints(x.shape[0], groups, count // groups, *tail))
    turned = g.add("Transpose", parted, perm=[0, 2, 1, *range(3, parted.rank)])
    g.add("Reshape", turned, g.ints(x.shape[0], count, *tail))


@THEME.part()
def rows(g: Graph) -> None:
    """Many rows, gathered along any axis; a sum over them at times."""
    x = _filled(g, (*FLOATS, I64))
    axis = _axis(g, x)
    least = min(shape[axis] for shape in x.shapes)
    count = g.choose([1, 2, 5, 16, 33, 70, 130])
    index = g.constant(g.rng.integers(-least, least, (count,) if g.chance(0.7) else (2, count)).astype(I64))
    y = g.add("Gather", x, index, axis=axis)
    if g.chance(0.3):
        _means(g, "ReduceSum", y, [axis], keep=False)


@THEME.part(0.7)
def rows_at_run_time(g: Graph) -> None:
    """Gathered where an input says."""
    x = _filled(g)
    axis = _axis(g, x)
    least = min(shape[axis] for shape in x.shapes)
    index = g.new_input(g.choose([I64, I32]), [g.choose([1, 3, 16, 40, 129])])
    fed = g.rng.integers(0, least, index.shape).astype(index.dtype)
    index.arrays = tuple(fed.copy() for _ in index.arrays)
    g.add("Gather", x, index, axis=axis)


@THEME.part(0.7)
def into_zeros(g: Graph) -> None:
    """Rows scattered into a fill, each once."""
    x = g.pick([F32], lambda v: v.rank >= 2 and v.static and v.shape[0] > 0)
    count = x.shape[0] + g.number(0, 20)
    zeros = g.constant(np.full((count, *x.shape[1:]), g.choose([0.0, 1.5]), np.float32))
    index = g.rng.permutation(count)[: x.shape[0]].reshape(-1, 1).astype(I64)
    y = g.add("ScatterND", zeros, g.constant(index), x)
    if g.chance(0.6):
        layers.activation(g, y)


@THEME.part(0.8)
def product(g: Graph) -> None:
    """By a weight, between moves."""
    x = g.pick((F32, F16), lambda v: v.rank >= 2 and v.fixed(-1) and v.shape[-1] > 0)
    layers.matmul(g, x, g.choose([1, 3, 16, 24, 65]))


THEME.recipes("Gather", "GatherElements", "GatherND", "ScatterElements", "ScatterND", "OneHot", weight=2)
THEME.recipes("Transpose", "Reshape", "Slice", "Concat", "Pad", "Split", "Expand", "Tile", "Flatten", weight=5)
THEME.recipes("DepthToSpace", "SpaceToDepth", "Unsqueeze", "Squeeze", "ReverseSequence", "Trilu", weight=1)
THEME.recipes("ArgMax", "ArgMin", "CumSum", "TopK", "Hardmax", "LpNormalization", weight=0.8)
THEME.recipes("LayerNormalization", "InstanceNormalization", "GroupNormalization", "BatchNormalization", weight=1.2)
THEME.recipes("ReduceL1", "ReduceL2", "ReduceSumSquare", "ReduceLogSumExp", "ReduceProd", weight=0.6)
THEME.recipes("Add", "Mul", "Sub", "Relu", "Tanh", "Cast", "Where", "Greater", "Clip", "Max", weight=3)
