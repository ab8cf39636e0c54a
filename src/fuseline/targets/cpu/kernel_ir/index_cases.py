"""A loop by cases of its index: what holds of every iteration, shown of some of them at a time.

The last of equal blocks may be cut short, and then nothing that is counted in it (tiles, their rest, panels) is linear
in the number of the block. It is a number within each case:

    block b of 197 rows in blocks of 99      rows = min(99, 197 - 99 * b)      tiles = rows / 14

    b in [0, 1]    tiles between 7 and 7, rest between 0 and 1 ..          not shown
    b in [1, 1]    rows = 98, tiles = 7, no rest                           shown
    b in [0, 0]    rows = 99, tiles = 7, a rest of 1                       shown
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import NamedTuple

from fuseline.targets.cpu.kernel_ir.affine import Affine
from fuseline.targets.cpu.kernel_ir.decided import number_of, side_of
from fuseline.targets.cpu.kernel_ir.index_bounds import IndexBounds
from fuseline.targets.cpu.kernel_ir.types import Loop, Value

MOST_CASES = 128
"""Cases of one loop that are looked at; beyond them nothing is shown."""


class Case(NamedTuple):
    """The iterations of `loop` whose index lies in `[first, last]`."""

    loop: Loop
    first: int
    last: int

    def halves(self) -> tuple[Case, Case]:
        """The case in two, the later iterations first: those are cut short."""
        middle = (self.first + self.last) // 2
        return self._replace(first=middle + 1), self._replace(last=middle)


class CaseBounds(IndexBounds):
    """What `known` knows, of the iterations of one case of a loop that stands in no other."""

    def __init__(self, known: IndexBounds, case: Case) -> None:
        sizes = [known.numbers[size] for size in known.kernel.sizes]
        super().__init__(known.kernel, sizes, known.workgroups, known.contents)
        self.case = case

    def _form(self, value: Value) -> Affine:
        if value is self.case.loop.index and self.case.first == self.case.last:
            return Affine(self.case.first)
        form = super()._form(value)
        if list(form.terms) != [value]:
            return form
        if value.op in ("min", "max"):
            return side_of(self, value) or form
        return number_of(self, form) or form if value.op in ("udiv", "urem") else form

    def _bounds(self, atom: Value, above: bool) -> Iterator[list[Affine]]:
        if atom is self.case.loop.index:
            yield [Affine(self.case.last if above else self.case.first)]
        yield from super()._bounds(atom, above)


def whole_case(known: IndexBounds, loop: Loop) -> Case | None:
    """All iterations of a loop of step 1, where numbers bound its index."""
    first, end = known.least(known.form(loop.lo)), known.most(known.form(loop.hi))
    return None if first is None or end is None or loop.step != 1 or end <= first else Case(loop, first, end - 1)


def is_shown(case: Case, holds: Callable[[Case], bool]) -> bool:
    """Whether `holds` is true of cases that are all of `case` together."""
    left, looked_at = list(case.halves()[::-1]) if case.first < case.last else [case], 0
    while left:
        one, looked_at = left.pop(), looked_at + 1
        if holds(one):
            continue
        if one.first == one.last or looked_at >= MOST_CASES:
            return False
        left += one.halves()[::-1]
    return True
