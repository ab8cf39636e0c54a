"""What bands of rows are weighed by, in numbers: an image, what makes it, and what reads it through a window."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from fuseline.passes.dispatch.region_rows import RowRead
from fuseline.passes.dispatch.row_bands import Bands


@dataclass(frozen=True, slots=True)
class BandedSizes:
    """An image of `image_bytes` and `image_rows`, made in `maker_ns` on one thread; `reader_ns` is all behind it.

    `rows`: those of the results, which need of the image what `read` says, borders included.
    `handed_on`: bytes that are neither stored nor loaded beside the image. `beside`: bytes of all rows of the largest
    value that is kept beside it. `is_outermost`: some rows of each result lie in one piece. `low_loss`: the share of
    `maker_ns` that bands of one row take longer; it falls with the square of their rows. `moved_loss`: the share of the
    whole by which moving a band takes longer than moving all at once. `makes_rows`: rows are made one by one with bands
    or without, each in the same way whatever is made with it, so that a thread can keep those that two bands share and
    loses nothing (the pixels of a product are one row without bands: 1.02 to 1.06 where images lie in a cache).
    """

    image_bytes: int
    image_rows: int
    rows: int
    read: RowRead
    maker_ns: float
    reader_ns: float
    handed_on: int = 0
    beside: int = 0
    is_outermost: bool = True
    low_loss: float = 0.0
    moved_loss: float = 0.0
    makes_rows: bool = False

    @property
    def keeps(self) -> bool:
        """Whether bands share rows and a thread keeps them."""
        return self.makes_rows and self.read.reach >= self.read.stride

    def low_ns(self, cut: Sequence[Bands]) -> float:
        """What the maker takes longer, on one thread, because bands are low."""
        share = sum(bands.count / bands.rows for bands in cut) / self.rows
        return self.maker_ns * self.low_loss * share

    def kept_bytes(self, bands: Bands) -> int:
        """What each of `bands` keeps."""
        image = self.image_bytes // self.image_rows * bands.read_by(self.read).rows
        return image + self.beside * bands.rows // self.rows
