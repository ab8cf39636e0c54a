"""Layers of transformers: projections, scores, masks, softmax, norms, rotary places, feed-forward layers; in f32, f16,
and with weights or everything in 8 bits."""

from __future__ import annotations

from math import prod

import numpy as np

from tests.fuzz import layers
from tests.fuzz.evaluate import Rejected
from tests.fuzz.graph import Graph
from tests.fuzz.tensors import F16, F32, I8, I64, U8, Value
from tests.fuzz.theme import Theme

THEME = Theme("attention", sizes=(1, 2, 3, 7, 8, 16, 17, 31, 32, 50, 64, 100), symbolic=0.5, parts=(1, 5))

WIDTHS = (16, 24, 32, 40, 48, 64, 96, 128, 192)


@THEME.start(3)
def states(g: Graph) -> None:
    """A row per place: batch x places x width, or without the batch."""
    batch = [layers.extent(g, 1, 1, 2, 3)] if g.chance(0.8) else []
    g.new_input(g.choose([F32, F32, F32, F16]), [*batch, layers.extent(g, 1, 5, 8, 16, 31, 64, 100), g.choose(WIDTHS)])


@THEME.start()
def embedded(g: Graph) -> None:
    """Rows of a table, with their places."""
    width, count = g.choose(WIDTHS), g.choose([20, 100])
    ids = g.new_input(I64, [layers.extent(g, 1, 2), layers.extent(g, 1, 8, 16, 33)])
    ids.arrays = tuple(np.abs(array) % count for array in ids.arrays)
    x = g.add("Gather", layers.weights(g, F32, (count, width), 1), ids)
    if x.fixed(1) and g.chance(0.6):
        g.add("Add", x, layers.weights(g, F32, (x.shape[1], width), 1))


def _states(g: Graph) -> Value:
    return g.pick(
        (F32, F16), lambda v: v.rank in (2, 3) and v.fixed(-1) and v.shape[-1] > 1 and v.every(lambda a: a.size)
    )


def _projected(g: Graph, x: Value, columns: int) -> Value:
    """By a weight of its own type, or one that is stored in fewer bits."""
    kind = g.choose(["plain", "plain", "plain", "stored", "8 bits", "dynamic", "halves"])
    depth = x.shape[-1]
    if kind == "plain" or (x.dtype != F32 and kind != "halves"):
        return layers.matmul(g, x, columns)
    if kind == "halves":
        weight = layers.weights(g, F16 if x.dtype == F32 else F32, (depth, columns), depth)
        return g.add("MatMul", x, layers.cast(g, weight, x.dtype))
    if kind == "dynamic":
        return _dynamic(g, x, columns)
    x = layers.through_8_bits(g, x) if kind == "8 bits" else x
    y = g.add("MatMul", x, layers.dequantised(g, (depth, columns), depth, 1))
    return layers.through_8_bits(g, y) if kind == "8 bits" and g.chance(0.5) else y


def _dynamic(g: Graph, x: Value, columns: int) -> Value:
    """Quantised as its range says, when it is there."""
    depth = x.shape[-1]
    q, scale, zero = g.add_all("DynamicQuantizeLinear", x, outputs=3)
    weight, factor, centre = layers.stored(g, (depth, columns), depth, 1)
    y = g.add("Cast", g.add("MatMulInteger", q, weight, zero, centre), to=1)
    return g.add("Mul", y, g.add("Mul", scale, factor))


