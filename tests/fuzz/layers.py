"""Layers that several themes are made of: weights whose products stay near 1, convolutions and products of realistic
sizes, activations, quantisation. Each answers the value that it made."""

from __future__ import annotations

from math import prod
from typing import Any

import numpy as np

from tests.fuzz.evaluate import Rejected
from tests.fuzz.exclusions import exclude
from tests.fuzz.graph import Graph
from tests.fuzz.recipes.convolution import exceeds
from tests.fuzz.tensors import F32, F64, I8, U8, Shape, Value, onnx_type

PRODUCTS = 60_000_000
"""The most multiplications of a node: the interpreter takes about a second for them."""


def extent(g: Graph, *sizes: int, symbolic: float = 0.4) -> int | str:
    """A size of an input: a symbol at times, where the graph has any."""
    symbols = list(g.setting.symbols)
    return g.choose(symbols) if symbols and g.chance(symbolic) else g.choose(sizes)


def weights(g: Graph, dtype: np.dtype[Any], shape: Shape, terms: int) -> Value:
    """Of sums of so many terms: the sums are about as large as what they are of."""
    array = g.rng.standard_normal(shape) / max(terms, 1) ** 0.5
    return g.constant(array.astype(dtype))


def vector(g: Graph, dtype: np.dtype[Any], count: int, *, positive: bool = False) -> Value:
    """A bias, or a scale."""
    array = g.rng.uniform(0.5, 1.5, count) if positive else g.rng.standard_normal(count)
    return g.constant(array.astype(dtype))


def scalar(g: Graph, number: float, dtype: np.dtype[Any]) -> Value:
    """A number."""
    return g.constant(np.asarray(number, dtype))


def require_work(g: Graph, *sizes: int) -> None:
    """Raises Rejected where so many multiplications are too many."""
    if prod(sizes) > PRODUCTS:
        raise Rejected("too much work")


def image(g: Graph, *, channels: int | None = None, dtypes: Any = (F32,), rank: int = 4) -> Value:
    """A value of channels that are fixed."""
    return g.pick(
        dtypes,
        lambda v: (
            v.rank == rank
            and v.fixed(1)
            and v.every(lambda a: a.size > 0)
            and (channels is None or v.shape[1] == channels)
        ),
    )


