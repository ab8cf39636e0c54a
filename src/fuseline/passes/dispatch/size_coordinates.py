"""Coordinates that are sizes, numbers for the most part: where single elements lie."""

from __future__ import annotations

from collections.abc import Sequence

from fuseline.ir import dim as d
from fuseline.ir.dim import Dim


class SizeCoordinates:
    """The arithmetic that `moves.Coordinates` asks for."""

    def number(self, value: Dim) -> Dim:
        """A coordinate that is the same everywhere."""
        return value

    def moved(self, at: Dim, stride: Dim, offset: Dim) -> Dim:
        """`stride * at + offset`."""
        return d.add(d.mul(at, stride), offset)

    def linearized(self, at: Sequence[Dim], sizes: Sequence[Dim]) -> Dim:
        """The row-major index of `at` in a shape of `sizes`."""
        flat: Dim = 0
        for coordinate, size in zip(at, sizes, strict=True):
            flat = d.add(d.mul(flat, size), coordinate)
        return flat

    def delinearized(self, at: Dim, sizes: Sequence[Dim]) -> list[Dim] | None:
        """The coordinates of row-major index `at`; None where one is no number."""
        found: list[Dim] = []
        for size in reversed(sizes):
            if not isinstance(at, int) or not isinstance(size, int) or size == 0:
                return None
            found.append(at % size)
            at //= size
        return found[::-1]
