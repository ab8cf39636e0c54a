"""What kernels of windows have in common that are the same code up to numbers."""

from __future__ import annotations

from dataclasses import dataclass

from fuseline.targets.cpu.combinators.split import Tiles


@dataclass(frozen=True, slots=True)
class SharedForm:
    """Lines in tiles of `height` pixels, and of one less where `short`; whether tall tiles end a line anywhere
    (`tall_ends`), and whether short ones begin one (`short_begins`), and so may meet padding there."""

    height: int
    short: bool
    tall_ends: bool
    short_begins: bool

    def starts(self, tiles: Tiles, extent: int) -> tuple[int, int]:
        """The first pixels of the first and the last of some tiles of a line of `extent` pixels, as they meet padding
        wherever this code is run."""
        first, last = tiles.start_range
        if tiles.height == self.height:
            return 0, max(last, extent - tiles.height) if self.tall_ends else last
        return 0 if self.short_begins else first, last
