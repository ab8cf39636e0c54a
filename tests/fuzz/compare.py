"""Whether outputs agree: closely, or as closely as rounding lets any two programs agree."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from tests.fuzz.tensors import BF16, F16, F32, F64, Array, is_float

CLOSE = {F64: 1e-11, F32: 2e-6, F16: 2e-3, BF16: 1.6e-2}
"""Differences that need no explanation, relative to the largest magnitude of the output."""

LEAST = {F64: 1e-150, F32: 1e-18, F16: 2e-7, BF16: 1e-18}
"""Below it a type has fewer digits, or its squares have."""

SAMPLES = 24
WIDTHS = 3.0
"""A result may lie this many spreads outside the samples: they are few, and kernels sum in other orders."""

Outputs = Mapping[str, Any]


def form_problem(ours: Any, theirs: Any) -> str:
    """Why two outputs cannot be compared; empty where they can."""
    if isinstance(theirs, list) or theirs is None:
        return "" if type(ours) is type(theirs) else f"{type(ours).__name__}, expected {type(theirs).__name__}"
    if ours.dtype != theirs.dtype:
        return f"dtype {ours.dtype}, expected {theirs.dtype}"
    return "" if ours.shape == theirs.shape else f"shape {ours.shape}, expected {theirs.shape}"


def close(ours: Array, theirs: Array, dtype: np.dtype[Any], tolerance: float = 1.0) -> bool:
    """Whether two arrays agree without further ado; `dtype` is the narrower of their types."""
    if not is_float(dtype):
        return bool(np.array_equal(ours, theirs))
    a, b = ours.astype(np.float64), theirs.astype(np.float64)
    odd = ~np.isfinite(b)
    if not np.array_equal(a[odd], b[odd], equal_nan=True) or not np.isfinite(a[~odd]).all():
        return False
    scale = float(np.max(np.abs(b[~odd]), initial=0.0))
    return bool(np.max(np.abs(a[~odd] - b[~odd]), initial=0.0) <= tolerance * CLOSE[dtype] * scale + LEAST[dtype])


def same_bits(first: Any, second: Any) -> bool:
    """Whether two runs gave the same."""
    if isinstance(first, list):
        return len(first) == len(second) and all(same_bits(a, b) for a, b in zip(first, second, strict=True))
    if first is None or second is None:
        return first is second
    if first.dtype == object:
        return first.shape == second.shape and bool((first == second).all())
    return first.dtype == second.dtype and first.shape == second.shape and first.tobytes() == second.tobytes()


def explained(ours: Array, samples: Sequence[Array], dtype: np.dtype[Any], widths: float = WIDTHS) -> bool:
    """Whether `ours` lies where noisy runs of the reference lie, element by element."""
    shapes = [sample.shape for sample in samples]
    if any(shape != ours.shape for shape in shapes):
        return _size_explained(ours.shape, shapes)
    stack = np.stack(samples)
    if not is_float(dtype):
        return _integers_explained(ours, stack)
    return _floats_explained(ours.astype(np.float64), stack.astype(np.float64), dtype, widths)


def _size_explained(ours: tuple[int, ...], shapes: Sequence[tuple[int, ...]]) -> bool:
    """Whether a shape is among those of noisy runs, or as near to them as they are to one another: where many elements
    are next to a step, no run has them all on one side."""
    if any(len(shape) != len(ours) for shape in shapes):
        return ours in shapes
    return all(
        2 * min(sizes) - max(sizes) <= size <= 2 * max(sizes) - min(sizes)
        for size, sizes in zip(ours, zip(*shapes, strict=True), strict=True)
    )


def _integers_explained(ours: Array, stack: Array) -> bool:
    if ours.dtype.kind in "bO":
        return bool(((stack == ours[None]).any(0)).all())
    low, high, wide = (np.atleast_1d(array).astype(object) for array in (stack.min(0), stack.max(0), ours))
    slack = np.where(high > low, high - low + 1, 0)
    return bool(np.all((wide >= low - slack) & (wide <= high + slack)))


def _floats_explained(ours: Array, stack: Array, dtype: np.dtype[Any], widths: float) -> bool:
    finite = np.isfinite(stack)
    # Next to a pole runs are infinite, NaN or finite by chance, and few samples need not show all three.
    odd = (stack == ours[None]).any(0) | (~np.isfinite(ours) & ~finite.all(0))
    low = np.where(finite, stack, np.inf).min(0)
    high = np.where(finite, stack, -np.inf).max(0)
    with np.errstate(all="ignore"):
        width = np.where(high > low, high - low, 0)
        scale = np.nanmax(np.where(finite, np.abs(stack), 0), initial=0.0)
        slack = (
            widths * width
            + 0.25 * float(np.nan_to_num(width).mean() if width.size else 0)
            + CLOSE[dtype] * 0.5 * scale
            + LEAST[dtype]
        )
        inside = (ours >= low - slack) & (ours <= high + slack)
    return bool(np.all(odd | inside))


def worst(ours: Array, theirs: Array) -> str:
    """The element that differs most, for a report."""
    if ours.shape != theirs.shape or not ours.size:
        return f"{ours.shape} for {theirs.shape}"
    if ours.dtype == object or ours.dtype.kind == "b":
        at = tuple(int(i) for i in np.argwhere(ours != theirs)[0]) if (ours != theirs).any() else ()
    else:
        with np.errstate(all="ignore"):
            gap = np.abs(ours.astype(np.float64) - theirs.astype(np.float64))
        gap = np.where(
            np.isnan(ours.astype(np.float64)) != np.isnan(theirs.astype(np.float64)),
            np.inf,
            np.nan_to_num(gap, posinf=np.inf),
        )
        at = tuple(int(i) for i in np.unravel_index(int(np.argmax(gap)), gap.shape))
    count = int((ours != theirs).sum())
    return f"at {list(at)} {ours[at]!r}, expected {theirs[at]!r}; {count} of {ours.size} differ"
