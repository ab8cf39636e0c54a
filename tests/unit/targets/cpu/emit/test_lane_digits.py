"""Digits of whole numbers in lanes of 64 bits are those of NumPy's integers, at both ends of every quotient."""

from __future__ import annotations

import numpy as np
import onnxruntime as ort
import pytest

import fuseline
from fuseline.targets.cpu.emit.lane_digits import digit_of_lanes
from tests.draws import RNG
from tests.graphs.onnx_text import onnx_model
from tests.unit.targets.cpu.kernel_ir.vectors import on_lanes

LARGEST = 2**52 - 1


def _numbers(divisor: int) -> np.ndarray:
    """Around multiples of a divisor, small and large ones."""
    most = LARGEST // divisor
    times = np.unique(np.concatenate([np.arange(3), RNG.integers(0, most + 1, 9), [most - 1, most]]))
    around = (times[:, None] * divisor + np.arange(-2, 3)).ravel()
    return np.unique(np.clip(around, 0, LARGEST)).astype(np.int64)[:48]


@pytest.mark.parametrize("native", [False, True])
@pytest.mark.parametrize("inner", [1, 2, 3, 7, 97, 4096, 1_000_003, 2**31 - 1, 2**40 + 15, LARGEST])
def test_a_digit_is_that_of_the_integer(inner: int, native: bool) -> None:
    numbers = _numbers(inner)
    found = on_lanes(lambda k, n: digit_of_lanes(k, n, inner, None), numbers, native=native)
    np.testing.assert_array_equal(found, numbers // inner)
    for size in (1, 5, 48, 2**33 + 9):
        found = on_lanes(lambda k, n: digit_of_lanes(k, n, inner, size), numbers, native=native)  # noqa: B023
        np.testing.assert_array_equal(found, numbers // inner % size)


@pytest.mark.parametrize("target", ["cpu:avx2", "cpu"])
@pytest.mark.parametrize("heads", ["4", "h"])
def test_positions_that_are_shifted_row_by_row(heads: str, target: str) -> None:
    """Relative positions: rows that are one longer than they are read, of any length."""
    model = onnx_model(
        f"(float[b, {heads}, t, p] x) => (z)"
        " { pads = Constant <value = int64[8] {0, 0, 0, 1, 0, 0, 0, 0}> ()  none = Constant <value = float {0.0}> ()"
        "  w = Pad (x, pads, none)  d = Shape (w)  one = Constant <value = int64[1] {1}> ()"
        "  i = Constant <value = int64[1] {2}> ()  j = Constant <value = int64[1] {3}> ()"
        "  k = Constant <value = int64[1] {4}> ()  two = Constant <value = int64[1] {0}> ()"
        "  front = Slice (d, two, i)  last = Slice (d, j, k)  lines = Slice (d, i, j)"
        "  turned = Concat <axis = 0> (front, last, lines)  r = Reshape (w, turned)"
        "  end = Constant <value = int64[1] {9223372036854775807}> ()  cut = Slice (r, one, end, i)"
        "  old = Shape (x)  u = Reshape (cut, old)  z = Tanh (u) }"
    )
    program = fuseline.compile(model, threads=1, target=target)
    session = ort.InferenceSession(model.SerializeToString(), providers=["CPUExecutionProvider"])
    for batch, lines, positions in [(1, 1, 1), (2, 5, 9), (1, 33, 65), (3, 2, 40)]:
        x = RNG.standard_normal((batch, 4, lines, positions), dtype=np.float32)
        wanted = np.asarray(session.run(None, {"x": x})[0])
        np.testing.assert_allclose(program.run({"x": x})["z"], wanted, rtol=1e-5, atol=1e-6)
