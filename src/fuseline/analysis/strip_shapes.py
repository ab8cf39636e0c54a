"""How large the strips are that an image is evaluated in (`image_strips.py`), over plain numbers: for their price and
for the kernel.

    whole lines      of 112 pixels, 12 in 112 KiB: what lies between two strips is evaluated by both
    blocks           where lines are too long for that, or nobody knows how long: some pixels of some lines, as nearly
                     square as evaluates the least
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from fuseline.ir.costs import LINE_BYTES

STRIP_BYTES = 112 * 1024
"""Scratch for a strip: well within a second-level cache."""

WHOLE_LINES = 1.2
"""How much more strips of whole lines may evaluate than blocks, whose tiles the run cuts: silu before a 3x3 window of
32 channels takes 1.08 of the time in blocks at 56x56 (1.1 times fewer evaluations), .81 at 224x224 (1.3 times)."""

Steps = Callable[[int], int]
"""`steps(n)`: lines (or pixels) of the image under so many of the result."""


@dataclass(frozen=True, slots=True)
class Extent:
    """`count` lines, or pixels of a line, of the result, and `steps` of the image under some of them. `known`: not
    only assumed."""

    count: int
    steps: Steps
    known: bool = True


@dataclass(frozen=True, slots=True)
class StripShape:
    """`lines` of the result with `pixels` of each, at most, and how often elements are evaluated in such strips."""

    lines: int
    pixels: int
    often: float


def whole_lines(lines: Extent, pixels: Extent, high: int) -> StripShape:
    """Strips of so many lines, all pixels of each."""
    return StripShape(high, pixels.count, times_evaluated(lines.steps, lines.count, high))


def strip_shape(lines: Extent, pixels: Extent, pixel_bytes: int) -> StripShape | None:
    """The strips of `STRIP_BYTES` at most: whole lines where some fit, and evaluate not much more than the blocks that
    evaluate the least, else those; None where there is room for neither."""
    widths = sorted({-(-pixels.count // n) for n in range(1, pixels.count + 1)}, reverse=True)
    found = [_block(lines, pixels, width, pixel_bytes) for width in widths]
    least = min((shape for shape in found if shape is not None), key=lambda shape: shape.often, default=None)
    high = strip_height(lines.steps, lines.count, pixels.steps(pixels.count) * pixel_bytes, STRIP_BYTES)
    if not pixels.known or not high or least is None:
        return least
    whole = whole_lines(lines, pixels, high)
    return whole if whole.often <= WHOLE_LINES * least.often else least


def _block(lines: Extent, pixels: Extent, width: int, pixel_bytes: int) -> StripShape | None:
    """As high as blocks of so many pixels of a line can be."""
    high = strip_height(lines.steps, lines.count, pixels.steps(width) * pixel_bytes, STRIP_BYTES)
    if not high:
        return None
    again = times_evaluated(pixels.steps, pixels.count, width)
    return StripShape(high, width, again * times_evaluated(lines.steps, lines.count, high))


def widest_strip(lines: Extent, pixels: Extent, high: int, size: int) -> StripShape | None:
    """As wide as blocks of so many lines can be, in whole cache lines of elements of `size` bytes: but for long lines,
    all of their pixels; None where there is no room."""
    together = max(1, LINE_BYTES // size)
    room = STRIP_BYTES // (lines.steps(high) * size)
    width = strip_height(pixels.steps, room, 1, room) // together * together
    if not width:
        return None
    again = times_evaluated(pixels.steps, pixels.count, min(width, pixels.count))
    return StripShape(high, width, again * times_evaluated(lines.steps, lines.count, min(high, lines.count)))


def bunch_of(vectors: int, vector_bytes: int, cache_lines: int) -> int:
    """How many of the vectors that a pixel's channels are get copied together: those of so many cache lines, or all
    where they are less."""
    return min(vectors, max(1, cache_lines * LINE_BYTES // vector_bytes))


def strip_height(steps: Steps, lines: int, line_bytes: int, most: int) -> int:
    """The most of so many lines of a result whose image is no more than `most` bytes; 0: not one. `steps(n)`: lines of
    the image, of `line_bytes` each, under `n` of the result."""
    return next((n for n in range(lines, 0, -1) if steps(n) * line_bytes <= most), 0)


def times_evaluated(steps: Steps, lines: int, height: int) -> float:
    """How often an element is evaluated in equal strips of so many lines of the result at most."""
    strips = -(-lines // height)
    return max(1.0, strips * steps(-(-lines // strips)) / steps(lines))
