"""How often an operand of a product is packed: as many times as there are blocks of what it is reused over."""

from __future__ import annotations

import pytest
from xdsl.ir.affine import AffineExpr, AffineMap

from fuseline.analysis.packings import (
    BLOCK_FLOPS,
    BLOCKS_OF_THREAD,
    CACHED_COLUMNS,
    FLOPS_PER_BYTE,
    MOST_BLOCKS,
    PACKED_STEPS,
    ROWS_OF_TILE,
    extent_of,
    packings,
)
from fuseline.analysis.reduction_block import steps_of_block
from fuseline.analysis.structured import StructuredOp
from fuseline.dispatch.view import DispatchView
from fuseline.ir.build import dims_map
from tests.draws import RNG
from tests.graphs.program import Program


def _product(rows: int, steps: int, columns: int) -> tuple[StructuredOp, DispatchView]:
    p = Program((rows, steps), (steps, columns))
    view = p.dispatch(p.matmul(p.x[0], p.x[1]))
    assert view.root_view is not None
    return view.root_view, view


@pytest.mark.parametrize(
    ("columns", "blocks"),
    [(1, 1), (64, 1), (65, 1), (112, 1), (113, 2), (640, 10), (64 * MOST_BLOCKS * 3, MOST_BLOCKS)],
)
def test_rows_are_packed_once_per_block_of_columns(columns: int, blocks: int):
    root, view = _product(int(RNG.integers(1, 99)), int(RNG.integers(2, 99)), columns)
    assert packings(root, 0, view.shapes, 64)[0] == blocks


def _groups(rows: int, steps: int, columns: int, threads: int) -> float:
    root, view = _product(rows, steps, columns)
    return packings(root, 0, view.shapes, 64, threads)[0]


@pytest.mark.parametrize("threads", (1, 2, 8))
def test_columns_are_shared_out_as_far_as_rows_do_not_balance(threads: int):
    """Or as they take more than a cache: each group packs the rows anew."""
    rows, steps = int(RNG.integers(1, 300)), int(RNG.integers(200, 256))
    wanted = min(_balanced(threads), _with_work(rows, steps, 512))
    assert _groups(rows, steps, 512, threads) == min(8, -(-wanted // -(-rows // ROWS_OF_TILE)))
    root, view = _product(rows, 3000, 512)
    wanted = min(8, -(-_with_work(rows, 3000, 512) // -(-rows // ROWS_OF_TILE)))
    assert packings(root, 0, view.shapes, 64, threads)[0] == min(wanted, -(-3000 * 512 * 4 // CACHED_COLUMNS))
    assert packings(root, 1, view.shapes, 64, threads)[0] == packings(root, 1, view.shapes, 64)[0]


def _balanced(threads: int) -> int:
    return 1 if threads == 1 else BLOCKS_OF_THREAD * threads


def _with_work(rows: int, steps: int, columns: int) -> int:
    """Blocks of as much arithmetic, or of as much as takes as long to read."""
    read = 4 * steps * (rows + columns)
    return min(MOST_BLOCKS, max(1, max(2 * rows * steps * columns, FLOPS_PER_BYTE * read) // BLOCK_FLOPS))


def test_little_work_is_one_group_of_columns():
    """Whatever the threads: what there is to compute, and to read, is worth one place in a grid."""
    rows, steps = int(RNG.integers(1, 14)), int(RNG.integers(1, 14))
    assert _groups(rows, steps, 900, 64) == 1


@pytest.mark.parametrize(("rows", "columns"), [(0, 5), (5, 0), (0, 0)])
def test_nothing_is_packed_once(rows: int, columns: int):
    root, view = _product(rows, 3, columns)
    assert packings(root, 0, view.shapes, 64, 2)[0] <= 1 and packings(root, 1, view.shapes, 64, 2)[0] <= 1


@pytest.mark.parametrize(("rows", "blocks"), [(64, 1), (65, 2), (640, 10)])
def test_columns_are_packed_once_per_block_of_rows(rows: int, blocks: int):
    root, view = _product(rows, int(RNG.integers(2, 99)), int(RNG.integers(2, 99)))
    assert packings(root, 1, view.shapes, 64)[0] == blocks


def test_beside_what_is_packed_too_blocks_are_what_fits():
    steps, columns = 2048, 640
    root, view = _product(40, steps, columns)
    alone, beside = packings(root, 0, view.shapes, 64)
    of_block = PACKED_STEPS // steps_of_block([steps])
    assert beside == max(alone, -(-columns // min(64, of_block))) >= alone == 10


def test_iterations_of_no_loop_are_one():
    root, view = _product(3, 5, 7)
    assert [extent_of(root, loops, view.shapes) for loops in ((), (0,), (0, 2), (0, 1, 2))] == [1, 3, 15, 105]


@pytest.mark.parametrize("step", (1, 2, 5))
def test_what_lies_between_steps_is_not_packed(step: int):
    """Of all elements, the share that the rows of the product are."""
    rows, steps, columns = (int(n) for n in RNG.integers(65, 300, 3))
    p = Program((rows * step, steps), (columns, steps))
    image = AffineMap(3, 0, (AffineExpr.dimension(0) * step, AffineExpr.dimension(2)))
    maps = [image, dims_map(3, [1, 2]), dims_map(3, [0, 1])]
    view = p.dispatch(p.multiply_add(p.x[0], p.x[1], p.zeros(rows, columns), maps, "ppr"))
    assert view.root_view is not None
    assert packings(view.root_view, 0, view.shapes, 64)[0] == pytest.approx(max(1, -(-columns // 16) // 4) / step)
