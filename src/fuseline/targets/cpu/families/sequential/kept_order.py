"""A row put in order in scratch, as far as there is room: what a kernel asks of the two ways to do it.

An element comes by in the order of the row. `room` elements lie in scratch; where that is not all of the row and the
first `want` are asked for, they are sorted whenever the room is full, and all but the first `want` are forgotten. What
comes later is kept only where it comes before the last of these. So a row of any length takes one walk for `want`
elements, and a few megabytes at the most.

    want 2, room 4:   7 3 9 4 | 8 1 5 ..  ->  3 4 . . | 8 1 5 ..  ->  3 4 1 . | 5 ..     8 comes behind 4: passed over
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from fuseline.targets.cpu.combinators.lanes import LaneLoop, is_masked
from fuseline.targets.cpu.emit.coordinates import AnyIndex
from fuseline.targets.cpu.kernel_ir.builder import KernelBuilder
from fuseline.targets.cpu.kernel_ir.types import Operand, Value

KeyAt = Callable[[int, AnyIndex, int, "Operand | None"], Value]
"""`(number, index, lanes, active)`: a key of the elements from `index` on."""

Found = Callable[[Operand, int, "Operand | None", Value], None]
"""`(place, lanes, active, positions)`: told where in the row the elements are that have these places in the order."""

FEW = 128
"""Elements up to which counting sorts faster than digits or merging (measured: 1 us)."""

SELECTED = 8
"""Elements up to which the first are found one after the other, each in a look at all: eight vectors of them and the
comparison across the lanes take less than to sort as many."""

VECTORS = 4
"""Vectors of keys that are compared before it is asked whether any of them counts."""

LEAST_FREE = 64
"""Elements that find room between two sorts at the least."""


@dataclass(frozen=True, slots=True)
class Rooms:
    """`want` elements are found in one walk, `room` lie in scratch; `whole`: all of a row do."""

    want: int
    room: int
    whole: bool


def rooms_of(most: int | None, limit: int | None, largest: int) -> Rooms:
    """Room for rows of up to `most` elements (None: any number) of which the first `limit` (None: all) are asked for;
    no walk finds more than `largest`."""
    bounds = [bound for bound in (most, limit, largest) if bound is not None]
    want = max(min(bounds), 1)
    room = want + max(want, LEAST_FREE)
    return (
        Rooms(want, most, True) if most is not None and most <= room and most <= largest else Rooms(want, room, False)
    )


class KeptOrder(ABC):
    """The order of a row, by keys that are asked for element by element."""

    def __init__(self, kernel: KernelBuilder, rooms: Rooms, key: KeyAt) -> None:
        self.kernel, self.rooms, self.key = kernel, rooms, key

    def run(self, count: Operand, total: Operand, *, again: bool, found: Found, lanes: int) -> None:
        """Tell `found` of the first `total` of `count` elements. `again`: more may be asked for than one walk finds."""
        kernel, want = self.kernel, self.rooms.want
        if self.rooms.whole or not again:
            self.collect(count, None)
            self._tell(0, kernel.min(total, self._most), found, lanes)
            return

        def walk(first: Operand, *last: Value) -> Sequence[Value]:
            self.collect(count, last)
            self._tell(first, kernel.min(kernel.sub(total, first), want), found, lanes)
            return self.behind(want - 1)

        kernel.loop(0, total, want, walk, self.before_all())

    @property
    def _most(self) -> int:
        return self.rooms.room if self.rooms.whole else self.rooms.want

    def _tell(self, first: Operand, count: Operand, found: Found, lanes: int) -> None:
        kernel = self.kernel

        def places(
            starts: list[Operand], lanes: int, active: Operand | None, state: tuple[Value, ...]
        ) -> Sequence[Value]:
            found(kernel.add(first, starts[0]), lanes, active, self.positions(starts[0], lanes, active))
            return state

        LaneLoop(kernel, lanes, masked=is_masked(kernel, "i64")).run(0, count, places)

    @abstractmethod
    def collect(self, count: Operand, last: Sequence[Value] | None) -> None:
        """Walk along the row: the first `want` elements (behind `last`), or all that there are, lie in order in
        scratch."""

    @abstractmethod
    def positions(self, place: Operand, lanes: int, active: Operand | None) -> Value:
        """Where in the row the elements at neighbouring places in scratch are (i64)."""

    @abstractmethod
    def before_all(self) -> Sequence[Operand]:
        """What stands for a last element that all come behind."""

    @abstractmethod
    def behind(self, place: Operand) -> Sequence[Value]:
        """The element at a place in scratch, as the last one of a walk."""
