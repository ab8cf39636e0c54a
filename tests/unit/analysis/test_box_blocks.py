"""How high blocks of an image box are, and how many there are."""

from __future__ import annotations

import math

import pytest

from fuseline.analysis.box_blocks import (
    ALMOST,
    BLOCKS_OF_THREAD,
    LEAST_ROWS,
    UNEVEN,
    blocks_of,
    choose_box_block,
    lines_of_block,
    packs_columns_seldom,
)
from fuseline.analysis.packings import BLOCK_FLOPS, MOST_BLOCKS
from fuseline.ir.costs import ASSUMED_SIZE
from tests.draws import RNG

from .test_image_box import box_of


@pytest.mark.parametrize("threads", [1, 2, 8])
@pytest.mark.parametrize("image", [(224, 224), (40, 300), (500, 60)])
@pytest.mark.parametrize("window", [3, 7])
def test_blocks_evaluate_the_least_of_those_that_go_round(image: tuple[int, int], window: int, threads: int):
    box, view = box_of(image, (window, window), 2, 1)
    assert box is not None and view.root_view is not None
    extents = [n for n in view.root_view.loops(view.shapes) if isinstance(n, int)]
    root, element_ns = 1e6, float(RNG.uniform(0.01, 5.0))
    lines, pixels = (extents[loop] for loop in box.rows[-2:])

    def total(high: int) -> float:
        return root + 2 * -(-lines // high) * box.evaluated(box.counts(high, pixels)) * element_ns

    def share(high: int) -> float:
        return -(-2 * -(-lines // high) // threads) * high * threads / (2 * lines)

    block = choose_box_block(box, extents, element_ns, root, threads=threads)
    assert box.fits(box.counts(block.lines, block.pixels)) and block.pixels == pixels
    fitting = [high for high in range(1, lines + 1) if box.fits(box.counts(high, pixels))]
    allowed = [high for high in fitting if threads == 1 or 2 * -(-lines // high) >= BLOCKS_OF_THREAD * threads]
    shared = [high for high in allowed if share(high) <= UNEVEN] or [min(allowed, key=share)]
    assert block.lines in shared and total(block.lines) <= (1 + ALMOST) * min(map(total, shared)) + 1e-6


def test_one_thread_shares_blocks_with_nobody():
    """All lines are one block where they fit and evaluation takes long: none is evaluated twice."""
    box, view = box_of((40, 30), (3, 3), 1, 1)
    assert box is not None and view.root_view is not None
    extents = [n for n in view.root_view.loops(view.shapes) if isinstance(n, int)]
    assert choose_box_block(box, extents, 1.0, 1.0).lines == 38
    assert choose_box_block(box, extents, 1.0, 1.0, threads=4).lines < 20


@pytest.mark.parametrize("image", [(224, 224), (40, 300), (34, 34), (9, 11)])
@pytest.mark.parametrize("window", [1, 3, 5])
def test_a_block_has_the_least_arithmetic_of_one(image: tuple[int, int], window: int):
    """There are no more blocks than that allows, and no more than a launch has."""
    for channels in (1, 3, 40):
        box, view = box_of(image, (window, window), 1, 1, channels=channels)
        if box is None or view.root_view is None:
            continue
        extents = [n for n in view.root_view.loops(view.shapes) if isinstance(n, int)]
        blocks, flops = blocks_of(box, extents), 2 * math.prod(extents)
        assert 1 <= blocks <= MOST_BLOCKS and (blocks == 1 or flops / blocks >= BLOCK_FLOPS)
        lines, images = extents[box.rows[-2]], 2
        high = lines_of_block(box, extents)
        assert high == lines or -(-lines // high) * images <= max(blocks, images) + images
        block = choose_box_block(box, extents, 0.0, 1.0, least=high)
        assert block.lines >= high or not box.fits(box.counts(block.lines + 1, block.pixels))


def test_columns_count_in_whole_vectors():
    """9 columns take as long as 16 do."""
    box, view = box_of((66, 66), (3, 3), 1, 1)
    assert box is not None and view.root_view is not None
    extents = [n for n in view.root_view.loops(view.shapes) if isinstance(n, int)]
    narrow = [9 if n == 16 else n for n in extents]
    assert blocks_of(box, narrow) == blocks_of(box, extents) > 1


@pytest.mark.parametrize("image", [(224, 224), (40, 300), (600, 24), (20, 20)])
def test_columns_are_packed_seldom_in_blocks_of_many_rows(image: tuple[int, int]):
    """The highest blocks are asked, whatever evaluation takes."""
    for channels in (1, 3, 40):
        box, view = box_of(image, (3, 3), 1, 1, channels=channels)
        assert box is not None and view.root_view is not None
        extents = [n for n in view.root_view.loops(view.shapes) if isinstance(n, int)]
        block = choose_box_block(box, extents, 0.0, 0.0, highest=True)
        lines, pixels = (n - 2 for n in image)
        higher = block.lines + 1
        assert block.lines == lines or not box.fits(box.counts(higher, pixels)) or block.pixels < pixels
        assert packs_columns_seldom(box, extents) == (block.lines * block.pixels >= LEAST_ROWS)


@pytest.mark.parametrize("channels", (3, 40, 150))
def test_rows_of_unknown_number_are_as_many_as_is_assumed(channels: int):
    answers: list[bool] = []
    for height in ("h", ASSUMED_SIZE):
        box, view = box_of((height, ASSUMED_SIZE + 2), (1, 3), 1, 1, channels=channels)
        assert box is not None and view.root_view is not None
        answers.append(packs_columns_seldom(box, view.root_view.loops(view.shapes)))
    assert answers[0] == answers[1] == (channels < 100)
