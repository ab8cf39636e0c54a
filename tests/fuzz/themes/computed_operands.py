"""Convolutions and products of which both operands are computed: filters and matrices made of inputs by elementwise
operators, casts and dequantisation, in mixed types."""

from __future__ import annotations

from math import prod

import numpy as np

from tests.fuzz import layers
from tests.fuzz.graph import Graph
from tests.fuzz.tensors import BF16, F16, F32, F64, I8, U8, Shape, Value
from tests.fuzz.theme import Theme

THEME = Theme("computed-operands", sizes=(1, 2, 3, 5, 8, 16, 17, 31, 40, 65), parts=(1, 4))

STORED = (F32, F32, F16, F16, F64, BF16, I8, U8)
"""Types that operands come in."""

TYPES = (F32, F32, F32, F16, F64, BF16)
"""Types that are computed in."""


def computed(g: Graph, dims: list[int | str], dtype: np.dtype, terms: int) -> Value:
    """An operand: an input, or stored numbers, after a few elementwise operators."""
    kind = g.choose(STORED)
    x = g.new_input(kind, dims) if g.chance(0.7) else _constant(g, dims, kind)
    if kind in (I8, U8):
        x = g.add("DequantizeLinear", x, layers.scalar(g, 0.04, F32), layers.scalar(g, g.number(0, 9), kind))
    x = layers.cast(g, x, dtype)
    x = g.add("Mul", x, layers.scalar(g, terms**-0.5, dtype))
    for _ in range(g.choose([0, 0, 1, 1, 2])):
        x = _changed(g, x)
    return x


def _constant(g: Graph, dims: list[int | str], dtype: np.dtype) -> Value:
    if all(isinstance(d, int) for d in dims):
        return g.constant(g.contents(dtype, tuple(int(d) for d in dims)))
    return g.new_input(dtype, dims)


def _changed(g: Graph, x: Value) -> Value:
    """By an activation, a number per row or column, or itself turned about."""
    kind = g.choose(["Tanh", "Relu", "Neg", "add", "mul", "axis"])
    if kind in ("Tanh", "Relu", "Neg"):
        return g.add(kind, x)
    if kind == "axis" and x.rank:
        axis = g.number(0, x.rank - 1)
        shape: Shape = tuple(s if a == axis and x.fixed(a) else 1 for a, s in enumerate(x.shape))
        return g.add("Mul", x, g.constant(g.rng.uniform(0.5, 1.5, shape).astype(x.dtype)))
    return g.add("Add" if kind == "add" else "Mul", x, layers.scalar(g, 0.75, x.dtype))


@THEME.start(2)
def product(g: Graph) -> None:
    """Of two matrices or stacks of them, either turned."""
    dtype = g.choose(TYPES)
    rows, depth, columns = (layers.extent(g, 1, 3, 4, 8, 16, 17, 24, 33, 64, 100, symbolic=0.25) for _ in range(3))
    stack = g.choose([[], [], [g.choose([1, 2, 3])], [2, g.choose([1, 4])]])
    over = stack if g.chance(0.6) else []
    terms = max(depth if isinstance(depth, int) else g.setting.symbols[depth][0], 1)
    a = _turned(g, computed, [*stack, rows, depth], dtype, terms)
    b = _turned(g, computed, [*over, depth, columns], dtype, 1)
    y = g.add("MatMul", a, b)
    _after(g, y)


def _turned(g: Graph, make: object, dims: list[int | str], dtype: np.dtype, terms: int) -> Value:
    """As it is, or from its transpose."""
    if g.chance(0.65):
        return computed(g, dims, dtype, terms)
    x = computed(g, [*dims[:-2], dims[-1], dims[-2]], dtype, terms)
    return g.add("Transpose", x, perm=[*range(len(dims) - 2), len(dims) - 1, len(dims) - 2])


@THEME.start(2)
def convolution(g: Graph) -> None:
    """Whose filter is computed, too; strides, dilations, groups."""
    dtype = g.choose([F32, F32, F32, F16, F64])
    space = g.choose([1, 2, 2, 2, 3])
    group, depth = g.choose([(1, 1), (1, 3), (1, 16), (1, 24), (2, 4), (3, 5), (16, 1), (33, 1)])
    sizes = [layers.extent(g, 3, 5, 8, 12, 17, 20, symbolic=0.2) for _ in range(space)]
    x = computed(g, [layers.extent(g, 1, 1, 2, symbolic=0.2), group * depth, *sizes], dtype, 1)
    kernel = [g.choose([1, 2, 3, 3, 5]) for _ in range(space)]
    made = group * g.choose([1, 2] if depth == 1 else [1, 4, 8, 20])
    terms = depth * prod(kernel)
    filters = computed(g, [made, depth, *kernel], dtype, terms)
    settings = layers.window(g, x, kernel)
    _after(g, layers.conv(g, x, made, kernel, group, filters, **settings))


@THEME.start(0.7)
def transposed_convolution(g: Graph) -> None:
    """Whose filter is computed, too."""
    group, depth = g.choose([(1, 3), (1, 16), (2, 4), (8, 1)])
    x = computed(g, [1, group * depth, g.choose([4, 7, 12]), layers.extent(g, 3, 8, 9)], F32, 1)
    kernel = g.choose([[2, 2], [3, 3], [4, 4], [1, 3]])
    filters = computed(g, [group * depth, g.choose([1, 4, 12]), *kernel], F32, depth * prod(kernel))
    strides = g.choose([[1, 1], [2, 2], [1, 2]])
    _after(g, g.add("ConvTranspose", x, filters, group=group, strides=strides))


def _after(g: Graph, y: Value) -> None:
    if g.chance(0.5):
        y = layers.activation(g, y)
    if g.chance(0.2):
        layers.cast(g, y, g.choose([F32, F16, F64]))


@THEME.part(2)
def by_another(g: Graph) -> None:
    """A value times another one computed from an input."""
    x = g.pick(TYPES, lambda v: v.rank >= 2 and v.fixed(-1) and v.shape[-1] > 0)
    columns = layers.extent(g, 1, 4, 16, 20, 33)
    g.add("MatMul", x, computed(g, [x.shape[-1], columns], x.dtype, x.shape[-1]))


@THEME.part(1.5)
def by_its_transpose(g: Graph) -> None:
    """A value times what another operator makes of it."""
    x = g.pick(TYPES, lambda v: v.rank >= 2 and v.every(lambda a: a.size > 0))
    turned = g.add("Transpose", _changed(g, x), perm=[*range(x.rank - 2), x.rank - 1, x.rank - 2])
    scaled = g.add("Mul", turned, layers.scalar(g, 0.1, x.dtype))
    layers.require_work(g, max(prod(shape) for shape in x.shapes), x.shape[-2])
    g.add("MatMul", *([x, scaled] if g.chance(0.5) else [scaled, x]))


@THEME.part(1)
def by_a_filter(g: Graph) -> None:
    """A convolution of what is there by a computed filter."""
    x = layers.image(g, dtypes=(F32, F16, F64))
    group = g.choose([1, 1, x.shape[1]])
    kernel = g.choose([[1, 1], [3, 3], [2, 3]])
    made = group * g.choose([1, 2] if group > 1 else [1, 8, 16])
    depth = x.shape[1] // group
    filters = computed(g, [made, depth, *kernel], x.dtype, depth * prod(kernel))
    layers.conv(g, x, made, kernel, group, filters, **layers.window(g, x, kernel))


THEME.recipes("Add", "Mul", "Relu", "Tanh", "Cast", "Transpose", "Reshape", "Softmax", "ReduceSum", weight=2)
