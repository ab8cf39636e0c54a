"""How far the results of a dispatch may lie from the interpreter in float64 (docs/numerics.md has the figures).

Integers and booleans are equal, floats within a part of the largest magnitude. What is further off than that is held
against noise: the same dispatch in its own precision, and in float64 on operands that are a rounding or two off. A
result inside of what those spread over is rounding; one outside is wrong.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import ml_dtypes
import numpy as np
from numpy.typing import NDArray

Array = NDArray[Any]
Results = Sequence[Array]
Compute = Callable[[Sequence[Array], bool], Results]
"""The results of a dispatch for operands, in float64 where the flag is set, else in its own types."""

CLOSE = {"float64": 1e-11, "float32": 1e-5, "float16": 2e-3, "bfloat16": 1.6e-2}
"""Differences that are the rounding of sums, as a part of the largest magnitude, by the type of the result."""

FILTERED = {"strict": 1.0, "default": 4.0, "fast": 64.0}
"""How much more a convolution by minimal filtering may be off, by `--numerics`: what it is chosen within."""

LEAST = {"float64": 1e-150, "float32": 1e-30, "float16": 2e-7, "bfloat16": 1e-30}
"""Differences that say nothing: below them a type has fewer digits."""

SAMPLES = 8
WIDTHS = 3.0
"""A result may lie this many spreads beyond the samples: they are few."""

EPSILON = {"float64": 2.0**-50, "float32": 2.0**-22, "float16": 2.0**-10, "bfloat16": 2.0**-7}
"""Relative noise: about two roundings."""


@dataclass(frozen=True, slots=True)
class Agreement:
    """One result: `error` as a part of `magnitude`, the reference's largest finite absolute value (of integers: the
    part of the elements that differ), `ulps` the same in units of the last place of `magnitude`. `allowed` is what
    passes without noise. `problem` is empty for one that agrees; `rounding`: it took noise to say so."""

    dtype: str
    error: float
    ulps: float
    magnitude: float
    allowed: float
    problem: str = ""
    rounding: bool = False


def is_float(array: Array) -> bool:
    """Whether an array holds floats, the small ones of ml_dtypes included."""
    return array.dtype.name in EPSILON


def agreements(
    compute: Compute, operands: Sequence[Array], ours: Results, exact: Results, scale: float
) -> list[Agreement]:
    """Each result of a dispatch on `operands` against `exact`, what it is in float64; floats may be `scale` times
    further off than `CLOSE`."""
    found = [_agreement(mine, theirs, scale) for mine, theirs in zip(ours, exact, strict=True)]
    if not any(one.problem for one in found):
        return found
    samples = list(_samples(compute, operands))
    return [
        one if not one.problem else _with_noise(one, mine, theirs, [sample[i] for sample in samples], scale)
        for i, (one, mine, theirs) in enumerate(zip(found, ours, exact, strict=True))
    ]


def _agreement(ours: Array, exact: Array, scale: float) -> Agreement:
    if ours.shape != exact.shape:
        return Agreement(ours.dtype.name, np.inf, np.inf, 0.0, 0.0, f"shape {ours.shape}, expected {exact.shape}")
    if not is_float(ours):
        return _of_integers(ours, exact)
    allowed = CLOSE[ours.dtype.name] * scale
    with np.errstate(all="ignore"):
        expected = exact.astype(ours.dtype).astype(np.float64)  # infinite where the type's range ends
        found, wide = ours.astype(np.float64), exact.astype(np.float64)
    finite = np.isfinite(expected)
    magnitude = float(np.max(np.abs(wide[finite]), initial=0.0))
    if not np.array_equal(found[~finite], expected[~finite], equal_nan=True) or not np.isfinite(found[finite]).all():
        problem = "NaN or infinity where the interpreter has none, or the other way round"
        return Agreement(ours.dtype.name, np.inf, np.inf, magnitude, allowed, problem)
    difference = float(np.max(np.abs(found[finite] - wide[finite]), initial=0.0))
    error = difference / magnitude if magnitude else difference
    ulps = difference / max(float(ml_dtypes.finfo(ours.dtype).eps) * magnitude, LEAST[ours.dtype.name])
    close = difference <= allowed * magnitude + LEAST[ours.dtype.name]
    problem = "" if close else f"off by {error:.3g} of the largest magnitude {magnitude:.4g}, allowed {allowed:.2g}"
    return Agreement(ours.dtype.name, error, ulps, magnitude, allowed, problem)


def _of_integers(ours: Array, exact: Array) -> Agreement:
    same = ours == exact.astype(ours.dtype)
    differing = int(ours.size - np.count_nonzero(same))
    problem = f"{differing} of {ours.size} elements differ" if differing else ""
    return Agreement(ours.dtype.name, differing / max(ours.size, 1), 0.0, 1.0, 0.0, problem)


def _samples(compute: Compute, operands: Sequence[Array]) -> list[Results]:
    """The dispatch in its own precision, then in float64 on noisy operands, the same noise in every call."""
    rng = np.random.default_rng(0)
    moved = [[noisy(operand, rng) for operand in operands] for _ in range(SAMPLES)]
    return [compute(operands, False), *(compute(some, True) for some in moved)]


def noisy(operand: Array, rng: np.random.Generator) -> Array:
    """Floats a rounding or two off, in float64; others as they are."""
    if not is_float(operand):
        return operand
    with np.errstate(all="ignore"):
        wide = operand.astype(np.float64)
        return np.asarray(wide * (1.0 + EPSILON[operand.dtype.name] * rng.uniform(-1, 1, operand.shape)))


def _with_noise(one: Agreement, ours: Array, exact: Array, samples: Sequence[Array], scale: float) -> Agreement:
    """The agreement of a result that is not close: it stands, or noise explains it."""
    if ours.shape != exact.shape or not _explained(ours, [exact, *samples], scale):
        return one
    return Agreement(one.dtype, one.error, one.ulps, one.magnitude, one.allowed, rounding=True)


def _explained(ours: Array, samples: Sequence[Array], scale: float) -> bool:
    """Whether every element lies where the samples spread, or is what one of them has."""
    with np.errstate(all="ignore"):
        stack = np.stack([sample.astype(np.float64) for sample in samples])
        if not is_float(ours):
            whole = ours.astype(np.float64)
            return bool(((whole >= stack.min(0)) & (whole <= stack.max(0))).all())
        stack = np.stack([sample.astype(ours.dtype).astype(np.float64) for sample in samples])
        found = ours.astype(np.float64)
        finite = np.isfinite(stack)
        odd = (stack == found[None]).any(0) | (np.isnan(stack).any(0) & np.isnan(found))
        low, high = np.where(finite, stack, np.inf).min(0), np.where(finite, stack, -np.inf).max(0)
        width = np.where(high > low, high - low, 0.0)
        largest = float(np.max(np.where(finite, np.abs(stack), 0.0), initial=0.0))
        slack = WIDTHS * width + CLOSE[ours.dtype.name] * scale * largest + LEAST[ours.dtype.name]
        return bool(np.all(odd | ((found >= low - slack) & (found <= high + slack))))
