"""Tiles and blocks are pure functions of the shape and the machine: what they promise, on every ISA."""

from __future__ import annotations

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from fuseline.targets.cpu.isa import ISA_NAMES, machine
from fuseline.targets.cpu.tiles import BlockedWork, Tile, choose_blocks, choose_tile, fits, split_rows


@given(st.integers(1, 500), st.integers(1, 31))
def test_split_covers_the_extent_with_tiles_that_differ_by_one(extent: int, rows: int):
    split = split_rows(extent, rows)
    assert split.tall * split.height + split.short * (split.height - 1) == extent
    assert split.height <= rows
    assert split.count == -(-extent // rows)
    assert split.tall >= 1


@pytest.mark.parametrize("isa", ISA_NAMES)
@given(st.one_of(st.none(), st.integers(1, 300)), st.one_of(st.none(), st.integers(1, 300)))
def test_a_tile_fits_the_registers(isa: str, rows: int | None, columns: int | None):
    target = machine(isa)
    tile = choose_tile(rows, columns, target.lanes("f32"), target)
    assert fits(tile.rows, tile.vectors, target)
    assert rows is None or tile.rows <= rows


@pytest.mark.parametrize(
    ("isa", "shape", "tile"),
    [
        ("avx512", (3136, 64), Tile(14, 2)),
        ("avx512", (7, 512), Tile(7, 3)),  # 6x64 would be 4 rows and 3
        ("avx512", (169, 1000), Tile(14, 2)),
        ("avx2", (3136, 64), Tile(6, 2)),
        ("avx2", (7, 512), Tile(4, 3)),
        ("avx2", (56, 24), Tile(4, 3)),
        ("avx2", (1, 1000), Tile(1, 8)),
        ("avx512", (1, 1000), Tile(1, 8)),
    ],
)
def test_tiles_of_known_shapes(isa: str, shape: tuple[int, int], tile: Tile):
    target = machine(isa)
    assert choose_tile(*shape, target.lanes("f32"), target) == tile


@given(
    st.integers(1, 16), st.integers(1, 64), st.integers(1, 64), st.integers(1, 64), st.integers(1, 10**7),
    st.integers(1, 10**8),
    st.integers(1, 10**8), st.booleans(),
)  # fmt: skip
def test_blocks_cover_and_stay_within_what_there_is(
    outer: int, lines: int, tiles: int, panels: int, flops: int, lhs: int, rhs: int, repacks: bool
):
    blocks = choose_blocks(BlockedWork(outer, lines, tiles, panels, flops, lhs, rhs, repacks), machine("avx2"))
    assert 1 <= blocks.lines <= lines
    assert 1 <= blocks.tiles <= tiles
    assert 1 <= blocks.panels <= panels


def test_tiles_are_as_tall_as_steps_that_they_leave_out():
    """17 rows, a window of taps 6 apart: of tiles of up to 6 rows those at the ends leave out a third."""
    target = machine("avx512")

    def share(first: int, rows: int) -> float:
        return sum(any(0 <= row + tap < 17 for row in range(first, first + rows)) for tap in (-6, 0, 6)) / 3

    assert choose_tile(17, 512, target.lanes("f32"), target).rows > 8
    chosen = choose_tile(17, 512, target.lanes("f32"), target, share=share)
    first = split_rows(17, chosen.rows)
    assert first.height <= 6 and share(0, first.height) < 1
    assert choose_tile(17, 512, target.lanes("f32"), target, share=lambda *_: 0.5) == choose_tile(
        17, 512, target.lanes("f32"), target
    )


@given(st.integers(1, 300), st.integers(1, 3000), st.integers(1, 8))
def test_no_wider_than_asked(rows: int, columns: int, most: int):
    target = machine("avx512")
    assert choose_tile(rows, columns, target.lanes("f32"), target, most_vectors=most).vectors <= most


@given(st.integers(1, 99), st.integers(4, 99), st.integers(1, 10**7), st.integers(1, 16))
def test_columns_beside_rows_that_are_packed_are_shared_out_to_balance(tiles: int, panels: int, rhs: int, threads: int):
    """Or so that a group stays in the second-level cache."""
    work = BlockedWork(1, 1, tiles, panels, 10**6, 10**4, rhs, repacks_lhs=True)
    target = machine("avx2")
    any_number, few = choose_blocks(work, target), choose_blocks(replace(work, threads=threads), target)
    assert few.tiles == any_number.tiles and few.panels >= any_number.panels
    wanted = 1 if threads == 1 else 8 * threads
    needed = max(-(-wanted // -(-tiles // few.tiles)), -(-rhs // target.l2_bytes))
    assert few.panels == any_number.panels or -(-panels // few.panels) <= needed


def test_small_work_is_one_workgroup():
    blocks = choose_blocks(BlockedWork(1, 1, 3, 4, 1000, 100, 100), machine("avx2"))
    assert (blocks.lines, blocks.tiles, blocks.panels) == (1, 3, 4)


def test_the_larger_operand_is_split_first():
    wide = choose_blocks(BlockedWork(1, 1, 4, 100, 10**6, 10**4, 10**7), machine("avx2"))
    tall = choose_blocks(BlockedWork(1, 1, 100, 4, 10**6, 10**7, 10**4), machine("avx2"))
    assert wide.columns_outer and wide.panels < 100 and wide.tiles == 4
    assert not tall.columns_outer and tall.tiles < 100 and tall.panels == 4
