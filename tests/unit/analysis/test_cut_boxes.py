"""Boxes beside columns that are packed for each: whole where they have many rows, else of some channels at a time."""

from __future__ import annotations

from math import prod

import pytest
from xdsl.dialects import arith
from xdsl.dialects.builtin import i8, i32

from fuseline.analysis.box_blocks import LEAST_ROWS_OF_CUT, choose_box_block
from fuseline.analysis.cut_boxes import SUMS_BYTES, SUMS_OF_ROW, box_beside_packed, groups_of_columns
from fuseline.analysis.image_box import BOX_BYTES, ImageBox
from fuseline.analysis.structured import StructuredOp
from tests.draws import RNG
from tests.graphs.program import Program
from tests.unit.targets.cpu.contraction_families.test_convolution import maps_of


def _found(image: tuple[int, int], channels: int, filters: int, threads: int = 1) -> tuple[ImageBox | None, list[int]]:
    p = Program((1, *image, channels), (3, 3, channels, filters))
    out = [n - 2 for n in image]
    maps = maps_of(2, [1, 1], [1, 1])
    view = p.dispatch(p.multiply_add(p.relu(p.x[0]), p.x[1], p.zeros(1, *out, filters), maps, "pppprrr"))
    root = view.root_view
    assert root is not None
    extents = root.loops(view.shapes)
    found = box_beside_packed(root, 0, view.shapes, lambda value: value in view.tensors, extents, threads)
    return found, [n for n in extents if isinstance(n, int)]


@pytest.mark.parametrize("threads", (1, 2))
def test_a_box_of_few_channels_is_whole(threads: int):
    image = (int(RNG.integers(60, 80)), int(RNG.integers(60, 80)))  # two threads: a quarter is enough to pack once for
    found, _ = _found(image, int(RNG.integers(1, 4)), 20, threads)
    assert found is not None and not found.cut


@pytest.mark.parametrize("threads", (1, 2, 5))
def test_one_of_many_channels_goes_on_in_blocks_of_them(threads: int):
    for _ in range(10):
        image, channels = (int(RNG.integers(60, 300)), int(RNG.integers(60, 700))), int(RNG.integers(200, 3000))
        filters = int(RNG.integers(1, 400))
        box, extents = _found(image, channels, filters, threads)
        assert box is not None
        ((loop, whole),) = box.cut.items()
        assert extents[loop] == whole == channels > box.window[loop]
        block = choose_box_block(box, extents, 0.0, 0.0, threads=threads)
        rows = block.lines * block.pixels
        assert rows >= LEAST_ROWS_OF_CUT and box.bytes(box.counts(block.lines, block.pixels)) <= BOX_BYTES
        assert rows * min(SUMS_OF_ROW, 4 * filters) <= SUMS_BYTES
        in_all = prod(n - 2 for n in image)
        assert block.evaluated >= in_all * channels and rows * -(-in_all // rows) >= in_all


def test_blocks_evaluate_little_twice():
    """Squares rather than lines: what surrounds them is less."""
    for _ in range(10):
        image, channels = (int(RNG.integers(100, 300)), int(RNG.integers(100, 700))), 32 * int(RNG.integers(10, 90))
        box, extents = _found(image, channels, int(RNG.integers(1, 64)))
        assert box is not None
        block = choose_box_block(box, extents, 0.0, 0.0)
        assert block.evaluated < 2 * channels * prod(n - 2 for n in image)


def test_a_box_is_evaluated_for_as_many_columns_as_have_their_sums():
    box, _ = _found((60, 60), 500, 64)
    assert box is not None
    rows, columns = int(RNG.integers(1, 400)), int(RNG.integers(1, 900))
    groups = groups_of_columns(box, rows, columns)
    assert (groups - 1) * SUMS_BYTES < 4 * rows * columns <= groups * SUMS_BYTES


def test_narrow_products_have_their_channels_at_once():
    """Their sums of pairs are not added up in blocks."""
    p = Program((1, 60, 60, 900), (3, 3, 900, 40), element=i8)
    y = p.multiply_add(
        p.over(p.x[0], body=lambda b: b.op(arith.AddiOp, b.args[0], b.args[0])), p.x[1],
        p.zeros(1, 58, 58, 40, element=i32), maps_of(2, [1, 1], [1, 1]), "pppprrr",
    )  # fmt: skip
    view = p.dispatch(y)
    root = view.root_view
    assert isinstance(root, StructuredOp)
    stored = box_beside_packed(root, 0, view.shapes, lambda v: v in view.tensors, root.loops(view.shapes), 1)
    assert stored is None or not stored.cut
