"""How often an operand of a product is packed: as many times as there are blocks of what it is reused over."""

from __future__ import annotations

import pytest

from fuseline.analysis.packings import MOST_BLOCKS, PACKED_STEPS, block_steps, extent_of, packings
from fuseline.analysis.structured import StructuredOp
from fuseline.dispatch.view import DispatchView
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


@pytest.mark.parametrize(("rows", "blocks"), [(64, 1), (65, 2), (640, 10)])
def test_columns_are_packed_once_per_block_of_rows(rows: int, blocks: int):
    root, view = _product(rows, int(RNG.integers(2, 99)), int(RNG.integers(2, 99)))
    assert packings(root, 1, view.shapes, 64)[0] == blocks


def test_beside_what_is_packed_too_blocks_are_what_fits():
    steps, columns = 2048, 640
    root, view = _product(40, steps, columns)
    alone, beside = packings(root, 0, view.shapes, 64)
    of_block = PACKED_STEPS // (block_steps(root, view.shapes) or steps)
    assert beside == max(alone, -(-columns // min(64, of_block))) >= alone == 10


def test_iterations_of_no_loop_are_one():
    root, view = _product(3, 5, 7)
    assert [extent_of(root, loops, view.shapes) for loops in ((), (0,), (0, 2), (0, 1, 2))] == [1, 3, 15, 105]
