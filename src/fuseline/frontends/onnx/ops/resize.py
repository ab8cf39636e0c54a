"""Resizing: each output position reads the input at places computed while reading the model.

Places and weights per axis are tables of constants: nearest reads one place, linear two, cubic four. An axis that grows
by a whole factor under nearest is a view instead: the element repeats. For symbolic sizes the tables are computed when
the program runs.
"""

from __future__ import annotations

from collections.abc import Sequence
from math import isfinite
from typing import cast as typed

import numpy as np

from fuseline.errors import FuselineError
from fuseline.frontends.onnx.dtypes import is_float
from fuseline.frontends.onnx.emission import cast
from fuseline.frontends.onnx.node import OnnxNode, normal_axis
from fuseline.frontends.onnx.ops.resampling import Resampling, coordinates_of, nearest_positions
from fuseline.frontends.onnx.ops.resize_static import (
    interpolated_between,
    read_at,
    repeat_factor,
    repeated,
    resized_static,
    weighted_sum,
)
from fuseline.frontends.onnx.ops.symbolic_resampling import SymbolicAxis, scaled_size
from fuseline.frontends.onnx.registry import onnx_op
from fuseline.frontends.onnx.tensors import NoNativeLowering, Tensor, static_size
from fuseline.ir.dim import Dim, floor_div, mul

_IN_F32 = frozenset(map(np.dtype, (np.uint8, np.int8, np.uint16, np.int16, np.int32)))
"""Integers between which is found in f32 and cut to whole ones, as onnxruntime does for those of its types; it rounds
antialiased ones by other rules."""


@onnx_op("Upsample", since=7, in_f32=True)
def upsample(node: OnnxNode) -> Tensor:
    """Before version 10: nearest or linear, asymmetric coordinates. Raises FuselineError: E0107 for a scale that is not
    positive, and an unknown mode."""
    scales = [float(v) for v in (node.attributes["scales"].value if node.has("scales") else node[1].numbers())]
    return _resized(node, scales, None, Resampling(node.text("mode", "nearest"), "asymmetric"))


@onnx_op("Resize", since=10, in_f32=True)
def resize_v10(node: OnnxNode) -> Tensor:
    """Version 10: scales only, asymmetric coordinates. Raises FuselineError: E0107 as `upsample` does."""
    return _resized(
        node, [float(v) for v in node[1].numbers()], None, Resampling(node.text("mode", "nearest"), "asymmetric")
    )


@onnx_op("Resize", since=11, in_f32=True)
def resize(node: OnnxNode) -> Tensor:
    """Scales or sizes, over all axes or those given. Raises FuselineError: E0107 as `upsample` does."""
    x = node[0]
    axes = [normal_axis(a, x.rank) for a in node.integers("axes")] or list(range(x.rank))
    given, sizes_input = node.get(2), node.get(3)
    scales: list[float | None] = [1.0] * x.rank
    sizes: list[Dim] | None = None
    if sizes_input is not None and sizes_input.dims != (0,):
        scales, sizes = _from_sizes(node, x, axes, sizes_input)
    elif given is not None:
        for axis, scale in zip(axes, given.numbers().reshape(-1), strict=True):
            scales[axis] = float(scale)
    return _resized(node, scales, sizes, _resampling(node, axes))


def _resampling(node: OnnxNode, axes: Sequence[int]) -> Resampling:
    coordinates = node.text("coordinate_transformation_mode", "half_pixel")
    roi = None
    if coordinates == "tf_crop_and_resize":
        bounds = [float(v) for v in node[1].numbers().reshape(-1)]
        roi = {axis: (bounds[i], bounds[i + len(axes)]) for i, axis in enumerate(axes)}
    return Resampling(
        node.text("mode", "nearest"),
        coordinates,
        node.text("nearest_mode", "round_prefer_floor"),
        node.number("cubic_coeff_a", -0.75),
        bool(node.integer("exclude_outside")),
        bool(node.integer("antialias")),
        node.number("extrapolation_value", 0.0),
        roi,
    )


def _from_sizes(node: OnnxNode, x: Tensor, axes: Sequence[int], wanted: Tensor) -> tuple[list[float | None], list[Dim]]:
    """The scale of each axis, None where only the run tells, and its new size."""
    sizes, scales = list(x.dims), typed("list[float | None]", [1.0] * x.rank)
    policy = node.text("keep_aspect_ratio_policy", "stretch")
    ratios = [_ratio(size, x.dims[axis]) for axis, size in zip(axes, wanted.sizes(), strict=True)]
    if policy == "stretch":
        for axis, size, ratio in zip(axes, wanted.sizes(), ratios, strict=True):
            scales[axis], sizes[axis] = ratio, size
        return scales, sizes
    known_ratios = [ratio for ratio in ratios if ratio is not None]
    if len(known_ratios) < len(ratios):
        raise NoNativeLowering("symbolic-resize", f"symbolic sizes, {policy}")
    ratio = {"not_larger": min, "not_smaller": max}[policy](known_ratios)
    for axis in axes:
        scales[axis], sizes[axis] = ratio, int(np.floor(ratio * static_size(sizes[axis]) + 0.5))
    return scales, sizes


