"""Convolutions and products in 8 bits: every sign, scales per channel, zero points, odd sizes; between quantisations,
and as operators on integers."""

from __future__ import annotations

from math import prod
from typing import Any

import numpy as np

from tests.fuzz import layers
from tests.fuzz.evaluate import Rejected
from tests.fuzz.graph import Graph
from tests.fuzz.tensors import F32, I8, I32, U8, Value
from tests.fuzz.theme import Theme

THEME = Theme("eight-bits", sizes=(1, 2, 3, 5, 7, 8, 15, 16, 17, 33, 64), parts=(1, 5))

BYTES = (U8, I8)
DEPTHS = (1, 2, 3, 4, 5, 7, 8, 12, 15, 16, 17, 31, 32, 33, 63, 64, 65, 100, 128, 255, 256)


@THEME.start(2)
def image(g: Graph) -> None:
    """Of floats or bytes."""
    channels = g.choose([1, 2, 3, 4, 5, 8, 12, 16, 17, 32, 33, 64, 100])
    space = [layers.extent(g, 1, 3, 5, 7, 8, 12, 14, 20, symbolic=0.3) for _ in range(g.choose([1, 2, 2, 2, 2, 3]))]
    g.new_input(g.choose([F32, F32, U8, I8]), [layers.extent(g, 1, 1, 2, symbolic=0.3), channels, *space])


@THEME.start(2)
def matrix(g: Graph) -> None:
    """Of floats or bytes, or a stack of them."""
    stack = [layers.extent(g, 1, 2, 3)] if g.chance(0.4) else []
    g.new_input(g.choose([F32, F32, U8, I8]), [*stack, layers.extent(g, 1, 2, 5, 8, 16, 17, 40, 100), g.choose(DEPTHS)])


def _bytes(g: Graph, x: Value) -> tuple[Value, Value, Value]:
    """A value in 8 bits with its scale and zero point."""
    if x.dtype == F32:
        return layers.quantised(g, x)
    zero = g.number(0, 255) if x.dtype == U8 else g.number(-128, 127)
    return x, layers.scalar(g, g.choose([0.01, 0.05]), F32), layers.scalar(g, zero if g.chance(0.7) else 0, x.dtype)


def _image(g: Graph) -> Value:
    return g.pick((F32, U8, I8), lambda v: 3 <= v.rank <= 5 and v.fixed(1) and v.every(lambda a: a.size))


def _matrix(g: Graph) -> Value:
    return g.pick((F32, U8, I8), lambda v: v.rank in (2, 3) and v.fixed(-1) and v.every(lambda a: a.size))


