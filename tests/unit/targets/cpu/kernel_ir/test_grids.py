"""Constants that are a regular grid, and those that are not."""

from __future__ import annotations

from itertools import product

from fuseline.targets.cpu.kernel_ir.grids import grid_of


def test_rows_and_vectors() -> None:
    assert grid_of(7 + 100 * row + 16 * vector for row, vector in product(range(5), range(3))) == {16: 3, 100: 5}


def test_one_row() -> None:
    assert grid_of([3, 5, 7]) == {2: 3}


def test_one_number_repeats_nothing() -> None:
    assert grid_of([9, 9]) == {}


def test_a_short_last_row_is_no_grid() -> None:
    assert grid_of([0, 1, 2, 10, 11]) is None


def test_rows_at_unlike_distances_are_no_grid() -> None:
    assert grid_of([0, 1, 10, 11, 30, 31, 41, 42]) is None


def test_a_missing_number_is_no_grid() -> None:
    assert grid_of([0, 1, 2, 4, 5]) is None
