"""Blocks of a contraction: within what there is, and packed rows within their scratch."""

from __future__ import annotations

import pytest

from fuseline.targets.cpu.families.contraction.block_choice import choose_contraction_blocks
from fuseline.targets.cpu.families.contraction.operand_modes import ROWS_LIMIT
from fuseline.targets.cpu.isa import ISA_NAMES, machine
from fuseline.targets.cpu.tiles import Tile
from tests.draws import generator

from .test_operand_modes import product

TILE = Tile(6, 2)


@pytest.mark.parametrize("isa", ISA_NAMES)
def test_blocks_are_within_what_there_is(isa: str):
    rng, target = generator(f"blocks {isa}"), machine(isa)
    width = TILE.vectors * target.lanes("f32")
    for _ in range(20):
        m, k, n = (int(size) for size in rng.integers(1, 3000, 3))
        loops = product(m, k, n)
        blocks = choose_contraction_blocks(loops, TILE, width, ("linear", "direct"), target)
        columns = loops.column.extent  # where there are few columns, vectors run along the rows
        assert blocks.lines == 1 and isinstance(columns, int) and columns in (m, n)
        rows = m * n // columns
        assert 1 <= blocks.tiles <= -(-rows // TILE.rows) and 1 <= blocks.panels <= -(-columns // width)


@pytest.mark.parametrize("k", [8, 300, 1000, 4000])
def test_packed_rows_fit_their_scratch(k: int):
    target = machine("avx2")
    packed = choose_contraction_blocks(product(5000, k, 256, computed=True), TILE, 16, ("packed", "packed"), target)
    assert packed.tiles * TILE.rows * k * 4 <= ROWS_LIMIT or packed.tiles == 1
    free = choose_contraction_blocks(product(5000, k, 256), TILE, 16, ("linear", "packed"), target)
    assert packed.tiles <= max(free.tiles, ROWS_LIMIT // (TILE.rows * k * 4))


def test_small_products_are_one_workgroup():
    blocks = choose_contraction_blocks(product(12, 8, 32), TILE, 16, ("linear", "direct"), machine("avx2"))
    assert (blocks.tiles, blocks.panels) == (2, 2)


def test_the_operand_that_is_larger_is_shared_out():
    target = machine("avx2")
    wide = choose_contraction_blocks(product(24, 512, 8000), TILE, 16, ("linear", "direct"), target)
    tall = choose_contraction_blocks(product(8000, 512, 24), TILE, 16, ("linear", "direct"), target)
    assert wide.panels < 8000 // 16 and wide.tiles == 4
    assert tall.tiles < 8000 // 6 and tall.panels == 2