def _convolved(g: Graph, x: Value) -> tuple[int, int, dict[str, Any]]:
    """Group, filters and window of a convolution over `x`."""
    channels, space = x.shape[1], x.rank - 2
    group = g.choose([1, 1, 1, channels, *[d for d in (2, 4, 8) if channels % d == 0]])
    made = group * g.choose([1, 2, 4] if group > 1 else [1, 3, 4, 8, 15, 16, 17, 32, 33, 64])
    kernel = g.choose([[1] * space, [3] * space, [3] * space, [2] * space, [5] * space])
    places = max(prod(shape[2:]) * shape[0] for shape in x.shapes)
    layers.require_work(g, made, channels // group, prod(kernel), places)
    return group, made, layers.window(g, x, kernel)


def _bias(g: Graph, count: int) -> list[Value]:
    return [g.constant(g.rng.integers(-900, 900, count).astype(np.int32))] if g.chance(0.5) else []


def _after(g: Graph, y: Value) -> None:
    """An activation, and 8 bits again."""
    if g.chance(0.5):
        y = layers.activation(g, y)
    if g.chance(0.6):
        layers.through_8_bits(g, y)


@THEME.part(3)
def convolution(g: Graph) -> None:
    """Between quantisations."""
    x = _image(g)
    group, made, settings = _convolved(g, x)
    depth = x.shape[1] // group
    kernel = settings["kernel_shape"]
    pixels = g.add("DequantizeLinear", *_bytes(g, x))
    filters = layers.dequantised(g, (made, depth, *kernel), depth * prod(kernel), 0)
    _after(g, layers.conv(g, pixels, made, kernel, group, filters, **settings))


@THEME.part(2)
def linear_convolution(g: Graph) -> None:
    """One operator."""
    q, scale, zero = _bytes(g, _image(g))
    group, made, settings = _convolved(g, q)
    depth = q.shape[1] // group
    kind = I8 if q.dtype == I8 else g.choose(BYTES)
    weight = layers.stored(g, (made, depth, *settings["kernel_shape"]), depth, 0, kind)
    if weight[1].rank and len(set(weight[2].arrays[0].tolist())) > 1:
        weight[2] = g.constant(np.full(made, weight[2].arrays[0][0]))  # onnxruntime takes one zero point for all
    out = _out(g, q.dtype)
    y = g.add("QLinearConv", q, scale, zero, *weight, *out, *_bias(g, made), group=group, **settings)
    if g.chance(0.5):
        g.add("DequantizeLinear", y, *out)


def _out(g: Graph, dtype: np.dtype[Any]) -> list[Value]:
    zero = g.number(0, 255) if dtype == U8 else g.number(-128, 127)
    return [layers.scalar(g, g.choose([0.02, 0.1, 0.7]), F32), layers.scalar(g, zero, dtype)]


@THEME.part(1)
def integer_convolution(g: Graph) -> None:
    """Sums in 32 bits."""
    q, scale, zero = _bytes(g, _image(g))
    group, made, settings = _convolved(g, q)
    depth = q.shape[1] // group
    weight = layers.stored(g, (made, depth, *settings["kernel_shape"]), depth, 0)
    y = g.add("ConvInteger", q, weight[0], *([zero] if g.chance(0.7) else []), group=group, **settings)
    _scaled(g, y, scale)


def _scaled(g: Graph, y: Value, scale: Value) -> None:
    """As floats, as tools for dynamic quantisation write it."""
    if g.chance(0.7):
        _after(g, g.add("Mul", g.add("Cast", y, to=1), g.add("Mul", scale, layers.scalar(g, 0.02, F32))))


@THEME.part(3)
def product(g: Graph) -> None:
    """Between quantisations: by a weight, or as a Gemm."""
    x = _matrix(g)
    depth, columns = x.shape[-1], g.choose(DEPTHS)
    layers.require_work(g, max(prod(shape) for shape in x.shapes), columns)
    rows = g.add("DequantizeLinear", *_bytes(g, x))
    if x.rank == 2 and g.chance(0.3):
        weight = layers.dequantised(g, (columns, depth), depth, 0)
        _after(g, g.add("Gemm", rows, weight, layers.vector(g, F32, columns), transB=1))
        return
    y = g.add("MatMul", rows, layers.dequantised(g, (depth, columns), depth, 1))
    _after(g, g.add("Add", y, layers.vector(g, F32, columns)) if g.chance(0.5) else y)


@THEME.part(1)
def product_of_two(g: Graph) -> None:
    """Both operands computed and in 8 bits."""
    x = _matrix(g)
    rows = g.add("DequantizeLinear", *_bytes(g, x))
    turned = g.add("Transpose", rows, perm=[*range(x.rank - 2), x.rank - 1, x.rank - 2])
    layers.require_work(g, max(prod(shape) for shape in x.shapes), x.shape[-2])
    _after(g, g.add("MatMul", rows, layers.through_8_bits(g, turned)))


@THEME.part(2)
def linear_product(g: Graph) -> None:
    """One operator."""
    q, scale, zero = _bytes(g, _matrix(g))
    depth, columns = q.shape[-1], g.choose(DEPTHS)
    weight = layers.stored(g, (depth, columns), depth, 1, I8 if q.dtype == I8 else g.choose(BYTES))
    out = _out(g, q.dtype)
    y = g.add("QLinearMatMul", q, scale, zero, *weight, *out)
    if g.chance(0.5):
        g.add("DequantizeLinear", y, *out)


@THEME.part(2)
def integer_product(g: Graph) -> None:
    """Sums in 32 bits, of what is quantised when it is there."""
    x = _matrix(g)
    depth, columns = x.shape[-1], g.choose(DEPTHS)
    dynamic = x.dtype == F32 and g.chance(0.6)
    q, scale, zero = g.add_all("DynamicQuantizeLinear", x, outputs=3) if dynamic else _bytes(g, x)
    weight = layers.stored(g, (depth, columns), depth, 1)
    zeros = [zero, *([weight[2]] if g.chance(0.5) else [])] if dynamic or g.chance(0.7) else []
    _scaled(g, g.add("MatMulInteger", q, weight[0], *zeros), scale)


@THEME.part(1)
def sum_of_bytes(g: Graph) -> None:
    """Two values of 8 bits, added or joined as floats."""
    x = g.pick([F32], lambda v: v.every(lambda a: a.size))
    other = g.pick([F32], lambda v: v is not x and v.shapes == x.shapes)
    pair = [layers.through_8_bits(g, x), layers.through_8_bits(g, other)]
    kind = g.choose(["Add", "Mul", "Concat"])
    layers.through_8_bits(g, g.add(kind, *pair, **({"axis": g.choose([0, -1])} if kind == "Concat" else {})))


@THEME.part(0.7)
def whole_numbers(g: Graph) -> None:
    """Sums in 32 bits as floats."""
    x = g.pick([I32])
    if x.rank < 1:
        raise Rejected("one number")
    g.add("DequantizeLinear", x, layers.scalar(g, 0.001, F32))


THEME.recipes("QuantizeLinear", "DequantizeLinear", "DynamicQuantizeLinear", weight=1)
THEME.recipes(
    "MaxPool", "AveragePool", "GlobalAveragePool", "Relu", "Transpose", "Reshape", "Pad", "Concat", weight=1.5
)
