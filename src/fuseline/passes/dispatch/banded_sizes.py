"""What bands of rows are weighed by, in numbers: an image, what makes it, and what reads it through a window."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class BandedSizes:
    """An image of `image_bytes` and `image_rows`, made in `maker_ns` on one thread; `reader_ns` is all behind it.

    `rows`: those of the results; row `m` needs the image's `stride * m` to `stride * m + reach`, borders included.
    `handed_on`: bytes that are neither stored nor loaded beside the image. `beside`: bytes of all rows of the largest
    value that is kept beside it. `is_outermost`: some rows of each result lie in one piece.
    """

    image_bytes: int
    image_rows: int
    rows: int
    stride: int
    reach: int
    maker_ns: float
    reader_ns: float
    handed_on: int = 0
    beside: int = 0
    is_outermost: bool = True

    def read_by(self, rows: int) -> int:
        """How many rows of the image so many rows of the results need."""
        return self.stride * (rows - 1) + self.reach + 1

    def kept_bytes(self, rows: int) -> int:
        """What a band of so many rows keeps."""
        return self.image_bytes // self.image_rows * self.read_by(rows) + self.beside * rows // self.rows
