"""A reshape is settled by its first and last sizes: segments, cancellation, symbolic sizes."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from fuseline.ir.dim import Dim, mul, product, symbol
from fuseline.passes.layout.rewriting.reshapes import grouped, segments

N, M = symbol("n"), symbol("m")


@pytest.mark.parametrize(
    ("before", "after", "cut"),
    [
        ((129, 129, 1, 144), (1, 129, 129, 144), [(1, 2), (1, 1), (2, 1)]),
        ((4, 6), (4, 1, 6), [(1, 1), (1, 2)]),
        ((4, 6), (8, 3), [(2, 2)]),
        ((), (1,), [(0, 1)]),
        ((mul(N, M), 4), (N, M, 4), [(1, 2), (1, 1)]),
        ((N, 12), (N, 3, 4), [(1, 1), (1, 2)]),
    ],
)
def test_segments(before: tuple[Dim, ...], after: tuple[Dim, ...], cut: list[tuple[int, int]]) -> None:
    assert segments(before, after) == cut


@given(st.lists(st.integers(1, 5), min_size=1, max_size=5), st.data())
def test_every_segment_keeps_its_product(dims: list[int], data: st.DataObject) -> None:
    """Merging neighbours at random and cutting again: each segment holds as many elements on both sides."""
    after: list[int] = []
    for size in dims:
        if after and data.draw(st.booleans()):
            after[-1] *= size
        else:
            after.append(size)
    i = j = 0
    for left, right in segments(dims, after):
        assert product(dims[i : i + left]) == product(after[j : j + right])
        i, j = i + left, j + right
    assert (i, j) == (len(dims), len(after))


def test_groups_are_consecutive() -> None:
    assert grouped([1, 3, 2]) == [[0], [1, 2, 3], [4, 5]]
