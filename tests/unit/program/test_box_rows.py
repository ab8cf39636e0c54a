"""Boxes as rows: the loops over them reach every byte of the box once, in order, and no other."""

from __future__ import annotations

from itertools import product
from math import prod
from typing import Any

import numpy as np
import pytest

from fuseline.ir import dim as d
from fuseline.program.box_rows import box_distance, box_rows
from tests.draws import RNG


def _bytes(sizes: tuple[int, ...], whole: tuple[int, ...], offsets: tuple[int, ...], element: int) -> list[int]:
    """The bytes of a box in order, as rows tell them."""
    rows, start = box_rows(sizes, whole, element), box_distance(offsets, whole, element)
    found: list[int] = []
    for at in product(*(range(int(str(count))) for count, _ in rows.loops)):
        first: Any = d.sum_of([start, *(d.mul(i, stride) for i, (_, stride) in zip(at, rows.loops, strict=True))])
        assert isinstance(first, int) and isinstance(rows.length, int)
        found += range(first, first + rows.length)
    return found


def _wanted(sizes: tuple[int, ...], whole: tuple[int, ...], offsets: tuple[int, ...], element: int) -> list[int]:
    places = np.arange(prod(whole) * element).reshape(*whole, element)
    box = tuple(slice(first, first + size) for first, size in zip(offsets, sizes, strict=True))
    return places[box].reshape(-1).tolist()


@pytest.mark.parametrize("rank", range(6))
@pytest.mark.parametrize("element", [1, 2, 4, 8])
def test_every_byte_of_a_box_once(rank: int, element: int) -> None:
    for _ in range(30):
        whole = tuple(RNG.integers(1, 5, rank).tolist())
        sizes = tuple(int(RNG.integers(0, size + 1)) if RNG.random() < 0.6 else size for size in whole)
        offsets = tuple(int(RNG.integers(0, size - part + 1)) for size, part in zip(whole, sizes, strict=True))
        assert _bytes(sizes, whole, offsets, element) == _wanted(sizes, whole, offsets, element), (sizes, whole)


def test_dimensions_that_are_known_to_be_whole_merge() -> None:
    n, m = d.symbol("n", 1), d.symbol("m", 1)
    assert box_rows((3, n), (m, n), 4) == (d.mul(12, n), ())
    assert box_rows((3, m, n), (4, m, n), 1) == (d.product([3, m, n]), ())
    assert box_rows((2, m, 3), (4, m, n), 1) == (3, ((d.mul(2, m), n),))
    assert box_rows((2, 3), (m, n), 1) == (3, ((2, n),))
