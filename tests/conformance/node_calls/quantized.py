"""Quantisation and products of quantised tensors."""

from __future__ import annotations

from typing import Any

import numpy as np

from tests.conformance.node_calls.draw import Array, Call, Draw, calls


def _scale(d: Draw, sizes: tuple[int, ...], dtype: Any = np.float32) -> Array:
    return np.asarray(d.rng.uniform(0.05, 0.6, sizes), dtype)


@calls("QuantizeLinear", "DequantizeLinear")
def quantize(d: Draw) -> Call:
    sizes, wide = d.sizes(1), d.schema.name == "QuantizeLinear"
    axis = d.axis(len(sizes))
    per_axis = not d.before(13) and d.chance()
    shape = (sizes[axis],) if per_axis else ()
    narrow = ("T3" if "T3" in d.dtypes else "T2") if wide else "T1" if "T1" in d.dtypes else "T"
    kind = d.dtypes[narrow]
    zero = np.zeros(shape, kind) if kind.itemsize > 2 else d.values(shape, kind)
    given = {"axis": axis} if per_axis else {}
    scale_type = d.dtypes.get("T2" if not wide and "T1" in d.dtypes else "T1", np.dtype(np.float32))
    scale_type = scale_type if scale_type.kind == "f" else np.dtype(np.float32)
    x = d.values(sizes, d.dtype() if wide else kind, scale=20)
    scale = _scale(d, shape, scale_type if not wide or x.dtype.kind != "f" else x.dtype)
    return Call([x, scale, *([zero] if (wide and kind != np.uint8) or d.chance() else [])], given)


@calls("DynamicQuantizeLinear")
def dynamic(d: Draw) -> Call:
    return Call([d.values(d.sizes())], outputs=3)


@calls("QLinearMatMul")
def qlinear_matmul(d: Draw) -> Call:
    m, k, n = (d.whole(1, 5) for _ in range(3))
    kinds = [d.dtypes[name] for name in ("T1", "T2", "T3")]
    scale = d.dtypes.get("TS", np.dtype(np.float32))
    a, b = d.values((m, k), kinds[0]), d.values((k, n), kinds[1])
    parts = [a, _scale(d, (), scale), d.values((), kinds[0]), b, _scale(d, (), scale), d.values((), kinds[1])]
    return Call([*parts, _scale(d, (), scale), d.values((), kinds[2])])


def _filters(d: Draw, kinds: list[Any]) -> tuple[Array, Array, dict[str, Any], int]:
    groups, per, kernel = d.whole(1, 2), d.whole(1, 2), [d.whole(1, 3), d.whole(1, 3)]
    out = groups * d.whole(1, 2)
    x = d.values((d.whole(1, 2), groups * per, d.whole(4, 6), d.whole(4, 6)), kinds[0])
    given = {
        "group": groups,
        **d.some(strides=[d.whole(1, 2), d.whole(1, 2)], pads=[d.whole(0, k - 1) for k in [*kernel, *kernel]]),
    }
    return x, d.values((out, per, *kernel), kinds[1]), given, out


@calls("ConvInteger")
def conv_integer(d: Draw) -> Call:
    kinds = [d.dtype(0), d.dtype(1)]
    x, w, given, _ = _filters(d, kinds)
    zeros = [d.values((), kinds[0]), *([d.values((), kinds[1])] if d.chance() else [])] if d.chance() else []
    return Call([x, w, *zeros], given)


@calls("QLinearConv")
def qlinear_conv(d: Draw) -> Call:
    kinds = [d.dtypes[name] for name in ("T1", "T2", "T3")]
    x, w, given, out = _filters(d, kinds)
    channels = (out,) if d.chance() else ()
    weights = [w, _scale(d, channels), np.zeros(channels, kinds[1]) if channels else d.values((), kinds[1])]
    bias = [d.values((out,), np.int32)] if d.chance() else []
    return Call(
        [x, _scale(d, ()), d.values((), kinds[0]), *weights, _scale(d, ()), d.values((), kinds[2]), *bias], given
    )
