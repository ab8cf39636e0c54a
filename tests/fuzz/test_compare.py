"""What noisy runs explain: a result among theirs, and near a pole any that is not finite."""

from __future__ import annotations

import numpy as np
import pytest

from tests.fuzz.compare import explained
from tests.fuzz.tensors import F32, Array


def _runs(*values: float) -> list[Array]:
    return [np.array([value], np.float32) for value in values]


@pytest.mark.parametrize(
    ("ours", "runs", "is_explained"),
    [
        (8.66, (8.6, 8.7, 8.65), True),
        (12.0, (8.6, 8.7, 8.65), False),
        (np.inf, (8.6, 8.7, np.nan), True),
        (np.nan, (8.6, np.inf, 8.7), True),
        (np.inf, (8.6, 8.7, 8.65), False),
        (np.nan, (8.6, 8.7, 8.65), False),
        (np.inf, (np.inf, np.inf, np.inf), True),
    ],
)
def test_one_element(ours: float, runs: tuple[float, ...], is_explained: bool) -> None:
    assert explained(np.array([ours], np.float32), _runs(*runs), F32) == is_explained


@pytest.mark.parametrize(
    ("ours", "sizes", "is_explained"),
    [(60, (49, 53, 56), True), (64, (49, 53, 56), False), (50, (49, 49), False), (49, (49, 50), True)],
)
def test_a_size_that_depends_on_rounding(ours: int, sizes: tuple[int, ...], is_explained: bool) -> None:
    runs = [np.ones((4, size), np.int64) for size in sizes]
    assert explained(np.ones((4, ours), np.int64), runs, np.dtype(np.int64)) == is_explained
    assert not explained(np.ones((4, ours, 1), np.int64), runs, np.dtype(np.int64))