def window(g: Graph, x: Value, kernel: list[int], *, strides: bool = True) -> dict[str, Any]:
    """A window of a size, mostly padded so that the image keeps its own; strides, dilations and automatic pads at
    times."""
    space = len(kernel)
    found: dict[str, Any] = {"kernel_shape": kernel}
    if strides and g.chance(0.4):
        found["strides"] = [g.choose([2, 2, 3])] * space if g.chance(0.8) else [g.choose([1, 2, 3]) for _ in kernel]
    if g.chance(0.12) and max(kernel) > 1:
        found["dilations"] = [g.choose([1, 2, 3]) for _ in kernel]
    taps = found.get("dilations", [1] * space)
    half = [(size - 1) * tap // 2 for size, tap in zip(kernel, taps, strict=True)]
    if g.chance(0.7):
        found["pads"] = half + half
    elif g.chance(0.5):
        found["pads"] = [g.number(0, size) for size in half * 2]
    elif g.chance(0.5) and "strides" not in found and "dilations" not in found:
        found["auto_pad"] = g.choose(["SAME_UPPER", "SAME_LOWER", "VALID"])
    exclude("window-beyond-image", exceeds(x, found))
    return found


def conv(
    g: Graph, x: Value, made: int, kernel: list[int], group: int = 1, filters: Value | None = None, **settings: Any
) -> Value:
    """A convolution; with a bias at times. `settings` are its attributes beside the group."""
    depth = x.shape[1] // group
    terms = depth * prod(kernel)
    strides = settings.get("strides", [1] * len(kernel))
    places = max(prod(s // t + 1 for s, t in zip(shape[2:], strides, strict=True)) * shape[0] for shape in x.shapes)
    require_work(g, made, terms, places)
    filters = weights(g, x.dtype, (made, depth, *kernel), terms) if filters is None else filters
    bias = [vector(g, x.dtype, made)] if g.chance(0.6) else []
    return g.add("Conv", x, filters, *bias, group=group, **{"kernel_shape": kernel, **settings})


def matmul(g: Graph, x: Value, columns: int) -> Value:
    """By a weight; with a bias at times, or as a Gemm."""
    depth = x.shape[-1]
    require_work(g, max(prod(shape) for shape in x.shapes), columns)
    if x.rank == 2 and g.chance(0.3):
        turned = g.number(0, 1)
        weight = weights(g, x.dtype, (columns, depth) if turned else (depth, columns), depth)
        return g.add("Gemm", x, weight, vector(g, x.dtype, columns), transB=turned)
    y = g.add("MatMul", x, weights(g, x.dtype, (depth, columns), depth))
    return g.add("Add", y, vector(g, x.dtype, columns)) if g.chance(0.6) else y


def activation(g: Graph, x: Value) -> Value:
    """One of those that networks have, written as exporters write them."""
    kind = g.choose(["Relu", "Relu", "Clip", "Sigmoid", "Tanh", "silu", "gelu", "tanh gelu", "HardSwish", "LeakyRelu"])
    if kind == "Clip":
        return g.add("Clip", x, scalar(g, 0, x.dtype), scalar(g, 6, x.dtype))
    if kind == "silu":
        return g.add("Mul", x, g.add("Sigmoid", x))
    if kind == "gelu":
        return _gelu(g, x)
    if kind == "tanh gelu":
        return _tanh_gelu(g, x)
    if kind == "HardSwish" and (g.opset < 14 or x.dtype != F32):
        kind = "Relu"
    return g.add(kind, x)


def _gelu(g: Graph, x: Value) -> Value:
    exclude("doubles-without-a-kernel", x.dtype == F64)
    erf = g.add("Erf", g.add("Div", x, scalar(g, 2**0.5, x.dtype)))
    return g.add("Mul", g.add("Mul", x, g.add("Add", erf, scalar(g, 1, x.dtype))), scalar(g, 0.5, x.dtype))


def _tanh_gelu(g: Graph, x: Value) -> Value:
    cube = g.add("Mul", g.add("Mul", g.add("Mul", x, x), x), scalar(g, 0.044715, x.dtype))
    inner = g.add("Tanh", g.add("Mul", g.add("Add", x, cube), scalar(g, 0.7978845608, x.dtype)))
    return g.add("Mul", g.add("Mul", x, scalar(g, 0.5, x.dtype)), g.add("Add", inner, scalar(g, 1, x.dtype)))


def quantised(g: Graph, x: Value, dtype: np.dtype[Any] | None = None) -> tuple[Value, Value, Value]:
    """A value in 8 bits, its scale and its zero point: so that most of it is in range."""
    kind: np.dtype[Any] = g.choose([U8, U8, I8]) if dtype is None else dtype
    most = max(float(np.max(np.abs(array), initial=0.25)) for array in x.arrays)
    scale = scalar(g, most * g.choose([0.6, 1.0, 1.3]) / 127, F32)
    places = [0, 128, g.number(0, 255)] if kind == U8 else [0, 0, g.number(-128, 127)]
    zero = scalar(g, g.choose(places), kind)
    return g.add("QuantizeLinear", x, scale, zero), scale, zero


def through_8_bits(g: Graph, x: Value) -> Value:
    """Quantised and back."""
    return g.add("DequantizeLinear", *quantised(g, x))


def stored(g: Graph, shape: Shape, terms: int, axis: int, dtype: np.dtype[Any] | None = None) -> list[Value]:
    """A weight in 8 bits, its scales and its zero points: one for all, or one per channel along `axis`."""
    dtype = g.choose([I8, I8, U8]) if dtype is None else dtype
    count = shape[axis] if g.chance(0.5) else None
    low, high = (0, 255) if dtype == U8 else (-127, 127)
    array = np.clip(np.round(g.rng.standard_normal(shape) * 45) + (128 if dtype == U8 else 0), low, high)
    scales = g.rng.uniform(0.5, 2, () if count is None else count) / (45 * max(terms, 1) ** 0.5)
    centre = 128 if dtype == U8 else 0
    spread = g.choose([0, 0, 9]) if dtype == I8 else g.choose([0, 9, 100])
    zero = centre + g.rng.integers(-spread, spread + 1, () if count is None else count)
    return [g.constant(array.astype(dtype)), g.constant(scales.astype(F32)), g.constant(np.asarray(zero).astype(dtype))]


def dequantised(g: Graph, shape: Shape, terms: int, axis: int) -> Value:
    """A weight that is stored in 8 bits."""
    parts = stored(g, shape, terms, axis)
    along = {"axis": axis} if parts[1].rank else {}
    return g.add("DequantizeLinear", *parts, **along)


def cast(g: Graph, x: Value, dtype: np.dtype[Any]) -> Value:
    """In another type."""
    return x if x.dtype == dtype else g.add("Cast", x, to=onnx_type(dtype))
