"""Image boxes beside columns that the run packs: packed anew for each box, they want many rows in it. Where the image
has too many channels for that, a box holds some of them at a time, and the sums of its rows wait in scratch.

    image of 320 channels, window 3x3:     all channels of 32 pixels and their neighbours are 130 KB
    32 channels at a time:                 4 lines of 128 pixels, 6 rows of 130 evaluated, ten times

So does a window that is large itself, or as large as only the run knows, some taps at a time:

    window 59x91 (of a weight's gradient):     2 of its lines at a time
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace

from xdsl.ir import SSAValue

from fuseline.analysis.box_blocks import choose_box_block, packs_columns_seldom
from fuseline.analysis.image_box import ImageBox, holds_a_tile, image_box
from fuseline.analysis.indexing_maps import used_dims
from fuseline.analysis.narrow_products import multiplies_narrow
from fuseline.analysis.reduction_block import reduction_block
from fuseline.analysis.shapes import ShapeAnalysis
from fuseline.analysis.structured import StructuredOp
from fuseline.ir.costs import assumed_size
from fuseline.ir.dim import Dim, product

SUMS_BYTES = 96 * 1024
"""Scratch that the sums of a workgroup may take while it goes on from block to block of the reduction."""

SUMS_OF_ROW = 256
"""Bytes of the sums that all rows of a box have, as far as there are so many columns: with fewer, the box would be
evaluated again and again for the others."""

BLOCKS_OF_CHANNELS = (64, 48, 32, 16)
"""Steps of a block: whole vectors, and cache lines of halves where that is not too many."""


BLOCKS_OF_TAPS = (256, 128, 64)
"""Steps of a block of any loops of the window, at the most."""


def box_beside_packed(
    root: StructuredOp,
    position: int,
    shapes: ShapeAnalysis,
    is_stored: Callable[[SSAValue], bool],
    extents: Sequence[Dim],
    threads: int,
) -> ImageBox | None:
    """The box of input `position` where columns are packed for each of its blocks: whole, or some of its channels at a
    time, for `extents` of the loops; None where neither has many rows."""
    box = image_box(root, position, shapes, is_stored, extents, whole=False)
    if box is not None and holds_a_tile(box, extents) and packs_columns_seldom(box, extents, threads):
        return box
    found = list(_by_channels(root, position, box, extents)) if box is not None else []
    cut = _seldom(found, extents, threads)
    return cut or _seldom(list(_by_taps(root, position, shapes, is_stored, extents)), extents, threads)


def _seldom(boxes: Sequence[ImageBox], extents: Sequence[Dim], threads: int) -> ImageBox | None:
    """Of boxes beside which columns are packed seldom, the one that evaluates the least."""
    known = [assumed_size(extent) for extent in extents]
    found = [box for box in boxes if packs_columns_seldom(box, extents, threads)]
    return min(found, key=lambda one: choose_box_block(one, known, 0.0, 0.0, threads=threads).evaluated, default=None)


def _by_taps(
    root: StructuredOp,
    position: int,
    shapes: ShapeAnalysis,
    is_stored: Callable[[SSAValue], bool],
    extents: Sequence[Dim],
) -> Iterator[ImageBox]:
    """The box with some steps at a time of any loops of the window, as a long reduction has blocks; none where a loop
    of the reduction is no loop of the window."""
    loops = [loop for loop in root.reduction if extents[loop] != 1]
    if multiplies_narrow(root.op) or not used_dims(root.input_maps[position]).issuperset(loops):
        return
    for most in BLOCKS_OF_TAPS:
        cuts = reduction_block([extents[loop] for loop in loops], most)
        blocks = {loops[number]: steps for number, steps in cuts.items()}
        box = image_box(root, position, shapes, is_stored, extents, whole=False, blocks=blocks)
        if box is not None and box.cut and holds_a_tile(box, extents):
            yield replace(box, most_rows=_most_rows(root, position, box, extents))


def _most_rows(root: StructuredOp, position: int, box: ImageBox, extents: Sequence[Dim]) -> int:
    """Pixels whose sums, as far as there are so many columns, fit their scratch."""
    columns = used_dims(root.output_maps[0]) - used_dims(root.input_maps[position])
    of_row = box.element_bytes * assumed_size(product(extents[column] for column in columns))
    return SUMS_BYTES // min(SUMS_OF_ROW, max(of_row, 1))


def _by_channels(root: StructuredOp, position: int, box: ImageBox, extents: Sequence[Dim]) -> Iterator[ImageBox]:
    """The box with some steps at a time of the longest loop that slides over nothing."""
    loop = max(_channels(box), key=lambda loop: box.window[loop], default=None)
    if loop is None or multiplies_narrow(root.op):
        return
    most = _most_rows(root, position, box, extents)
    for steps in BLOCKS_OF_CHANNELS:
        if steps < box.window[loop]:
            cut = {loop: box.window[loop]}
            yield replace(box, window={**box.window, loop: steps}, cut=cut, most_rows=most)


def _channels(box: ImageBox) -> Iterator[int]:
    """The loops of the window that have a dimension of the image to themselves."""
    return (loop for axis in box.axes if len(axis.terms) == 1 for loop in axis.terms if loop in box.window)


def groups_of_columns(box: ImageBox, rows: int, columns: int) -> int:
    """For how many groups of columns a box is evaluated anew: of as many as have their sums of `rows` in scratch."""
    return -(-columns * rows * box.element_bytes // SUMS_BYTES)
