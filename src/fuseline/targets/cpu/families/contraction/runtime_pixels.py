"""A line of pixels whose length only the run knows, in tiles of one of a few widths.

    14 pixels, widths 11, 7 and 4      7 | 7           the width that computes the fewest pixels in vain
    16                                 7 | 7 | 7       the last tile is laid back over the one before, and stores what
                                                       that one has not

Fewer pixels than the least width are tiles by themselves.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import Any

from fuseline.targets.cpu.kernel_ir.builder import KernelBuilder
from fuseline.targets.cpu.kernel_ir.types import Operand

SHARES = (1.0, 0.6, 0.35)
"""The widths, in that of a tile."""

TILE_OVERHEAD = 2
"""What a tile takes beside its pixels, in pixels: columns of the image at its ends, filters."""

_NEVER = 1 << 20


def widths_of(pixels: int) -> tuple[int, ...]:
    """The widths for tiles of at most `pixels`.

    >>> widths_of(11), widths_of(3), widths_of(1)
    ((11, 7, 4), (3, 2), (1,))
    """
    found = {-(-int(pixels * 100 * share) // 100) for share in SHARES}
    return tuple(sorted((width for width in found if width > 1), reverse=True)) or (1,)


@dataclass(frozen=True, slots=True)
class Tiles:
    """The tiles of one width: `count`, of which `whole` ones lie side by side and one may be laid back; none where the
    run takes another width."""

    width: int
    whole: Operand
    count: Operand


class RuntimePixels:
    """How a line of `extent` pixels is cut: `tiles` per width, of which one has any, or `single` pixels."""

    def __init__(self, kernel: KernelBuilder, extent: Operand, pixels: int) -> None:
        self.kernel, self.extent = kernel, extent
        widths = widths_of(pixels)
        costs = [self._cost(width) for width in widths]
        least = costs[0]
        for cost in costs[1:]:
            least = kernel.min(least, cost)
        left: Operand = 1
        self.tiles: list[Tiles] = []
        for width, cost in zip(widths, costs, strict=True):
            fits = kernel.min(kernel.div(self.extent, width), 1)
            chosen = kernel.mul(kernel.mul(left, fits), kernel.sub(1, kernel.min(kernel.sub(cost, least), 1)))
            left = kernel.sub(left, chosen)
            self.tiles.append(self._tiles(width, chosen))
        self.single: Operand = kernel.mul(left, self.extent)

    def _cost(self, width: int) -> Operand:
        kernel = self.kernel
        missing = kernel.max(kernel.sub(width, self.extent), 0)
        return kernel.add(
            kernel.mul(kernel.ceil_div(self.extent, width), width + TILE_OVERHEAD), kernel.mul(missing, _NEVER)
        )

    def _tiles(self, width: int, chosen: Operand) -> Tiles:
        kernel = self.kernel
        whole, count = kernel.div(self.extent, width), kernel.ceil_div(self.extent, width)
        return Tiles(width, kernel.mul(whole, chosen), kernel.mul(count, chosen))

    def each(self, body: Callable[[int, Operand, Operand], Any]) -> None:
        """`body(pixels, first, stored)` for every tile: how many it has, its first one, and how many of those the tile
        before has stored."""
        kernel = self.kernel

        def one(width: int, t: Operand) -> tuple[()]:
            first = kernel.mul(t, width)
            start = kernel.min(first, kernel.sub(self.extent, width))
            body(width, start, kernel.sub(first, start))
            return ()

        def alone(t: Operand) -> tuple[()]:
            body(1, t, 0)
            return ()

        for tiles in self.tiles:
            kernel.loop(0, tiles.count, 1, partial(one, tiles.width))
        kernel.loop(0, self.single, 1, alone)
