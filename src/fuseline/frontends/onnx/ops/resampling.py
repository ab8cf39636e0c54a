"""Where a resized axis reads its input and with which weights, as tables (ONNX, operator Resize)."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]
Positions = NDArray[np.int64]
RADIUS = {"linear": 1, "cubic": 2}


@dataclass(frozen=True)
class Resampling:
    """A node's way to resample; attributes are those of Resize. `roi` gives (start, end) by axis for
    tf_crop_and_resize. Before operator set 11 `nearest` is None: what grows reads the element before, what shrinks the
    one behind, as onnxruntime does where the standard is silent."""

    mode: str
    coordinates: str
    nearest: str | None = None
    cubic: float = -0.75
    exclude_outside: bool = False
    antialias: bool = False
    extrapolation: float = 0.0
    roi: dict[int, tuple[float, float]] | None = None

    def rounding(self, scale: float | None) -> str:
        """How nearest rounds where an axis is resized by `scale` (None: what only the run tells)."""
        return self.nearest or ("ceil" if scale is not None and scale < 1 else "floor")


def coordinates_of(how: Resampling, axis: int, old: int, new: int, scale: float) -> Floats:
    """Where in the input each output position lies; `old`, `new` are the sizes, `scale` their exact ratio."""
    position, mode = np.arange(new, dtype=np.float64), how.coordinates
    resized = old * scale  # not rounded: the standard's formula
    if mode == "asymmetric":
        return position / scale
    if mode == "align_corners":
        return position * (old - 1) / (resized - 1) if resized != 1 else np.zeros(new)
    if mode == "tf_crop_and_resize":
        start, end = (how.roi or {}).get(axis, (0.0, 1.0))
        middle = (end - start) * (old - 1) / 2
        return start * (old - 1) + (
            position * (end - start) * (old - 1) / (resized - 1) if resized != 1 else np.full(new, middle)
        )
    if mode == "pytorch_half_pixel" and new == 1:
        return np.zeros(1)
    shift = (old / 2) * (1 - new / resized) if mode == "half_pixel_symmetric" else 0.0
    return shift + (position + 0.5) / scale - 0.5


def nearest_positions(at: Floats, old: int, mode: str) -> Positions:
    """The one position that each coordinate reads."""
    rounded = {
        "round_prefer_floor": lambda: np.ceil(at - 0.5),
        "round_prefer_ceil": lambda: np.floor(at + 0.5),
        "floor": lambda: np.floor(at),
        "ceil": lambda: np.ceil(at),
    }[mode]()
    return np.clip(rounded.astype(np.int64), 0, old - 1)


def taps(how: Resampling, at: Floats, old: int, scale: float) -> tuple[Positions, Floats]:
    """Positions and weights `[output positions, taps]` of linear or cubic interpolation.

    >>> places, weights = taps(Resampling("linear", "asymmetric"), np.array([0.25]), 4, 2.0)
    >>> places.tolist(), weights.tolist()
    ([[0, 1]], [[0.75, 0.25]])
    """
    base = np.ceil(at) - 1  # so that the share of the right neighbour is in (0, 1]
    ratio = at - base
    squeeze = min(scale, 1.0) if how.antialias else 1.0
    start = int(np.floor(-RADIUS[how.mode] / squeeze)) + 1
    offsets = np.arange(start, 2 - start)
    weights = _kernel(how, np.abs(squeeze * (offsets - ratio[:, None])))
    positions = base.astype(np.int64)[:, None] + offsets
    if how.exclude_outside:
        weights = np.where((positions >= 0) & (positions < old), weights, 0.0)
    if how.exclude_outside or how.antialias:
        weights = weights / weights.sum(axis=1, keepdims=True)
    return np.clip(positions, 0, old - 1), weights


def _kernel(how: Resampling, distance: Floats) -> Floats:
    """The weight at a distance: a triangle, or Keys' cubic with coefficient `cubic`."""
    if how.mode == "linear":
        return np.maximum(1 - distance, 0)
    a, d = how.cubic, distance
    near = ((a + 2) * d - (a + 3)) * d * d + 1
    far = ((a * d - 5 * a) * d + 8 * a) * d - 4 * a
    return np.where(d <= 1, near, np.where(d < 2, far, 0.0))
