"""How many numbers a range has, against NumPy."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from fuseline.frontends.onnx.range_counts import count_of_range

SMALL = st.integers(-50, 50)


@given(SMALL, SMALL, SMALL.filter(bool))
def test_integers_as_python_counts_them(first: int, last: int, step: int) -> None:
    assert count_of_range(first, last, step) == len(range(first, last, step))


@given(SMALL, SMALL, SMALL.filter(bool))
def test_floats_as_numpy_counts_them(first: int, last: int, step: int) -> None:
    """In eighths, which floats hold exactly."""
    assert count_of_range(first / 8, last / 8, step / 8) == len(np.arange(first / 8, last / 8, step / 8))


def test_large_integers_are_exact() -> None:
    assert count_of_range(0, 2**62 + 1, 1) == 2**62 + 1
    assert count_of_range(2**62 + 1, 0, -2) == 2**61 + 1


@pytest.mark.parametrize(
    ("first", "last", "step"),
    [
        (0, 5, 0),
        (0.0, 5.0, 0.0),
        (0.0, math.inf, 1.0),
        (math.nan, 5.0, 1.0),
        (0.0, 5.0, math.nan),
        (-1e308, 1e308, 1e-5),
    ],
)
def test_what_none_can_say(first: float, last: float, step: float) -> None:
    assert count_of_range(first, last, step) is None


def test_a_step_away_from_the_end_has_none() -> None:
    assert count_of_range(0, 5, -1) == count_of_range(0.0, 5.0, -0.5) == 0
