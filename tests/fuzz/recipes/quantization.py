"""Quantised tensors: from floats and back, per tensor and per channel, and operators that compute on them."""

from __future__ import annotations

import numpy as np

from tests.fuzz.evaluate import Rejected
from tests.fuzz.graph import Graph
from tests.fuzz.recipe import recipe
from tests.fuzz.recipes.convolution import image, window
from tests.fuzz.tensors import F32, I8, I32, INT4, U8, UINT4, Value


def _scale(g: Graph, count: int | None = None) -> Value:
    return g.constant(g.rng.uniform(0.01, 0.1, () if count is None else count).astype(F32))


def _zero(g: Graph, dtype: np.dtype[np.generic], count: int | None = None, *, centred: bool = False) -> Value:
    low, high = (-8, 8) if dtype == I8 else (120, 136)
    number = (
        np.zeros(() if count is None else count, np.int64)
        if centred
        else g.rng.integers(low, high, () if count is None else count)
    )
    return g.constant(np.asarray(number).astype(dtype))


@recipe("QuantizeLinear", since=10, weight=0.8)
def quantize(g: Graph, op: str) -> None:
    """Per tensor, or per channel from opset 13 on."""
    x = g.pick([F32])
    dtype = g.choose([I8, U8])
    axes = [a for a in range(x.rank) if x.fixed(a) and x.shape[a]]
    if g.opset >= 13 and axes and g.chance(0.4):
        axis = g.choose(axes)
        g.add(op, x, _scale(g, x.shape[axis]), _zero(g, dtype, x.shape[axis]), axis=axis)
    else:
        g.add(op, x, _scale(g), *([_zero(g, dtype)] if dtype == I8 or g.chance(0.8) else []))


@recipe("DequantizeLinear", since=10, weight=0.8)
def dequantize(g: Graph, op: str) -> None:
    """Of what is 8 bits wide, or a sum in 32."""
    x = g.pick((I8, U8, I8, U8, I32))
    axes = [a for a in range(x.rank) if x.fixed(a) and x.shape[a]]
    per_channel = g.opset >= 13 and bool(axes) and g.chance(0.4)
    axis = g.choose(axes) if per_channel else None
    count = None if axis is None else x.shape[axis]
    zero = [] if x.dtype == I32 or g.chance(0.2) else [_zero(g, x.dtype, count)]
    g.add(op, x, _scale(g, count), *zero, **({} if axis is None else {"axis": axis}))


def _through(g: Graph, x: Value) -> Value:
    """Quantised and back."""
    dtype = g.choose([I8, U8])
    scale, zero = _scale(g), _zero(g, dtype)
    return g.add("DequantizeLinear", g.add("QuantizeLinear", x, scale, zero), scale, zero)


def _weights(g: Graph, shape: tuple[int, ...], axis: int) -> Value:
    """Stored in 8 or 4 bits, a scale for all or one per channel."""
    dtype = g.choose([I8, I8, U8, *([INT4, UINT4] if g.opset >= 21 else [])])
    stored = g.constant(g.contents(dtype, shape))
    per_channel = g.opset >= 13 and g.chance(0.5)
    count = shape[axis] if per_channel else None
    if dtype in (INT4, UINT4):
        zero: list[Value] = []
    else:
        zero = [_zero(g, dtype, count, centred=dtype == I8)] if g.chance(0.8) or dtype == U8 else []
    return g.add("DequantizeLinear", stored, _scale(g, count), *zero, **({"axis": axis} if per_channel else {}))


@recipe("MatMul", since=10, weight=1)
def quantised_matmul(g: Graph, op: str) -> None:
    """Between quantisations, as tools for quantisation write it."""
    x = g.pick([F32], lambda v: v.rank > 0 and v.fixed(-1) and v.shape[-1] > 0)
    y = g.add(op, _through(g, x) if g.chance(0.8) else x, _weights(g, (x.shape[-1], g.choose([1, 3, 8, 16, 20])), 1))
    if g.chance(0.5):
        _through(g, g.add("Relu", y) if g.chance(0.5) else y)


