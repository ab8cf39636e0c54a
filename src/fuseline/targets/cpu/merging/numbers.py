"""The numbers in which merged kernels differ, as sizes of the merged one.

    rows of 64 and of 96 elements:    64 96    65 97    128 192    129 193
    one size n0 = 64 or 96:           n0       n0 + 1   2 * n0     2 * n0 + 1

What is left beside a multiple of a size stays a number, and so a displacement of a memory operand. Which columns become
sizes is decided once all are known: smaller ones first, of which others are multiples.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from fuseline.targets.cpu.kernel_ir.builder import KernelBuilder
from fuseline.targets.cpu.kernel_ir.types import Operand

Column = tuple[int, ...]
"""A number in each of the kernels."""

MOST_TIMES = 32
"""Up to so many times a size is multiplied in code rather than passed: rows of a tile are neighbours."""


class Numbers:
    """What columns of numbers are in the merged kernel. `first`: how many sizes the kernels have of their own; `sizes`:
    the columns that are passed. Those that are no multiple of any are passed, too."""

    def __init__(self, builder: KernelBuilder, first: int, sizes: Iterable[Column] = ()) -> None:
        self.builder, self.first = builder, first
        self.sizes: list[Column] = list(sizes)
        self.factors: dict[Column, None] = {}
        self.summands: dict[Column, None] = {}

    def operand(self, column: Sequence[int]) -> Operand:
        """The number that is `column[i]` in kernel `i`: itself where it is the same in all."""
        column = tuple(column)
        if len(set(column)) == 1:
            return column[0]
        self.factors[column] = None
        return self._multiple(column, _exact(column, self.sizes))

    def sum(self, column: Sequence[int]) -> tuple[Operand, int]:
        """The same as a size and a number to be added to it last, where it becomes a displacement."""
        column = tuple(column)
        if len(set(column)) == 1:
            return 0, column[0]
        self.summands[column] = None
        found = _near(column, self.sizes)
        rest = 0 if found is None else column[0] - found[1] * self.sizes[found[0]][0]
        return self._multiple(column, found), rest

    def _multiple(self, column: Column, found: tuple[int, int] | None) -> Operand:
        """A size, so often as `found` says; one of its own where it says nothing."""
        if found is None:
            self.sizes.append(column)
            found = len(self.sizes) - 1, 1
        return self.builder.mul(self.builder.size(self.first + found[0]), found[1])

    def values(self) -> tuple[Column, ...]:
        """For each kernel its numbers, in the order in which the merged one takes them."""
        return tuple(zip(*self.sizes, strict=True))

    def fewest(self) -> list[Column]:
        """The columns to pass for what was asked for: those that are no multiple of a smaller one, or, of what is only
        added, nearly."""
        sizes: list[Column] = []
        for wanted, known in ((self.factors, _exact), (self.summands, _near)):
            for column in sorted(wanted, key=_reach):
                if known(column, sizes) is None:
                    sizes.append(column)
        return sizes


def _reach(column: Column) -> tuple[int, int, Column]:
    return max(column) - min(column), sum(map(abs, column)), column


def _exact(column: Column, sizes: Sequence[Column]) -> tuple[int, int] | None:
    """A size, and how often it is in `column`."""
    found = ((i, _times(column, size)) for i, size in enumerate(sizes))
    return next(((i, times) for i, times in found if times and column[0] == times * sizes[i][0]), None)


def _near(column: Column, sizes: Sequence[Column]) -> tuple[int, int] | None:
    """A size, and how often it is in `column` but for a number that is the same in all kernels; once, if any is."""
    found = [(times != 1, i, times) for i, size in enumerate(sizes) if (times := _times(column, size))]
    return next(((i, times) for _, i, times in sorted(found)), None)


def _times(column: Column, size: Column) -> int:
    """How often what `size` differs by is what `column` differs by; 0 where it is not, or too often."""
    steps = [(one - column[0], other - size[0]) for one, other in zip(column, size, strict=True)]
    times = next((one // other for one, other in steps if other), 0)
    exact = all(one == times * other for one, other in steps)
    return times if exact and abs(times) <= MOST_TIMES else 0
