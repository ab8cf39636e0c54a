"""Comparing outputs with a reference: relative to the largest magnitude, and only after showing that the outputs depend
on the inputs."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np

from fuseline.errors import FuselineError

TOLERANCE = 1e-4
"""Largest difference allowed, as a part of the reference output's largest magnitude (DESIGN.md, section 7)."""


@dataclass(frozen=True, slots=True)
class Comparison:
    """One output against its reference: `error` relative to `magnitude`, the reference's largest absolute value."""

    output: str
    error: float
    magnitude: float
    depends_on_input: bool
    problem: str = ""

    def passes(self, tolerance: float) -> bool:
        """Whether the output is close enough."""
        return not self.problem and self.error <= tolerance


_NUMBERS = "fcV"
"""Kinds of dtypes whose values are compared by distance; those of ml_dtypes are `V`."""

Arrays = Mapping[str, np.ndarray]


def dependent_outputs(first: Arrays, second: Arrays) -> set[str]:
    """The outputs that differ between two runs on different inputs; raises E0602 when there is none, for then equality
    would prove nothing."""
    changed = {name for name in first if not _same(first[name], second[name])}
    if not changed:
        raise FuselineError(
            "E0602",
            f"two different inputs gave equal outputs: {', '.join(first)}",
            hint="the model's weights make its output constant; give weights or inputs (--input) that matter",
        )
    return changed


def _same(first: np.ndarray, second: np.ndarray) -> bool:
    return first.shape == second.shape and first.tobytes() == second.tobytes()


def compare(ours: Arrays, reference: Arrays, dependent: set[str]) -> list[Comparison]:
    """Every output of `reference` against ours."""
    return [_compare_one(name, ours.get(name), expected, name in dependent) for name, expected in reference.items()]


def _compare_one(name: str, actual: np.ndarray | None, expected: np.ndarray, depends: bool) -> Comparison:
    problem = _form_problem(actual, expected)
    if problem or actual is None:
        return Comparison(name, float("inf"), 0.0, depends, problem)
    if expected.dtype.kind not in _NUMBERS:
        differing = int(np.count_nonzero(actual != expected))
        return Comparison(name, differing / max(expected.size, 1), 1.0, depends)
    return _compare_floats(name, actual.astype(np.float64), expected.astype(np.float64), depends)


def _compare_floats(name: str, actual: np.ndarray, expected: np.ndarray, depends: bool) -> Comparison:
    odd = ~np.isfinite(expected)
    if not np.array_equal(actual[odd], expected[odd], equal_nan=True):
        return Comparison(name, float("inf"), 0.0, depends, "NaN or infinity in different places")
    ours, theirs = actual[~odd], expected[~odd]
    magnitude = float(np.max(np.abs(theirs), initial=0.0))
    difference = float(np.max(np.abs(ours - theirs), initial=0.0))
    if np.isnan(difference):
        return Comparison(name, float("inf"), magnitude, depends, "NaN where the reference has a number")
    return Comparison(name, difference / magnitude if magnitude else difference, magnitude, depends)


def _form_problem(actual: np.ndarray | None, expected: np.ndarray) -> str:
    if actual is None:
        return "output is missing"
    if actual.shape != expected.shape:
        return f"shape {actual.shape}, expected {expected.shape}"
    return "" if actual.dtype == expected.dtype else f"dtype {actual.dtype}, expected {expected.dtype}"


def require_agreement(comparisons: list[Comparison], tolerance: float, peer: str) -> None:
    """Raises E0601 naming the worst output unless all agree."""
    failed = [item for item in comparisons if not item.passes(tolerance)]
    if failed:
        worst = max(failed, key=lambda item: item.error)
        detail = (
            worst.problem
            or f"relative error {worst.error:.3g} of the largest magnitude {worst.magnitude:.3g}, allowed {tolerance:g}"
        )
        raise FuselineError(
            "E0601",
            f"{len(failed)} of {len(comparisons)} outputs differ from {peer}; worst: {detail}",
            node=worst.output,
        )