@recipe("Conv", since=10, weight=1)
def quantised_conv(g: Graph, op: str) -> None:
    """The same for convolutions."""
    x = image(g)
    if x.dtype != F32:
        raise Rejected("not f32")
    settings = window(g, x)
    group = g.choose([1, 1, x.shape[1]])
    made = group * g.choose([1, 2]) if group > 1 else g.choose([1, 4, 16])
    y = g.add(
        op,
        _through(g, x),
        _weights(g, (made, x.shape[1] // group, *settings["kernel_shape"]), 0),
        group=group,
        **settings,
    )
    if g.chance(0.5):
        _through(g, g.add("Relu", y) if g.chance(0.5) else y)


@recipe("DynamicQuantizeLinear", since=11, weight=0.4)
def dynamic(g: Graph, op: str) -> None:
    """Scale and zero point from the data."""
    g.add_all(op, g.pick([F32], lambda v: v.every(lambda a: a.size and np.isfinite(a).all())), outputs=3)


@recipe("MatMulInteger", since=10, weight=0.5)
def matmul_integer(g: Graph, op: str) -> None:
    """Zero points for both, or none."""
    x = g.pick((I8, U8), lambda v: v.rank > 1 and v.fixed(-1) and v.shape[-1] > 0)
    y = g.constant(g.contents(g.choose([I8, U8]), (x.shape[-1], g.choose([1, 4, 16]))))
    g.add(op, x, y, *([_zero(g, x.dtype), _zero(g, y.dtype)] if g.chance(0.6) else []))


@recipe("ConvInteger", since=10, weight=0.3)
def conv_integer(g: Graph, op: str) -> None:
    """Of bytes."""
    x = g.new_input(U8, [g.number(1, 2), g.choose([1, 2, 4]), g.choose([5, 6, *g.setting.symbols]), 6])
    settings = window(g, x)
    y = g.constant(g.contents(g.choose([U8, I8]), (g.choose([1, 4, 8]), x.shape[1], *settings["kernel_shape"])))
    g.add(op, x, y, *([_zero(g, U8)] if g.chance(0.5) else []), **settings)


@recipe("QLinearMatMul", since=10, weight=0.4)
def qlinear_matmul(g: Graph, op: str) -> None:
    """Requantised."""
    x = g.pick((I8, U8), lambda v: v.rank > 1 and v.fixed(-1) and v.shape[-1] > 0)
    y = g.constant(g.contents(x.dtype, (x.shape[-1], g.choose([1, 4, 16]))))
    g.add(
        op,
        x,
        _scale(g),
        _zero(g, x.dtype),
        y,
        _scale(g),
        _zero(g, y.dtype),
        g.constant(np.asarray(0.5, F32)),
        _zero(g, x.dtype),
    )


@recipe("QLinearConv", since=10, weight=0.4)
def qlinear_conv(g: Graph, op: str) -> None:
    """Requantised; a scale per output channel at times, a bias in 32 bits."""
    x = g.new_input(g.choose([U8, I8]), [g.number(1, 2), g.choose([1, 2, 4]), g.choose([5, 6, *g.setting.symbols]), 6])
    settings, made = window(g, x), g.choose([1, 4, 8])
    kind = I8 if x.dtype == I8 else g.choose([U8, I8])
    count = made if g.chance(0.4) else None
    y = g.constant(g.contents(kind, (made, x.shape[1], *settings["kernel_shape"])))
    bias = [g.constant(g.contents(I32, (made,)))] if g.chance(0.5) else []
    zero = _zero(g, kind, count, centred=kind == I8)
    g.add(
        op,
        x,
        _scale(g),
        _zero(g, x.dtype),
        y,
        _scale(g, count),
        zero,
        g.constant(np.asarray(0.5, F32)),
        _zero(g, x.dtype),
        *bias,
        **settings,
    )
