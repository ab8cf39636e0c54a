"""Rows whose number is only known at run time, cut into tiles of several heights.

    11 rows in tiles of 6         6 | 5              what whole tiles leave is one tile, or powers of two and one of
    25 rows in tiles of 14        14 | 8 + 3         less than four rows: each row is computed once, a decoder's one row
                                                     by itself

Where rows may meet padding, each height is much code, and there are two:

    13 rows in tiles of 6         6 | 4 | 3 of 4     a row or two share with the last whole tile: two short tiles
    16 rows                       6 | 6 | 4 of 4     some fill most of a short tile
    17 rows                       6 | 6 | 5 of 6     more take a tall one

Rows that a tile lacks repeat its last and are not stored; addresses of their own for each are twice the time. Tiles
are numbered as if all were tall, so that workgroups can share them out without knowing the heights.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import reduce

from fuseline.analysis.operand_access import Bound
from fuseline.ir import dim as d
from fuseline.ir.dim import Dim
from fuseline.targets.cpu.emit.dispatch_buffers import DispatchBuffers
from fuseline.targets.cpu.kernel_ir.builder import KernelBuilder
from fuseline.targets.cpu.kernel_ir.types import Operand, Value


def short_height(height: int) -> int:
    """Rows of a short tile: two of them are a third more than a tall one.

    >>> short_height(6), short_height(14), short_height(2)
    (4, 10, 2)
    """
    return -(-2 * height // 3)


@dataclass(frozen=True, slots=True)
class Interior:
    """Tiles `first` up to `end` of a line that meet no padding, if they are whole."""

    first: int
    end: Dim


class RuntimeRows:
    """The tiles of one line of `extent` rows: `tall` ones of `height` rows, then what they leave."""

    def __init__(self, kernel: KernelBuilder, extent: Operand, height: int) -> None:
        self.kernel, self.extent, self.height = kernel, extent, height
        self.whole: Operand = kernel.div(self.extent, height)
        self.rest: Operand = kernel.sub(self.extent, kernel.mul(self.whole, height))

    def start(self, tile: Operand) -> Operand:
        """The first row of a tile of the full height."""
        return self.kernel.mul(tile, self.height)

    def first_row(self, tile: Operand) -> Operand:
        """Where tile `tile` begins; of the tile past the last, the extent."""
        return self.kernel.min(self.start(tile), self.extent)


LOW, LOW_OF_SHORT = 4, 8
"""Rows below which what is left is one part; in tiles of no more than `LOW_OF_SHORT` rows all of it: few rows by
themselves wait for their own sums, and two parts of so few for longer than one (AVX2, tiles of 6, 5 rows: 4 and 1 take
1.2 of the time of 5)."""


class ExactRows(RuntimeRows):
    """Those of rows that meet no padding: `parts` are the heights of what may follow the whole tiles, each once."""

    @property
    def low(self) -> int:
        """Fewer rows than this are one part."""
        return LOW_OF_SHORT if self.height <= LOW_OF_SHORT else LOW

    @property
    def parts(self) -> Sequence[int]:
        """Powers of two below the height, the largest first, then what may be left of them."""
        powers = (1 << n for n in reversed(range((self.height - 1).bit_length())))
        return (*(part for part in powers if part >= self.low), *reversed(range(1, min(self.low, self.height))))

    def has(self, part: int) -> Operand:
        """1 where a part of this height is there, else 0."""
        kernel = self.kernel
        if part >= self.low:
            return kernel.rem(kernel.div(self.rest, part), 2)
        left = kernel.rem(self.rest, self.low)
        apart = kernel.add(kernel.max(kernel.sub(left, part), 0), kernel.max(kernel.sub(part, left), 0))
        return kernel.sub(1, kernel.min(apart, 1))

    def larger_parts(self, part: int) -> Operand:
        """The rows of those that come before it."""
        kernel, larger = self.kernel, 2 * part if part >= self.low else self.low
        return kernel.mul(kernel.div(self.rest, larger), larger)


class PaddedRows(RuntimeRows):
    """Those of rows that may meet padding: then up to two of `short` rows, or one of `height` that is not whole.

    With an `interior`, whole tiles that meet padding take far longer than others, so that none is given up for two
    short ones. What depends on the extent is said in minima and products, which the bounds checker follows.
    """

    def __init__(self, buffers: DispatchBuffers, extent: Dim, height: int, interior: Interior | None) -> None:
        super().__init__(buffers.kernel, buffers.operand(extent), height)
        kernel, rest = self.kernel, self.rest
        self.short = short_height(height)
        self.count: Operand = kernel.ceil_div(self.extent, height)
        shared = 0 if interior is not None else self._at_most(rest, 2 * self.short - height)
        pairs = kernel.mul(kernel.mul(kernel.min(self.whole, 1), kernel.min(rest, 1)), shared)
        self.tall: Operand = kernel.sub(self.whole, pairs)
        self.is_short: Operand = self._at_most(rest, self.short) if self.short < height else 0
        self.short_end: Operand = kernel.add(self.tall, kernel.mul(kernel.sub(self.count, self.tall), self.is_short))
        self.tall_end: Operand = kernel.sub(kernel.add(self.tall, self.count), self.short_end)
        self.interior = interior
        self.interior_end: Operand = 0 if interior is None else kernel.min(buffers.operand(interior.end), self.tall)

    def _at_most(self, rows: Operand, limit: int) -> Operand:
        """1 where `rows` are at most `limit`, else 0."""
        kernel = self.kernel
        return kernel.sub(1, kernel.min(kernel.max(kernel.sub(rows, limit), 0), 1))

    def short_start(self, tile: Operand) -> Operand:
        """The first row of a short tile."""
        kernel = self.kernel
        return kernel.add(kernel.mul(self.tall, self.height), kernel.mul(kernel.sub(tile, self.tall), self.short))

    def valid(self, start: Operand, height: int) -> Operand:
        """How many rows of a tile at `start` exist."""
        return self.kernel.min(self.kernel.sub(self.extent, start), height)

    def is_inside(self, tile: Operand) -> Value:
        """Whether a tile is whole and meets no padding."""
        assert self.interior is not None
        kernel = self.kernel
        return kernel.bitand(
            kernel.compare("ge", tile, self.interior.first), kernel.compare("lt", tile, self.interior_end)
        )

    @property
    def last_low(self) -> int:
        """The first row of the last tile that meets padding at the low side."""
        return max(0, self.interior.first - 1) * self.height if self.interior is not None else 0

    def is_low(self, tile: Operand) -> Value:
        """Whether a tile that is not inside is whole and meets padding at the low side only."""
        return self.kernel.compare("lt", tile, self.interior_end)

    def first_row(self, tile: Operand) -> Operand:
        """Where tile `tile` begins, of whichever height; of the tile past the last, the extent."""
        kernel = self.kernel
        behind = kernel.sub(self.height, kernel.mul(self.is_short, self.height - self.short))
        rows = kernel.mul(kernel.max(kernel.sub(tile, self.tall), 0), behind)
        return kernel.min(kernel.add(kernel.mul(kernel.min(tile, self.tall), self.height), rows), self.extent)


NO_END = 1 << 40
"""More tiles than any line has."""


def interior_of(bounds: Sequence[Bound], tiled: int, extents: Mapping[int, Dim], height: int) -> Interior | None:
    """The tiles of `height` rows along loop `tiled` that stay inside `bounds` wherever the loops of `extents` are; None
    where that is not known."""
    found = [_within(bound, tiled, extents, height) for bound in bounds if tiled in bound.coordinate.terms]
    known = [one for one in found if one is not None]
    if len(known) != len(found):
        return None
    return common(known) if known else Interior(0, NO_END)


def common(found: Sequence[Interior]) -> Interior:
    """The tiles that are inside for all of them."""
    return Interior(max(one.first for one in found), reduce(d.minimum, (one.end for one in found)))


def _within(bound: Bound, tiled: int, extents: Mapping[int, Dim], height: int) -> Interior | None:
    low = high = bound.coordinate.constant
    step = bound.coordinate.terms[tiled]
    for loop, coefficient in bound.coordinate.terms.items():
        if loop == tiled:
            continue
        extent = extents.get(loop) if isinstance(loop, int) else None
        if not isinstance(extent, int) or not isinstance(coefficient, int):
            return None
        ends = (0, coefficient * (extent - 1))
        low, high = d.add(low, min(ends)), d.add(high, max(ends))
    if not isinstance(step, int) or step <= 0 or not isinstance(low, int):
        return None
    room = d.maximum(d.add(d.sub(bound.size, d.add(high, 1)), step), 0)
    return Interior(max(0, -(low // (step * height))), d.floor_div(room, step * height))