def _ratio(new: Dim, old: Dim) -> float | None:
    """How many times larger `new` is, None where that depends on symbols."""
    if isinstance(new, int) and isinstance(old, int):
        return new / old
    whole = floor_div(new, old) if old != 0 else 0
    return float(whole) if isinstance(whole, int) and mul(old, whole) == new else None


def _resized(node: OnnxNode, scales: Sequence[float | None], sizes: list[Dim] | None, how: Resampling) -> Tensor:
    x = node[0]
    filled = 0 not in x.dims and 0 not in (sizes or ())
    if any(scale is not None and (not isfinite(scale) or (scale <= 0 and filled)) for scale in scales):
        raise FuselineError("E0107", f"scales {list(scales)} are not all positive", node=node.label)
    crop = how.roi or {}
    changed = [
        a
        for a, scale in enumerate(scales)
        if scale != 1.0 or (sizes is not None and sizes[a] != x.dims[a]) or crop.get(a, (0, 1)) != (0, 1)
    ]
    if how.mode not in ("nearest", "linear", "cubic"):
        raise FuselineError("E0107", f"resize mode {how.mode!r} is unknown", hint="nearest, linear or cubic")
    if not changed:
        return x
    ends = {axis: sizes[axis] if sizes is not None else _scaled(x.dims[axis], scales[axis]) for axis in changed}
    if how.mode == "linear" and not how.antialias and x.dtype in _IN_F32:
        return cast(node, _between(node, cast(node, x, np.dtype(np.float32)), scales, ends, how), x.dtype)
    return _between(node, x, scales, ends, how)


def _between(
    node: OnnxNode, x: Tensor, scales: Sequence[float | None], ends: dict[int, Dim], how: Resampling
) -> Tensor:
    """`x` with the sizes `ends` along some axes."""
    changed = list(ends)
    if any(not isinstance(size, int) for axis in changed for size in (x.dims[axis], ends[axis])):
        return _resized_symbolic(
            node, x, [SymbolicAxis(node, how, axis, x.dims[axis], ends[axis], scales[axis]) for axis in changed], how
        )
    old, new = ({axis: static_size(size[axis]) for axis in changed} for size in (x.dims, ends))
    ratios = {axis: scale for axis, scale in enumerate(scales) if axis in new and scale is not None}
    return resized_static(node, x, how, old, new, ratios)


def _scaled(size: Dim, scale: float | None) -> Dim:
    assert scale is not None
    return int(np.floor(size * scale)) if isinstance(size, int) else scaled_size(size, scale)


# -- symbolic sizes ----------------------------------------------------------------------------------------------------


def _resized_symbolic(node: OnnxNode, x: Tensor, axes: Sequence[SymbolicAxis], how: Resampling) -> Tensor:
    if how.exclude_outside or how.antialias:
        raise NoNativeLowering("symbolic-resize", "weights that sum up to one only with their neighbours")
    if how.mode == "nearest":
        factors = {item.axis: _whole_factor(item, how) for item in axes}
        if all(factors.values()):
            return repeated(node, x, factors)
        return read_at(node, x, {item.axis: (item.nearest(), [item.axis]) for item in axes})
    if not is_float(x.dtype):
        raise NoNativeLowering("unsupported-dtype", x.dtype.name)
    for item in axes:
        if how.mode == "linear":
            x = interpolated_between(node, x, item.axis, [(table, [item.axis]) for table in item.linear(x.dtype)])
        else:
            positions, weights = item.cubic(x.dtype)
            x = weighted_sum(node, x, item.axis, [(table, [item.axis]) for table in (*positions, *weights)])
    return x


def _whole_factor(item: SymbolicAxis, how: Resampling) -> int:
    """How often each element repeats whatever the size is, 0 where that depends on it."""
    if item.scale is None or not item.scale.is_integer() or how.coordinates in ("align_corners", "tf_crop_and_resize"):
        return 0
    sample = 8
    at = coordinates_of(how, item.axis, sample, int(sample * item.scale), item.scale)
    return repeat_factor(nearest_positions(at, sample, how.rounding(item.scale)), sample)
