"""The matrices of minimal filtering: right, exact in f32, and as inexact in use as they say."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from fuseline.targets.cpu.families.winograd.choice import ERROR_LIMIT, ERROR_MARGIN
from fuseline.targets.cpu.families.winograd.matrices import POINTS, Filtering, error_ratio, filtering, has_filtering

SIZES = [(m, r) for r in (2, 3, 4, 5) for m in (2, 3, 4, 6, 8) if has_filtering(m, r)]
Array = NDArray[Any]


def matrices(f: Filtering) -> tuple[Array, Array, Array]:
    return np.array(f.filter), np.array(f.inputs), np.array(f.results)


@pytest.mark.parametrize(("outputs", "taps"), SIZES)
def test_outputs_are_those_of_the_filter(outputs: int, taps: int):
    rng = np.random.default_rng(outputs * 10 + taps)
    x, w = rng.standard_normal(outputs + taps - 1), rng.standard_normal(taps)
    g, b, a = matrices(filtering(outputs, taps))
    np.testing.assert_allclose(a @ ((g @ w) * (b @ x)), np.correlate(x, w, "valid"), atol=1e-10)


@pytest.mark.parametrize(("outputs", "taps"), [(m, r) for m, r in SIZES if m < 8])
def test_entries_applied_at_run_time_are_exact_in_f32(outputs: int, taps: int):
    _, b, a = matrices(filtering(outputs, taps))
    for matrix in (a, b):
        np.testing.assert_array_equal(matrix.astype(np.float32).astype(np.float64), matrix)


def test_sizes_without_points():
    assert not has_filtering(max(POINTS) + 1, 3)
    assert not has_filtering(1, 3)
    assert not has_filtering(4, 1)


def errors(f: Filtering, channels: int, *, positive: bool) -> float:
    """The RMS error of 2-D filtering over that of a direct convolution, both summing channel by channel in f32."""
    rng = np.random.default_rng(channels)
    x = rng.standard_normal((60, f.size, f.size, channels), np.float32)
    x = np.maximum(x, 0) if positive else x
    w = rng.standard_normal((f.taps, f.taps, channels, 12), np.float32)
    g, b, a = matrices(f)
    exact, direct = np.zeros((60, f.outputs, f.outputs, 12)), np.zeros((60, f.outputs, f.outputs, 12), np.float32)
    for i in range(f.taps):
        for j in range(f.taps):
            part = x[:, i : i + f.outputs, j : j + f.outputs]
            exact += part.astype(np.float64) @ w[i, j]
            for c in range(channels):
                direct = fma(part[..., c : c + 1], w[i, j, c], direct)
    pixels, weights = (
        along(b, along(b, x, 1), 2),
        np.einsum("ai,bj,ijco->abco", g, g, w.astype(np.float64)).astype(np.float32),
    )
    products = np.zeros((60, f.size, f.size, 12), np.float32)
    for c in range(channels):
        products = fma(pixels[..., c : c + 1], weights[:, :, c], products)
    found = along(a, along(a, products, 1), 2)
    return float(np.sqrt(((found - exact) ** 2).mean() / ((direct - exact) ** 2).mean()))


def fma(a: Array, b: Array, c: Array) -> Array:
    return (a.astype(np.float64) * b + c).astype(np.float32)


def along(matrix: Array, x: Array, axis: int) -> Array:
    """`matrix` times `x` along `axis`, rounded to f32 at every step."""
    parts = np.moveaxis(x, axis, 0)
    rows: list[Array] = []
    for row in matrix.astype(np.float32):
        total = np.zeros(parts.shape[1:], np.float32)
        for factor, part in zip(row, parts, strict=True):
            total = fma(np.broadcast_to(factor, part.shape), part, total)
        rows.append(total)
    return np.moveaxis(np.stack(rows), 0, axis)


@pytest.mark.parametrize("positive", [False, True])
@pytest.mark.parametrize("channels", [4, 6, 16, 64])
@pytest.mark.parametrize(("outputs", "taps"), [(2, 3), (3, 3), (4, 3), (6, 3), (2, 5), (4, 5)])
def test_errors_are_as_stated_and_within_the_limit(outputs: int, taps: int, channels: int, positive: bool):
    """Pixels after a relu do not cancel in the mean: a third more than for signed ones."""
    f = filtering(outputs, taps)
    stated = error_ratio([f, f], channels)
    found = errors(f, channels, positive=positive)
    assert 0.5 * stated < found < ERROR_MARGIN * stated
    if ERROR_MARGIN * stated <= ERROR_LIMIT["default"]:
        assert found < 16
