"""What is not finite reaches the outputs whose window covers it and no others; what only the transforms would make
infinite stays finite."""

from __future__ import annotations

import numpy as np
import pytest

from tests.kernels import Array, Runner, assert_close

from .convolutions import Case, Forced

CASES = {
    "square": Case((14, 13), (16, 32)),
    "tails of channels and columns": Case((9, 9), (11, 13)),
    "many channels and passes": Case((6, 7), (140, 100)),
    "batch": Case((7, 6), (16, 16), batch=3),
    "one dimension": Case((50,), (12, 20)),
    "five taps": Case((11, 12), (16, 24), taps=5, pad=(2, 2)),
    "without an epilogue": Case((9, 8), (8, 16), pad=(0, 0), epilogue=False),
}
SPECIAL = [np.nan, np.inf, -np.inf]


def _expected(case: Case, arrays: list[Array]) -> Array:
    with np.errstate(invalid="ignore"):
        found = case.expected(*(a.astype(np.float64) for a in arrays))
    return found


def _same(found: Array, expected: Array, bits: int = 14) -> None:
    np.testing.assert_array_equal(np.isnan(found), np.isnan(expected))
    np.testing.assert_array_equal(np.where(np.isinf(found), found, 0), np.where(np.isinf(expected), expected, 0))
    finite = np.isfinite(expected)
    assert_close(np.where(finite, found, 0), np.where(finite, expected, 0), bits=bits)


@pytest.mark.parametrize("outputs", [2, 4, 6])
@pytest.mark.parametrize("name", CASES)
def test_pixels_that_are_not_finite(name: str, outputs: int):
    """One to three of them, so that most tiles have none."""
    case, generator = CASES[name], np.random.default_rng(outputs)
    arrays = case.arrays()
    for value in SPECIAL[: 1 + outputs // 3]:
        arrays[0][tuple(generator.integers(0, size) for size in arrays[0].shape)] = value
    expected = _expected(case, arrays)
    assert np.isfinite(expected).any() and not np.isfinite(expected).all()
    run = Runner(Forced(outputs, 3), case.view)
    _same(run(*arrays)[0], expected)


@pytest.mark.parametrize("value", SPECIAL)
@pytest.mark.parametrize("tap", [0, 1, 2])
def test_weights_that_are_not_finite(value: float, tap: int):
    """Their column only; and a pixel of 0 times an infinite weight is a NaN."""
    case = Case((9, 10), (8, 16))
    arrays = case.arrays()
    arrays[1][tap, 1, 3, 5] = value
    arrays[0][0, 4, 4, 3] = 0
    with np.errstate(invalid="ignore"):
        run = Runner(Forced(4), case.view)
        _same(run(*arrays)[0], _expected(case, arrays))


@pytest.mark.parametrize(("image", "filter_"), [(3e37, 1e-3), (1e-3, 3.3e38)])
def test_pixels_and_weights_whose_transforms_overflow(image: float, filter_: float):
    """All of them are finite, and so are the results."""
    case = Case((12, 13), (8, 16), epilogue=False)
    pixels, weights, *rest = case.arrays()
    arrays = [np.clip(pixels, -1, 1) * np.float32(image), np.clip(weights, -1, 1) * np.float32(filter_), *rest]
    with np.errstate(over="ignore", invalid="ignore"):
        run = Runner(Forced(6), case.view)
        expected = _expected(case, arrays)
        assert np.isfinite(expected).all()
        _same(run(*arrays)[0], expected)


def test_the_reference_interpreter_of_kernels_agrees():
    case = Case((6, 7), (11, 13))
    arrays = case.arrays()
    arrays[0][0, 2, 5, 4] = np.inf
    with np.errstate(invalid="ignore", over="ignore"):
        _same(Runner(Forced(4), case.view).evaluated(*arrays)[0], _expected(case, arrays))
