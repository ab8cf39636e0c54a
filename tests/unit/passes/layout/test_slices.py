"""A slice of an expanded tensor is a slice of the tensor before where it takes one range: checked against NumPy."""

from __future__ import annotations

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from fuseline.passes.layout.rewriting.slices import static_range

SHAPE = (3, 2, 4)
cuts = st.tuples(
    *(
        st.integers(0, size - 1).flatmap(lambda lo, n=size: st.tuples(st.just(lo), st.integers(1, n - lo)))
        for size in SHAPE
    )
)


@given(cuts)
def test_one_range_or_none(cut: tuple[tuple[int, int], ...]) -> None:
    offsets, sizes = [lo for lo, _ in cut], [count for _, count in cut]
    taken = np.arange(24).reshape(SHAPE)[tuple(slice(lo, lo + count) for lo, count in cut)].reshape(-1)
    consecutive = bool((np.diff(taken) == 1).all())
    found = static_range([0, 1, 2], offsets, sizes, SHAPE)
    assert (found is not None) == consecutive
    if found is not None:
        assert found == (taken[0], len(taken))


def test_an_unknown_size_is_no_range() -> None:
    assert static_range([0, 1], [0, 0], [2, 4], [-1, 4]) is None
