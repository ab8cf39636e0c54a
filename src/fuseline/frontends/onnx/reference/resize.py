"""Resize and Upsample of every operator set: each axis is a matrix from its input's elements to its output's.

out = in  x  W0  x  W1  ..        W[o, i]: how much of element i is in element o
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from math import floor
from typing import Any

import numpy as np
from onnx.reference.op_run import OpRun

from fuseline.frontends.onnx.reference.corrections import Node

TRANSFORMS_SINCE = 11
"""Operator set in which Resize got coordinate transformations; before, places are products with the scale."""


@dataclass(frozen=True)
class _Axis:
    """One axis to resize. `size` elements become `out`; `scale` need not be their exact ratio. `roi` is where a crop
    starts and ends."""

    size: int
    out: int
    scale: float
    roi: tuple[float, float]


class Resize(Node):
    """Images between their elements."""

    def _run(self, x: Any, *rest: Any, **options: Any) -> tuple[Any, ...]:
        if self.version < TRANSFORMS_SINCE:
            return (resized(x, _old_axes(x, rest[0]), _old_options(options)),)
        roi, scales, sizes = [*rest, *[None] * (3 - len(rest))]
        axes = _axes(x, _given(scales), _given(sizes), _given(roi), options)
        return (resized(x, axes, options),)


class Upsample(Node):
    """Resize as it was called before."""

    def _run(self, x: Any, scales: Any = None, **options: Any) -> tuple[Any, ...]:
        return (resized(x, _old_axes(x, scales), _old_options(options)),)


def _given(x: Any) -> Any:
    return None if x is None or np.size(x) == 0 else x


def _old_axes(x: Any, scales: Any) -> list[_Axis]:
    return [
        _Axis(size, floor(size * np.float32(s)), float(s), (0.0, 1.0)) for size, s in zip(x.shape, scales, strict=True)
    ]


def _old_options(options: dict[str, Any]) -> dict[str, Any]:
    mode = options.get("mode") or "nearest"
    return {
        "mode": "linear" if mode == "bilinear" else mode,
        "coordinate_transformation_mode": "asymmetric",
        "nearest_mode": "simple",
    }


def _axes(x: Any, scales: Any, sizes: Any, roi: Any, options: dict[str, Any]) -> list[_Axis]:
    """What to do with each axis of `x`; those that `axes` leaves out stay as they are."""
    chosen = [int(axis) % x.ndim for axis in options.get("axes") or range(x.ndim)]
    crop = options.get("coordinate_transformation_mode") == "tf_crop_and_resize"
    found = [_Axis(size, size, 1.0, (0.0, 1.0)) for size in x.shape]
    wanted = None if sizes is None else _wanted([x.shape[axis] for axis in chosen], sizes, options)
    for i, axis in enumerate(chosen):
        size = x.shape[axis]
        interval = (float(roi[i]), float(roi[len(chosen) + i])) if crop and roi is not None else (0.0, 1.0)
        scale = float(scales[i]) if wanted is None else wanted[1][i]
        out = floor(size * (interval[1] - interval[0]) * scale) if wanted is None else wanted[0][i]
        found[axis] = _Axis(size, out, scale, interval)
    return found


def _wanted(sizes: Sequence[int], asked: Any, options: dict[str, Any]) -> tuple[list[int], list[float]]:
    """The sizes of the output and the scales, with the aspect ratio kept where it is asked for."""
    ratios = [int(out) / size for out, size in zip(asked, sizes, strict=True)]
    policy = options.get("keep_aspect_ratio_policy") or "stretch"
    if policy == "stretch":
        return [int(out) for out in asked], ratios
    scale = min(ratios) if policy == "not_larger" else max(ratios)
    return [floor(size * scale + 0.5) for size in sizes], [scale] * len(ratios)


def resized(x: Any, axes: Sequence[_Axis], options: dict[str, Any]) -> Any:
    """`x` with each axis resized; integers are rounded towards zero, as onnxruntime rounds them."""
    nearest, crop = (
        options.get("mode", "nearest") == "nearest",
        options.get("coordinate_transformation_mode") == "tf_crop_and_resize",
    )
    out = x if nearest else x.astype(np.float64)
    outside = np.zeros([axis.out for axis in axes], bool)
    for i, axis in enumerate(axes):
        if axis.out == axis.size and axis.scale == 1 and axis.roi == (0.0, 1.0):
            continue
        positions = _positions(axis, options)
        if crop:
            bad = (positions < 0) | (positions > axis.size - 1)
            outside |= bad.reshape([-1 if k == i else 1 for k in range(x.ndim)])
        if nearest:
            out = np.take(out, np.clip(_nearest(positions, axis, options), 0, axis.size - 1), i)
        else:
            out = np.moveaxis(np.moveaxis(out, i, -1) @ _weights(positions, axis, options).T, -1, i)
    out = np.where(outside, np.asarray(options.get("extrapolation_value") or 0), out) if outside.any() else out
    return _stored(out, x.dtype)


def _stored(x: Any, dtype: Any) -> Any:
    if dtype.kind not in "iu" or x.dtype.kind in "iu":
        return x.astype(dtype)
    limits = np.iinfo(dtype)
    return np.clip(x, limits.min, limits.max).astype(dtype)


def _positions(axis: _Axis, options: dict[str, Any]) -> Any:
    """Where each element of the output lies among those of the input; the standard counts with the scaled size before
    it is rounded."""
    at, scale, size = np.arange(axis.out), axis.scale, axis.size
    whole = scale * size
    mode = options.get("coordinate_transformation_mode") or "half_pixel"
    if mode == "asymmetric":
        return at / scale
    if mode == "align_corners":
        return at * 0.0 if whole == 1 or axis.out == 1 else at * (size - 1) / (whole - 1)
    if mode == "tf_crop_and_resize":
        start, end = axis.roi
        if axis.out == 1:
            return 0.5 * (start + end) * (size - 1) + at * 0.0
        return start * (size - 1) + at * (end - start) * (size - 1) / (whole - 1)
    if mode == "tf_half_pixel_for_nn":
        return (at + 0.5) / scale
    if mode == "pytorch_half_pixel" and axis.out == 1:
        return at * 0.0
    shift = size / 2 * (1 - axis.out / whole) if mode == "half_pixel_symmetric" else 0.0
    return shift + (at + 0.5) / scale - 0.5


def _nearest(positions: Any, axis: _Axis, options: dict[str, Any]) -> Any:
    mode = options.get("nearest_mode") or "round_prefer_floor"
    if mode == "simple":  # before operator set 11
        mode = "ceil" if axis.scale < 1 else "floor"
    rounded = {
        "round_prefer_floor": lambda: np.ceil(positions - 0.5),
        "round_prefer_ceil": lambda: np.floor(positions + 0.5),
        "floor": lambda: np.floor(positions),
        "ceil": lambda: np.ceil(positions),
    }[mode]()
    return rounded.astype(np.int64)


def _weights(positions: Any, axis: _Axis, options: dict[str, Any]) -> Any:
    """[out, size]: how much each element of the input counts."""
    cubic = options.get("mode") == "cubic"
    shrink = min(axis.scale, 1.0) if options.get("antialias") else 1.0
    reach = (2 if cubic else 1) / shrink
    first = np.floor(positions - reach).astype(np.int64) + 1
    taps = first[:, None] + np.arange(int(np.ceil(2 * reach)) + 1)
    weights = _kernel(np.abs(taps - positions[:, None]) * shrink, cubic, options.get("cubic_coeff_a"))
    if options.get("exclude_outside"):
        weights = np.where((taps >= 0) & (taps < axis.size), weights, 0)
    if options.get("exclude_outside") or options.get("antialias"):
        weights = weights / weights.sum(1, keepdims=True)
    out = np.zeros((axis.out, axis.size))
    np.add.at(out, (np.arange(axis.out)[:, None], np.clip(taps, 0, axis.size - 1)), weights)
    return out


def _kernel(t: Any, cubic: bool, coefficient: float | None) -> Any:
    if not cubic:
        return np.maximum(1 - t, 0)
    a = -0.75 if coefficient is None else coefficient
    inner = ((a + 2) * t - (a + 3)) * t * t + 1
    outer = ((a * t - 5 * a) * t + 8 * a) * t - 4 * a
    return np.where(t <= 1, inner, np.where(t < 2, outer, 0))


RESIZE: tuple[type[OpRun], ...] = (Resize, Upsample)
"""What to give `ReferenceEvaluator` as `new_ops`."""
