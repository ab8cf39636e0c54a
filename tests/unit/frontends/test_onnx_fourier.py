"""Discrete Fourier transforms against NumPy's, for every option."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from fuseline.frontends.onnx import read_onnx
from fuseline.frontends.onnx.ops import fourier
from fuseline.ir.context import new_context

from .test_onnx_operators import Array, one_node, run


def feed(parts: int, *shape: int) -> Array:
    return np.random.default_rng(sum(shape) + parts).standard_normal((*shape, parts)).astype(np.float32)


def expected(x: Array, length: int, axis: int, *, inverse: bool, onesided: bool) -> Array:
    signal = x[..., 0] + (1j * x[..., 1] if x.shape[-1] == 2 else 0)
    if inverse and onesided:
        return np.fft.irfft(signal, length, axis)[..., None]
    out = (np.fft.ifft if inverse else np.fft.fft)(signal, length, axis)
    out = np.take(out, range(length // 2 + 1), axis) if onesided else out
    return np.stack([out.real, out.imag], -1)


@pytest.mark.parametrize("length", [None, 5, 8, 9, 16])
@pytest.mark.parametrize("axis", [0, 1, -2])
@pytest.mark.parametrize(("parts", "inverse", "onesided"), [(1, 0, 0), (1, 0, 1), (2, 0, 0), (2, 1, 0), (2, 1, 1)])
def test_transforms(length: int | None, axis: int, parts: int, inverse: int, onesided: int):
    """Shorter and longer than the signal, along every axis."""
    x = feed(parts, 9, 8, 7)
    constants: dict[str, Any] = {"axis": np.array(axis)} | ({"length": np.array(length)} if length else {})
    model = one_node("DFT", {"x": x}, constants, ("x", "length" if length else "", "axis"), inverse=inverse, onesided=onesided)
    at = axis % 4
    places = length or (2 * (x.shape[at] - 1) if inverse and onesided else x.shape[at])
    np.testing.assert_allclose(run(model, x)[0], expected(x, places, at, inverse=bool(inverse), onesided=bool(onesided)), rtol=1e-5, atol=1e-6)


def test_sizes_beside_the_transform_may_be_symbolic():
    x = feed(1, 3, 6)
    model = one_node("DFT", {"x": x}, {"axis": np.array(1)}, ("x", "", "axis"), shapes={"x": ("batch", 6, 1)})
    np.testing.assert_allclose(run(model, x)[0], expected(x, 6, 1, inverse=False, onesided=False), rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize(("sizes", "reason"), [(("batch", "n", 1), "symbolic-size"), ((2, fourier.MOST_ENTRIES // 2, 1), "dft-length")])
def test_lengths_without_a_matrix_stay_on_the_host(sizes: tuple[int | str, ...], reason: str):
    ctx = new_context()
    read_onnx(one_node("DFT", {"x": feed(1, 2, 6)}, {"axis": np.array(1)}, ("x", "", "axis"), shapes={"x": sizes}), ctx)
    assert [item.reason.split(":")[0] for item in ctx.records.host_ops] == [reason]
