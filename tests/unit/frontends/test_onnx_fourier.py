"""Discrete Fourier transforms against NumPy's, for every option."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import fuseline
from fuseline.errors import FuselineError
from fuseline.frontends.onnx import read_onnx
from fuseline.frontends.onnx.ops import fourier
from fuseline.ir.context import new_context
from tests.one_node import by_onnxruntime

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
    model = one_node(
        "DFT", {"x": x}, constants, ("x", "length" if length else "", "axis"), inverse=inverse, onesided=onesided
    )
    at = axis % 4
    positions = length or (2 * (x.shape[at] - 1) if inverse and onesided else x.shape[at])
    np.testing.assert_allclose(
        run(model, x)[0],
        expected(x, positions, at, inverse=bool(inverse), onesided=bool(onesided)),
        rtol=1e-5,
        atol=1e-6,
    )


def test_sizes_beside_the_transform_may_be_symbolic():
    x = feed(1, 3, 6)
    model = one_node("DFT", {"x": x}, {"axis": np.array(1)}, ("x", "", "axis"), shapes={"x": ("batch", 6, 1)})
    np.testing.assert_allclose(run(model, x)[0], expected(x, 6, 1, inverse=False, onesided=False), rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize(
    ("sizes", "reason"), [(("batch", "n", 1), "symbolic-size"), ((2, fourier.MOST_ENTRIES // 2, 1), "dft-length")]
)
def test_lengths_without_a_matrix_stay_on_the_host(sizes: tuple[int | str, ...], reason: str):
    ctx = new_context()
    read_onnx(one_node("DFT", {"x": feed(1, 2, 6)}, {"axis": np.array(1)}, ("x", "", "axis"), shapes={"x": sizes}), ctx)
    assert [item.reason.split(":")[0] for item in ctx.records.host_ops] == [reason]


@pytest.mark.parametrize("known", [True, False])
@pytest.mark.parametrize("opset", [17, 20])
@pytest.mark.parametrize(("parts", "inverse"), [(1, 0), (2, 0), (2, 1)])
def test_the_transform_of_nothing_is_nothing(parts: int, inverse: int, opset: int, known: bool):
    """As onnxruntime has it; on the host too, where the length shows when the program runs."""
    x, axis = feed(parts, 3, 0, 4), {"axis": 1} if opset < 20 else {}
    constants, inputs = ({}, ("x",)) if opset < 20 else ({"axis": np.array(1)}, ("x", "", "axis"))
    shapes = {"x": x.shape if known else ("batch", "n", 4, parts)}
    model = one_node("DFT", {"x": x}, constants, inputs, shapes=shapes, opset=opset, inverse=inverse, **axis)
    (ours,) = fuseline.compile(model, threads=1).run({"x": x}).values()
    for found in (ours, *by_onnxruntime(model, {"x": x})):
        assert (found.shape, found.dtype) == ((3, 0, 4, 2), np.float32)


def test_half_of_the_transform_of_nothing_is_refused():
    """It would have one place."""
    x = feed(1, 3, 0)
    with pytest.raises(FuselineError) as raised:
        fuseline.compile(
            one_node("DFT", {"x": x}, {"axis": np.array(1)}, ("x", "", "axis"), onesided=1), threads=1
        ).run({"x": x})
    assert raised.value.code == "E0106" and "DFT_0" in str(raised.value)


def frames(x: Array, step: int, length: int, window: Array | None, onesided: int) -> Array:
    starts = range(0, x.shape[1] - length + 1, step)
    cut = np.stack([x[:, start : start + length] for start in starts], 1) * (
        1 if window is None else window.reshape(-1, 1)
    )
    return expected(cut, length, 2, inverse=False, onesided=bool(onesided))


@pytest.mark.parametrize("window", [False, True])
@pytest.mark.parametrize(("parts", "onesided"), [(1, 1), (1, 0), (2, 0)])
@pytest.mark.parametrize(("step", "length"), [(1, 4), (3, 9), (8, 16), (20, 16)])
def test_frames(step: int, length: int, parts: int, onesided: int, window: bool):
    """Overlapping and with gaps between them."""
    x, shape = feed(parts, 3, 53), np.hanning(length + 2)[1:-1].astype(np.float32)
    constants = {"step": np.array(step), "window": shape, "length": np.array(length)}
    model = one_node(
        "STFT", {"x": x}, constants, ("x", "step", "window" if window else "", "length"), onesided=onesided
    )
    np.testing.assert_allclose(
        run(model, x)[0], frames(x, step, length, shape if window else None, onesided), rtol=1e-4, atol=1e-5
    )


@pytest.mark.parametrize("target", ["cpu", "interpreter"])
def test_signals_of_any_length_that_hold_a_frame(target: str):
    constants = {"step": np.array(5), "length": np.array(16)}
    model = one_node(
        "STFT", {"x": feed(1, 2, 40)}, constants, ("x", "step", "", "length"), shapes={"x": ("batch", "samples", 1)}
    )
    program = fuseline.compile(model, threads=1, target=target)
    assert not program.record.host_ops
    for size in (16, 20, 21, 77):
        x = feed(1, 2, size)
        np.testing.assert_allclose(program.run({"x": x})["y0"], frames(x, 5, 16, None, 1), rtol=1e-4, atol=1e-5)
    with pytest.raises(FuselineError, match="size 15 must be at least 16"):
        program.run({"x": feed(1, 2, 15)})


def test_a_signal_without_a_frame_is_refused():
    with pytest.raises(FuselineError, match="E0107"):
        read_onnx(
            one_node(
                "STFT", {"x": feed(1, 2, 9)}, {"step": np.array(1), "length": np.array(16)}, ("x", "step", "", "length")
            ),
            new_context(),
        )
