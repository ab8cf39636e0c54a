"""The matrices of minimal filtering F(m, r): m neighbouring outputs of an r-tap filter with m + r - 1 multiplications.

    outputs = A^T [ (G filter) * (B^T inputs) ]

Built by Toom and Cook's method: the product of two polynomials is interpolated at m + r - 2 points and at infinity
(Winograd, Arithmetic Complexity of Computations, 1980; Lavin and Gray, Fast Algorithms for Convolutional Neural
Networks, 2016). The points decide the rounding error (Barabasz, Anderson, Soodhalter and Gregg, Error Analysis and
Improving the Accuracy of Winograd Convolution, 2020): they were searched for the least `amplification` among pairs +-p
of multiples of 1/8. Pairs let two rows share most of their arithmetic, and few binary digits keep every entry of A and
B exact in f32. G is applied to the weights at compile time, in float64.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import cache
from math import prod, sqrt

Rows = tuple[tuple[float, ...], ...]

POINTS: dict[int, tuple[str, ...]] = {
    2: ("0", "1"),
    3: ("0", "1", "-1"),
    4: ("0", "3/4", "-3/4", "2"),
    5: ("0", "5/8", "-5/8", "3/2", "-3/2"),
    7: ("0", "1/2", "-1/2", "1", "-1", "2", "-2"),
    9: ("0", "3/8", "-3/8", "7/8", "-7/8", "5/4", "-5/4", "19/8", "-19/8"),
}
"""The finite points, by how many there are."""

_FIXED_STEPS = 8
"""Roundings of both transforms, in steps of the summation over the channels that err as much (fits F(2, 3) to F(6, 3)
within 20 %)."""


@dataclass(frozen=True, slots=True)
class Filtering:
    """F(`outputs`, `taps`). `filter` is G (size x taps), `inputs` B^T (size x size), `results` A^T (outputs x size)."""

    outputs: int
    taps: int
    filter: Rows
    inputs: Rows
    results: Rows

    @property
    def size(self) -> int:
        """Inputs that a tile reads, and multiplications it makes."""
        return self.outputs + self.taps - 1

    @property
    def amplification(self) -> float:
        """By how much this axis raises the variance of rounding errors of the products, in the mean over the outputs,
        against summing the taps directly: for independent random inputs and filters, sum(A^2 |B row|^2 |G row|^2) /
        taps."""
        weights = [_square(b) * _square(g) for b, g in zip(self.inputs, self.filter, strict=True)]
        variances = [sum(a * a * w for a, w in zip(row, weights, strict=True)) / self.taps for row in self.results]
        return sum(variances) / self.outputs


@cache
def filtering(outputs: int, taps: int) -> Filtering:
    """F(outputs, taps); only for sizes with `POINTS`."""
    points = [Fraction(p) for p in POINTS[outputs + taps - 2]]
    results = [[p**i for p in points] + [Fraction(i == outputs - 1)] for i in range(outputs)]
    scaled = [[p**i / prod((p - q for q in points if q != p), start=Fraction(1)) for i in range(taps)] for p in points]
    inputs = [[*_with_roots([q for q in points if q != p]), Fraction(0)] for p in points]
    infinity = [Fraction(i == taps - 1) for i in range(taps)]
    return Filtering(
        outputs, taps, _floats([*scaled, infinity]), _floats([*inputs, _with_roots(points)]), _floats(results)
    )


def has_filtering(outputs: int, taps: int) -> bool:
    """Whether there are points for F(outputs, taps)."""
    return outputs > 1 and taps > 1 and outputs + taps - 2 in POINTS


def error_ratio(axes: Sequence[Filtering], channels: int) -> float:
    """The expected RMS error over that of a direct convolution in the same precision, filters and inputs being random.

    Errors of a running sum of k terms grow as sqrt(k): directly it has `taps * channels` terms, here `channels`,
    amplified by each axis.
    """
    taps = prod(axis.taps for axis in axes)
    return sqrt(prod(axis.amplification for axis in axes)) * sqrt((channels + _FIXED_STEPS) / (taps * channels))


def _with_roots(roots: Sequence[Fraction]) -> list[Fraction]:
    """The coefficients of the monic polynomial with these roots, lowest power first."""
    out = [Fraction(1)]
    for root in roots:
        out = [a - root * b for a, b in zip([Fraction(0), *out], [*out, Fraction(0)], strict=True)]
    return out


def _floats(rows: Sequence[Sequence[Fraction]]) -> Rows:
    return tuple(tuple(float(x) for x in row) for row in rows)


def _square(row: Sequence[float]) -> float:
    return sum(x * x for x in row)
