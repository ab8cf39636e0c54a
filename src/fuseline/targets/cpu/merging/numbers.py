"""The numbers in which merged kernels differ, as sizes of the merged one.

    rows of 64 and of 96 elements:    64 96    65 97    128 192    129 193
    one size n0 = 64 or 96:           n0       n0 + 1   2 * n0     2 * n0 + 1

What is left beside a multiple of a size stays a number, and so a displacement of a memory operand. Which columns become
sizes is decided once all are known: smaller ones first, of which others are multiples.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import TypeAlias

from fuseline.ir.rounds import rounds
from fuseline.targets.cpu.kernel_ir.builder import KernelBuilder
from fuseline.targets.cpu.kernel_ir.types import Operand

Column = tuple[int, ...]
"""A number in each of the kernels."""

Term: TypeAlias = "tuple[int, int]"
"""The number of a size, and how often it is meant."""

Terms: TypeAlias = "tuple[Term, ...]"

MOST_TIMES = 32
"""Up to so many times a size is multiplied in code rather than passed: rows of a tile are neighbours."""


FEWEST_ROWS = 5
"""Numbers that are multiples of one are taken for rows from so many on: a size that is passed, and that addresses are
counted in (`kernel_ir/row_pointers.py`)."""


FARTHEST = 64
"""From a multiple of a size to a number beside it, where both a size and a multiple of another one would do."""


class Numbers:
    """What columns of numbers are in the merged kernel. `first`: how many sizes the kernels have of their own; `sizes`:
    the columns that are passed. Those that are no multiple of any are passed, too."""

    def __init__(self, builder: KernelBuilder, first: int, sizes: Iterable[Column] = (), strides: int = 0) -> None:
        self.builder, self.first, self.strides = builder, first, strides
        self.sizes: list[Column] = list(sizes)
        self.factors: dict[Column, None] = {}
        self.summands: dict[Column, None] = {}
        self._terms: dict[Column, Terms] = {}

    def operand(self, column: Sequence[int]) -> Operand:
        """The number that is `column[i]` in kernel `i`: itself where it is the same in all."""
        column = tuple(column)
        if len(set(column)) == 1:
            return column[0]
        self.factors[column] = None
        return self._multiple(_exact(column, self.sizes) or self._passed(column))

    def sum(self, column: Sequence[int]) -> tuple[list[Operand], int]:
        """The same as multiples of sizes and a number, to be added up in this order: the number becomes a
        displacement."""
        column = tuple(column)
        if len(set(column)) == 1:
            return [], column[0]
        self.summands[column] = None
        if column not in self._terms:
            self._terms[column] = terms_of(column, self.sizes, self.strides) or (self._passed(column),)
        terms = self._terms[column]
        rest = column[0] - sum(times * self.sizes[i][0] for i, times in terms)
        return [self._multiple(term) for term in terms], rest

    def _passed(self, column: Column) -> Term:
        """A size of its own."""
        self.sizes.append(column)
        return len(self.sizes) - 1, 1

    def _multiple(self, term: Term) -> Operand:
        return self.builder.mul(self.builder.size(self.first + term[0]), term[1])

    def values(self) -> tuple[Column, ...]:
        """For each kernel its numbers, in the order in which the merged one takes them."""
        return tuple(zip(*self.sizes, strict=True))

    def fewest(self) -> tuple[list[Column], int]:
        """The columns to pass for what was asked for: those that are no multiple of a smaller one, or, of what is only
        added, nearly, or one beside another. How many of them are strides."""
        sizes = _strides({**self.factors, **self.summands})
        strides = len(sizes)
        for column in sorted(self.factors, key=_reach):
            if _exact(column, sizes) is None:
                sizes.append(column)
        for column in sorted(self.summands):
            if terms_of(column, sizes, strides) is None:
                sizes.append(column)
        return sizes, strides


def _strides(columns: Iterable[Column]) -> list[Column]:
    """The columns that stand for rows: many others are a multiple of them. Those with most multiples come first."""
    left, strides = set(columns), list[Column]()
    for _ in rounds("strides of merged kernels", most=len(left)):
        multiples = {one: {other for other in left if _exact(other, [one]) is not None} for one in left}
        found = min(left, key=lambda one: (-len(multiples[one]), _reach(one)), default=())
        if not found or len(multiples[found]) < FEWEST_ROWS:
            break
        strides.append(found)
        left -= multiples[found]
    return strides


def _reach(column: Column) -> tuple[int, int, Column]:
    return max(column) - min(column), sum(map(abs, column)), column


def terms_of(column: Column, sizes: Sequence[Column], strides: int) -> Terms | None:
    """Sizes, and how often each is in a column but for a number that is the same in all kernels: one of them, or once
    one and so often another, one of the first `strides`."""
    rows = sizes[:strides]
    for found in (_exact(column, rows), _near(column, rows)):
        if found is not None and abs(column[0] - found[1] * sizes[found[0]][0]) <= FARTHEST:
            return (found,)
    for i, size in enumerate(sizes):
        beside = tuple(one - other for one, other in zip(column, size, strict=True))
        found = _exact(beside, rows) if i >= strides and any(beside) else None
        if found is not None:
            return (i, 1), found
    found = _exact(column, sizes) or _near(column, sizes)
    return (found,) if found is not None else None


def _exact(column: Column, sizes: Sequence[Column]) -> Term | None:
    """A size, and how often it is in `column`."""
    found = ((i, _times(column, size)) for i, size in enumerate(sizes))
    return next(((i, times) for i, times in found if times and column[0] == times * sizes[i][0]), None)


def _near(column: Column, sizes: Sequence[Column]) -> Term | None:
    """A size, and how often it is in `column` but for a number that is the same in all kernels, the smallest there
    is."""
    found = [(i, times) for i, size in enumerate(sizes) if (times := _times(column, size))]
    return min(found, key=lambda one: (abs(column[0] - one[1] * sizes[one[0]][0]), one[1] != 1, one[0]), default=None)


def _times(column: Column, size: Column) -> int:
    """How often what `size` differs by is what `column` differs by; 0 where it is not, or too often."""
    steps = [(one - column[0], other - size[0]) for one, other in zip(column, size, strict=True)]
    times = next((one // other for one, other in steps if other), 0)
    exact = all(one == times * other for one, other in steps)
    return times if exact and abs(times) <= MOST_TIMES else 0
