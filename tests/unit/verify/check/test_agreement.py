"""Results against the interpreter in float64: close, explained by noise, wrong."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from fuseline.verify.check.agreement import CLOSE, agreements
from tests.draws import RNG

Array = NDArray[Any]


def _double(operands: Sequence[Array], double: bool) -> list[Array]:
    (x,) = operands
    return [(x.astype(np.float64) if double else x) * 2]


def _cancels(operands: Sequence[Array], double: bool) -> list[Array]:
    """A difference that loses most of its digits."""
    (x,) = [x.astype(np.float64) if double else x for x in operands]
    return [(x + 1e4) * (x - 1e4) - x * x]


def _steps(operands: Sequence[Array], double: bool) -> list[Array]:
    (x,) = [x.astype(np.float64) if double else x for x in operands]
    return [np.rint(x).astype(np.int32)]


def _judge(compute: Any, x: Array, ours: Array, scale: float = 1.0) -> Any:
    return agreements(compute, [x], [ours], compute([x], True), scale)[0]


@pytest.mark.parametrize("dtype", ["float32", "float16", "float64"])
def test_what_rounds_as_sums_do_is_close(dtype: str) -> None:
    x = RNG.standard_normal(100).astype(dtype)
    found = _judge(_double, x, x * 2)
    assert not found.problem and not found.rounding and found.error <= CLOSE[dtype] == found.allowed
    assert found.ulps <= 1 and found.magnitude == pytest.approx(np.abs(x.astype(float)).max() * 2)


def test_one_wrong_element_is_wrong() -> None:
    x = RNG.standard_normal(100).astype(np.float32)
    ours = x * 2
    ours[17] += 0.01
    found = _judge(_double, x, ours)
    assert "off by" in found.problem and found.error > 1e-3 and found.ulps > 100
    assert not _judge(_double, x, ours, scale=1e4).problem


def test_a_sum_that_cancels_is_rounding_and_a_wrong_one_is_not() -> None:
    x = RNG.uniform(1e4, 2e4, 100).astype(np.float32)
    ours = _cancels([x], False)[0]
    found = _judge(_cancels, x, ours)
    assert not found.problem
    assert _judge(_cancels, x, ours * 0).problem


def test_an_integer_next_to_a_step_is_rounding_and_another_is_wrong() -> None:
    x = np.array([0.5, 1.5, 7.0, 3.25], np.float32)
    exact = _steps([x], True)[0]
    assert _judge(_steps, x, exact).error == 0
    beside = _judge(_steps, x, exact + np.array([1, 0, 0, 0], np.int32))
    assert beside.rounding and not beside.problem and beside.error == 0.25
    assert _judge(_steps, x, exact + np.array([0, 0, 1, 0], np.int32)).problem == "1 of 4 elements differ"


@pytest.mark.parametrize("odd", [np.nan, np.inf, -np.inf])
def test_what_is_not_finite_must_be_where_it_belongs(odd: float) -> None:
    x = np.array([1.0, odd, 2.0], np.float32)
    assert not _judge(_double, x, x * 2).problem
    assert "NaN or infinity" in _judge(_double, x, np.array([2, 3, 4], np.float32)).problem
    assert "NaN or infinity" in _judge(_double, x, np.array([odd, 3, 4], np.float32)).problem


def test_what_is_beyond_the_range_of_a_type_is_infinite_in_it() -> None:
    x = np.array([3e38, 1.0], np.float32)
    with np.errstate(over="ignore"):
        assert not _judge(_double, x, x * 2).problem


def test_another_shape_is_wrong() -> None:
    x = RNG.standard_normal(4).astype(np.float32)
    assert "shape" in _judge(_double, x, x[:2]).problem
