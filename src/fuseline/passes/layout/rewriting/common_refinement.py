"""The coarsest sizes of which two shapes of one buffer are both made.

4 x 6        cut after 4, 24            4 x 3 x 2:   6 is 3 x 2,
12 x 2       cut after 12, 24                        12 is 4 x 3
"""

from __future__ import annotations

from collections.abc import Sequence

from fuseline.ir import dim as d
from fuseline.ir.dim import Dim
from fuseline.ir.rounds import rounds

Factors = list[list[Dim]]
"""For each dimension the sizes it is split into, outermost first; [size] for one that stays whole."""


def common_refinement(before: Sequence[Dim], after: Sequence[Dim]) -> tuple[Factors, Factors] | None:
    """The parts of each dimension of both shapes (of equal products, none zero), None where no sizes fit both.

    Row-major order cuts a shape at the products of its leading sizes; both are refined at the cuts of either, which is
    possible where each cut divides the next (for symbolic sizes: provably).

    >>> common_refinement([4, 6], [12, 2])
    ([[4], [3, 2]], [[4, 3], [2]])
    >>> common_refinement([4, 6], [3, 8]) is None
    True
    """
    sides: tuple[Factors, Factors] = ([], [])
    left = _Side(before, sides[0])
    right = _Side(after, sides[1])
    for _ in rounds("refining two shapes", most=len(before) + len(after)):  # each ends a dimension of either
        if left.size is None or right.size is None:
            break
        if left.size == right.size:
            left.close()
            right.close()
        elif (rest := _quotient(right.size, left.size)) is not None:
            right.cut(left.size, rest)
            left.close()
        elif (rest := _quotient(left.size, right.size)) is not None:
            left.cut(right.size, rest)
            right.close()
        else:
            return None
    return sides if left.size is None and right.size is None else None


class _Side:
    """One shape, traversed from its outermost dimension; dimensions of size 1 are passed by as they come."""

    def __init__(self, dims: Sequence[Dim], factors: Factors) -> None:
        self.rest = list(reversed(dims))
        self.factors = factors
        self.size: Dim | None = None
        self._next()

    def _next(self) -> None:
        self.size = None
        while self.rest and self.size is None:
            self.factors.append([])
            size = self.rest.pop()
            if size == 1:
                self.factors[-1].append(1)
            else:
                self.size = size

    def cut(self, factor: Dim, rest: Dim) -> None:
        """The current dimension is `factor` times `rest`: `factor` is done with."""
        self.factors[-1].append(factor)
        self.size = rest

    def close(self) -> None:
        """What is left of the current dimension is its last part."""
        assert self.size is not None
        self.factors[-1].append(self.size)
        self._next()


def _quotient(size: Dim, factor: Dim) -> Dim | None:
    """`size / factor` where that is whole, provably."""
    if isinstance(size, int) and isinstance(factor, int):
        return None if size % factor else size // factor
    quotient = d.floor_div(size, factor)
    return quotient if d.mul(quotient, factor) == size else None
