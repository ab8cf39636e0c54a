"""An axis in tiles, a grid in blocks.

split 13 rows in tiles of 5       0 ... 4 | 5 ... 8 | 9 ... 12        one tall tile of 5, two short ones of 4: no thin
                                                                      tile at the end
block 1 of 7 panels, 3 each       . . . 3 4 5 .
workgroups 4 to 8 in runs of 3    run 1: 4 5 | run 2: 6 7 8             each run enters once
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from fuseline.targets.cpu.kernel_ir.builder import KernelBuilder
from fuseline.targets.cpu.kernel_ir.types import Operand
from fuseline.targets.cpu.tiles import RowSplit

Range = tuple[Operand, Operand]
"""From the first up to the end."""


@dataclass(frozen=True, slots=True)
class Tiles:
    """Tiles number `begin` to `end` of an axis: `height` positions each, tile `t` from position `t * height + offset`
    on."""

    height: int
    offset: int
    begin: int
    end: int

    def start(self, kernel: KernelBuilder, tile: Operand) -> Operand:
        """The first position of a tile."""
        return kernel.add(kernel.mul(tile, self.height), self.offset)

    def first_of(self, tile: int) -> int:
        """The first position of a tile whose number is known."""
        return tile * self.height + self.offset

    @property
    def start_range(self) -> tuple[int, int]:
        """The first positions of the first and the last tile."""
        return self.first_of(self.begin), self.first_of(self.end - 1)

    def each(self, kernel: KernelBuilder, body: Callable[[Operand, Operand], Any], within: Range | None = None) -> None:
        """`body(tile, first position)` for those tiles whose number is in the range `within` (None: all)."""

        def tile(number: Operand) -> tuple[()]:
            body(number, self.start(kernel, number))
            return ()

        first, last = within or (self.begin, self.end)
        kernel.loop(kernel.max(first, self.begin), kernel.min(last, self.end), 1, tile)


def split_tiles(split: RowSplit, *, both: bool = False) -> Sequence[Tiles]:
    """The tall tiles of a split, and behind them the short ones, if there are any, or `both` are wanted.

    >>> [(tiles.height, tiles.start_range) for tiles in split_tiles(RowSplit(height=5, tall=1, short=2))]
    [(5, (0, 0)), (4, (5, 9))]
    """
    tall = Tiles(split.height, 0, 0, split.tall)
    return [tall, Tiles(split.height - 1, split.tall, split.tall, split.count)] if split.short or both else [tall]


def first_of(kernel: KernelBuilder, split: RowSplit, tile: Operand) -> Operand:
    """The first position of a tile of a split, of either height; of the tile behind the last, the extent."""
    if not split.short:
        return kernel.mul(tile, split.height)
    return kernel.add(kernel.mul(tile, split.height - 1), kernel.min(tile, split.tall))


def in_runs(
    kernel: KernelBuilder,
    length: int,
    within: Range,
    enter: Callable[[Operand], Any],
    body: Callable[[Operand], Sequence[Operand]],
) -> None:
    """Neighbours in runs of `length`: `enter(run)` once for each run that has some in the range `within`, then
    `body(number in the run)` for each of those."""

    def one(run: Operand) -> tuple[()]:
        enter(run)
        first = kernel.mul(run, length)
        lo = kernel.max(kernel.sub(begin, first), 0)
        kernel.loop(lo, kernel.min(kernel.sub(end, first), length), 1, body)
        return ()

    begin, end = within
    kernel.loop(kernel.div(begin, length), kernel.ceil_div(end, length), 1, one)


def block_of(kernel: KernelBuilder, index: Operand, size: int, count: Operand) -> Range:
    """What block `index` covers of `count` things in blocks of `size`; all of them where they are known to be one
    block."""
    if isinstance(count, int) and size >= count and not kernel.keeps_loops:
        return 0, count
    start = kernel.mul(index, size)
    return start, kernel.min(kernel.add(start, size), count)
