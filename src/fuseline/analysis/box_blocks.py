"""Into which blocks the image boxes of a convolution (`image_box.py`) are divided.

2 lines of 112 pixels:      9 rows of 229 columns
8 lines of 112 pixels:      21 rows of 229 columns      lines between two blocks are evaluated by both: fewer, but
                                                        the box is larger, and threads have fewer blocks to share
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import takewhile
from math import prod

from fuseline.analysis.image_box import ImageBox
from fuseline.analysis.packings import BLOCK_FLOPS, MOST_BLOCKS
from fuseline.ir.costs import LINE_BYTES, MachineCosts, assumed_size
from fuseline.ir.dim import Dim

BLOCKS_OF_THREAD = 2
"""Blocks that are left for each of several threads, at least: higher ones are not made."""

ALMOST = 0.01
"""The share of the time that blocks may take longer whose box is near, or that are lower."""

UNEVEN = 1.1
"""How much more than its part of the lines a thread may have, where blocks do not go round."""

NEAR_BYTES = 28 * 1024
"""Bytes of a box that stays in the first-level cache, beside columns."""

LEAST_ROWS = 512
"""Rows of a block beside columns that the run packs, anew for each block: with fewer, packing would take a share of the
arithmetic that counts. One block packs them once, as any kernel does."""

LEAST_ROWS_OF_CUT = 192
"""The same of a box that goes on in blocks of the reduction, half of those whose sums wait in scratch: else its image
would be packed anew for each position of the window (measured .60 to .78 of the time of separate dispatches)."""

LEAST_WIDTH = 14
"""Pixels of a line, at least, that a block has where it has not all of them: those of a register tile."""

VECTOR = LINE_BYTES // 4
"""Columns of f32 that are computed together, whether they are wanted or not."""


@dataclass(frozen=True, slots=True)
class BoxBlock:
    """A block of `lines` with `pixels` of each, and how many elements all blocks evaluate."""

    lines: int
    pixels: int
    evaluated: int


def choose_box_block(
    box: ImageBox,
    extents: Sequence[int],
    element_ns: float,
    root_ns: float,
    *,
    highest: bool = False,
    least: int = 1,
    threads: int = 1,
) -> BoxBlock:
    """The block whose rows are evaluated the least: rows between two blocks are evaluated by both, and so are fewer in
    higher ones, of those that go round. A box that is more than near takes scratch: it is for what counts.

    Args:
        extents: of the root's loops, assumed where they are not known. element_ns: to evaluate an element. root_ns:
        the convolution's arithmetic. highest: always the highest, where columns are packed for each block. least:
        lines of a block in any case, as far as they fit. threads: that share the blocks.
    """
    lines, pixels = ((1, 1, *(extents[loop] for loop in box.rows[-2:])))[-2:]
    outer = prod(extents[loop] for loop in box.rows[:-2])
    if box.cut:
        return _of_cut_box(box, (lines, pixels), outer, threads)
    room = next((n for n in range(pixels, 0, -1) if box.fits(box.counts(1, n))), 1)
    if room < pixels or 0 in (lines, pixels, outer):
        return _block(box, (lines, pixels), (1, room), outer)
    heights = [n for n in range(1, lines + 1) if n <= least or -(-lines // n) * outer >= least_blocks(threads)]
    fitting = list(takewhile(lambda high: high == 1 or box.fits(box.counts(high, pixels)), heights))
    high = [n for n in fitting if n >= least] or fitting[-1:]
    if highest:
        return _block(box, (lines, pixels), (high[-1], pixels), outer)

    def share(n: int) -> float:
        """Of the lines, what one thread has, where 1 is its part of them."""
        return -(-(-(-lines // n) * outer) // threads) * n * threads / (lines * outer)

    def total_ns(n: int) -> float:
        return root_ns + _block(box, (lines, pixels), (n, pixels), outer).evaluated * element_ns

    shared = [n for n in high if share(n) <= UNEVEN] or [min(high, key=share)]
    most_ns = (1.0 + ALMOST) * min(map(total_ns, shared))
    almost = [n for n in shared if total_ns(n) <= most_ns]
    near = [n for n in almost if box.bytes(box.counts(n, pixels)) <= NEAR_BYTES]
    found = min(near, key=total_ns) if near else almost[0]
    return _block(box, (lines, pixels), (found, pixels), outer)


def _of_cut_box(box: ImageBox, whole: tuple[int, int], outer: int, threads: int) -> BoxBlock:
    """Of a box that goes on in blocks of the reduction: as high, and of as many pixels of a line, as evaluates almost
    the least; of those that do, one of the most rows."""
    lines, pixels = whole
    widths = sorted({-(-pixels // n) for n in range(1, max(1, pixels // LEAST_WIDTH) + 1)}, reverse=True)
    found: list[BoxBlock] = []
    for wide in widths:
        most = next((n for n in range(lines, 0, -1) if box.fits(box.counts(n, wide))), None)
        if most is not None:
            high = -(-lines // max(-(-lines // most), -(-least_blocks(threads) // (outer * -(-pixels // wide)))))
            found.append(_block(box, whole, (max(1, high), wide), outer))
    least = min((block.evaluated for block in found), default=0)
    almost = [block for block in found if block.evaluated <= (1.0 + ALMOST) * least]
    return max(almost, key=lambda one: one.lines * one.pixels, default=_block(box, whole, (1, min(widths)), outer))


def least_blocks(threads: int) -> int:
    """How many blocks are left for so many threads, at least."""
    return BLOCKS_OF_THREAD * threads if threads > 1 else 1


def packs_columns_seldom(box: ImageBox, extents: Sequence[Dim], threads: int = 1) -> bool:
    """Whether columns that are packed anew for each block of the box are packed for many rows, or once; at the sizes
    that are assumed."""
    known = [assumed_size(extent) for extent in extents]
    block = choose_box_block(box, known, 0.0, 0.0, highest=True, threads=threads)
    rows = prod(known[loop] for loop in box.rows)
    least = LEAST_ROWS_OF_CUT if box.cut else LEAST_ROWS
    return block.lines * block.pixels >= min(least, rows)


def blocks_of(box: ImageBox, extents: Sequence[int]) -> int:
    """How many blocks a convolution over `extents` is divided into, none with less than `BLOCK_FLOPS`; columns count in
    whole vectors."""
    rows, steps = (prod(extents[loop] for loop in loops) for loops in (box.rows, box.window))
    columns = prod(extents) // max(1, rows * steps)
    return min(MOST_BLOCKS, max(1, 2 * rows * steps * -(-columns // VECTOR) * VECTOR // BLOCK_FLOPS))


def lines_of_block(box: ImageBox, extents: Sequence[int]) -> int:
    """Lines that each of `blocks_of` has."""
    lines, outer = prod(extents[loop] for loop in box.rows[-2:-1]), prod(extents[loop] for loop in box.rows[:-2])
    return -(-lines // max(1, min(lines, -(-blocks_of(box, extents) // max(1, outer)))))


def _block(box: ImageBox, whole: tuple[int, int], size: tuple[int, int], outer: int) -> BoxBlock:
    """Of `size` lines and pixels, of as many as there are in the `whole`."""
    blocks = outer * prod(-(-count // mine) for count, mine in zip(whole, size, strict=True))
    return BoxBlock(*size, blocks * box.evaluated(box.counts(*size)))


def root_ns(extents: Sequence[int], costs: MachineCosts) -> float:
    """The arithmetic of a multiply-add over `extents`, on one thread."""
    return 2.0 * prod(extents) / costs.flops_per_ns