@THEME.part(3)
def attention(g: Graph) -> None:
    """Heads of projections: scores, scale, mask, softmax, values, and back."""
    x = _states(g)
    heads = g.choose([1, 2, 4, 8])
    width = x.shape[-1] // heads
    if width * heads != x.shape[-1] or width < 2:
        raise Rejected("heads do not divide the width")
    shared = heads if g.chance(0.7) else g.choose([d for d in (1, 2, heads) if heads % d == 0])
    layers.require_work(g, max(prod(s) for s in x.shapes), max(s[-2] for s in x.shapes))
    q, k, v = _parts(g, x, heads, shared, width)
    if g.chance(0.4):
        q, k = _rotated(g, q), _rotated(g, k)
    k, v = _repeated(g, k, heads // shared), _repeated(g, v, heads // shared)
    scores = g.add("MatMul", q, g.add("Transpose", k, perm=[*range(k.rank - 2), k.rank - 1, k.rank - 2]))
    scale = layers.scalar(g, width**0.5, x.dtype)
    scores = (
        g.add("Div", scores, scale) if g.chance(0.5) else g.add("Mul", scores, layers.scalar(g, width**-0.5, x.dtype))
    )
    p = g.add("Softmax", _masked(g, scores), axis=-1)
    y = g.add("MatMul", layers.through_8_bits(g, p) if x.dtype == F32 and g.chance(0.15) else p, v)
    y = _projected(g, _joined(g, y, x), x.shape[-1])
    if g.chance(0.7):
        g.add("Add", x, y)


@THEME.part()
def distributions(g: Graph) -> None:
    """What is expected of numbers in groups, whose logits one or two products make, joined along their places."""
    x = _states(g)
    bins, groups = g.choose([4, 5, 8, 16]), g.choose([1, 2, 4])
    layers.require_work(g, max(prod(s) for s in x.shapes), bins * groups)
    y = _projected(g, x, bins * groups)
    if g.chance(0.6):
        y = g.add("Concat", y, _projected(g, x, bins * groups), axis=-2)
    p = g.add("Softmax", g.add("Reshape", y, g.ints(*[0] * (y.rank - 1), groups, bins)), axis=-1)
    g.add("MatMul", p, layers.weights(g, p.dtype, (bins, g.choose([1, 1, 3])), bins))


def _parts(g: Graph, x: Value, heads: int, shared: int, width: int) -> list[Value]:
    """Queries, keys and values with heads before places: by three products, or one that is split."""
    counts = [heads, shared, shared]
    if g.chance(0.4):
        wide = _projected(g, x, sum(counts) * width)
        found = g.add_all("Split", wide, g.ints(*(c * width for c in counts)), outputs=3, axis=-1)
    else:
        found = [_projected(g, x, count * width) for count in counts]
    return [_headed(g, y, count, width) for y, count in zip(found, counts, strict=True)]


def _headed(g: Graph, y: Value, heads: int, width: int) -> Value:
    lead = [0] * (y.rank - 1)
    parted = g.add("Reshape", y, g.ints(*lead, heads, width))
    return g.add("Transpose", parted, perm=[0, 2, 1, 3] if y.rank == 3 else [1, 0, 2])


def _joined(g: Graph, y: Value, x: Value) -> Value:
    turned = g.add("Transpose", y, perm=[0, 2, 1, 3] if y.rank == 4 else [1, 0, 2])
    return g.add("Reshape", turned, g.ints(*[0] * (x.rank - 1), x.shape[-1]))


def _repeated(g: Graph, x: Value, times: int) -> Value:
    """Each head so many times in turn, as queries that share keys read them."""
    if times == 1:
        return x
    axis = x.rank - 3
    if g.chance(0.5):
        return g.add("Gather", x, g.constant(np.repeat(np.arange(x.shape[axis]), times).astype(I64)), axis=axis)
    if not x.static:
        raise Rejected("sizes are not fixed")
    shape = [*x.shape[: axis + 1], times, *x.shape[axis + 1 :]]
    wide = g.add("Expand", g.add("Unsqueeze", x, g.ints(axis + 1)), g.ints(*shape))
    return g.add("Reshape", wide, g.ints(*x.shape[:axis], x.shape[axis] * times, *x.shape[axis + 1 :]))


def _rotated(g: Graph, x: Value) -> Value:
    """Halves of each row turned by angles of its place."""
    places, width = x.shape[-2:]
    if not x.fixed(-2) or width % 2:
        raise Rejected("places are not fixed")
    angles = np.outer(np.arange(places), 100.0 ** -np.linspace(0, 1, width // 2, endpoint=False))
    cos, sin = (g.constant(np.concatenate([f(angles)] * 2, -1).astype(x.dtype)) for f in (np.cos, np.sin))
    first, second = g.add_all("Split", x, g.ints(width // 2, width // 2), outputs=2, axis=-1)
    turned = g.add("Concat", g.add("Neg", second), first, axis=-1)
    return g.add("Add", g.add("Mul", x, cos), g.add("Mul", turned, sin))


def _masked(g: Graph, scores: Value) -> Value:
    """Not, by what is added, or by what stands in place of numbers."""
    kind = g.choose(["", "add", "where", "input"])
    low = -1e4
    if kind == "input":
        mask = g.new_input(F32, [1] * (scores.rank - 1) + [scores.shape[-1]]) if scores.fixed(-1) else None
        return scores if mask is None else g.add("Add", scores, layers.cast(g, mask, scores.dtype))
    if not kind or not (scores.fixed(-1) and scores.fixed(-2)):
        return scores
    causal = np.tril(np.ones(scores.shape[-2:], bool))
    if kind == "where":
        return g.add("Where", g.constant(causal), scores, layers.scalar(g, low, scores.dtype))
    return g.add("Add", scores, g.constant(np.where(causal, 0, low).astype(scores.dtype)))


@THEME.part(2)
def feed_forward(g: Graph) -> None:
    """Wider, an activation or a gate, and back; with a skip at times."""
    x = _states(g)
    width, wide = x.shape[-1], x.shape[-1] * g.choose([1, 2, 4])
    y = layers.activation(g, _projected(g, x, wide))
    if g.chance(0.4):
        y = g.add("Mul", y, _projected(g, x, wide))
    y = _projected(g, y, width)
    if g.chance(0.7):
        g.add("Add", *([x, y] if g.chance(0.5) else [y, x]))


@THEME.part(2)
def norm(g: Graph) -> None:
    """Of each row: the operator, or written out."""
    x = _states(g)
    width = x.shape[-1]
    if g.opset >= 17 and g.chance(0.5):
        bias = [layers.vector(g, x.dtype, width)] if g.chance(0.7) else []
        g.add("LayerNormalization", x, layers.vector(g, x.dtype, width, positive=True), *bias, epsilon=0.01)
        return
    d = g.add("Sub", x, _mean(g, x)) if g.chance(0.5) else x
    square = g.add("Pow", d, layers.scalar(g, 2, F32)) if g.chance(0.5) else g.add("Mul", d, d)
    deviation = g.add("Sqrt", g.add("Add", _mean(g, square), layers.scalar(g, 0.01, x.dtype)))
    y = g.add("Div", d, deviation) if g.chance(0.6) else g.add("Mul", d, g.add("Reciprocal", deviation))
    y = g.add("Mul", y, layers.vector(g, x.dtype, width, positive=True))
    if g.chance(0.5):
        g.add("Add", y, layers.vector(g, x.dtype, width))


def _mean(g: Graph, x: Value) -> Value:
    return g.add("ReduceMean", x, g.ints(-1)) if g.opset >= 18 else g.add("ReduceMean", x, axes=[-1])


@THEME.part(0.8)
def pooled(g: Graph) -> None:
    """The first place, or the mean of all, through a layer."""
    x = _states(g)
    if x.rank != 3 or not x.every(lambda a: a.size):
        raise Rejected("no places")
    mean = (
        g.add("ReduceMean", x, g.ints(1), keepdims=0) if g.opset >= 18 else g.add("ReduceMean", x, axes=[1], keepdims=0)
    )
    y = mean if g.chance(0.4) else g.add("Gather", x, g.constant(np.asarray(0, I64)), axis=1)
    g.add("Tanh", _projected(g, y, g.choose([2, 10, 32])))


@THEME.part(0.5)
def in_the_other_type(g: Graph) -> None:
    """Cast between f32 and f16."""
    x = _states(g)
    layers.cast(g, x, F16 if x.dtype == F32 else F32)


@THEME.part(0.6)
def integers(g: Graph) -> None:
    """A product of 8 bits that is quantised again, as one operator."""
    x = g.pick([F32], lambda v: v.rank in (2, 3) and v.fixed(-1) and v.shape[-1] > 0)
    kind, depth, columns = g.choose([U8, I8]), x.shape[-1], g.choose([16, 40, 64])
    q, scale, zero = layers.quantised(g, x, kind)
    weight = layers.stored(g, (depth, columns), depth, 1, I8 if kind == I8 else g.choose([U8, I8]))
    out = [layers.scalar(g, 0.03, F32), layers.scalar(g, 128 if kind == U8 else 0, kind)]
    y = g.add("QLinearMatMul", q, scale, zero, *weight, *out)
    g.add("DequantizeLinear", y, *out)


THEME.recipes("Add", "Mul", "Transpose", "Reshape", "Concat", "Slice", "Softmax", "Gather", weight=1.5)
