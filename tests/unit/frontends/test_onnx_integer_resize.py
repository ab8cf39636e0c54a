"""Resize between integers: found in f32 and cut to whole numbers, as onnxruntime does it; what is whole by itself may
come out one nearer to zero in either."""

from __future__ import annotations

from typing import Any

import numpy as np
import onnx
import onnxruntime
import pytest

import fuseline
from tests.draws import RNG
from tests.graphs.onnx_text import declared, element_of, onnx_model

WAYS = ("half_pixel", "pytorch_half_pixel", "align_corners", "asymmetric")


def _resize(shape: tuple[int, ...], new: tuple[int, ...], dtype: Any, way: str) -> onnx.ModelProto:
    text = f'y = Resize<mode = "linear", coordinate_transformation_mode = "{way}">(x, none, none, sizes)'
    ends = f"({declared({'x': shape}, element=element_of(dtype))}) => ({element_of(dtype)}[] y)"
    return onnx_model(
        f"{ends} {{ {text} }}", {"sizes": np.array(new, np.int64), "none": np.zeros(0, np.float32)}, opset=19
    )


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("dtype", (np.uint8, np.int8, np.int32))
def test_between_integers(dtype: Any, way: str):
    shape = (1, int(RNG.integers(1, 4)), *(int(n) for n in RNG.integers(3, 20, 2)))
    new = (*shape[:2], *(int(n) for n in RNG.integers(3, 40, 2)))
    model = _resize(shape, new, dtype, way)
    x = RNG.integers(0 if dtype == np.uint8 else -100, 120, shape).astype(dtype)
    program = fuseline.compile(model, threads=int(RNG.integers(1, 3)))
    assert program.stats["host_ops"] == 0 and program.stats["dispatches"] <= 2  # along one axis, and the other
    found = program.run({"x": x})["y"]
    between = onnxruntime.InferenceSession(_resize(shape, new, np.float32, way).SerializeToString())
    exact = np.asarray(between.run(None, {"x": x.astype(np.float32)})[0])
    assert found.dtype == dtype
    assert (np.abs(found - exact) < 1 + 1e-3).all()
    whole = np.abs(exact - np.round(exact)) < 1e-3
    np.testing.assert_array_equal(found[~whole], np.trunc(exact)[~whole])
    theirs = onnxruntime.InferenceSession(model.SerializeToString()).run(None, {"x": x})[0]
    np.testing.assert_array_equal(found[~whole], np.asarray(theirs)[~whole])


@pytest.mark.parametrize("threads", (1, 2))
def test_an_image_of_bytes_is_resized_where_it_is_read(threads: int):
    """As the tools that write quantised operators have it: the argument, resized, goes on to a convolution."""
    text = """(uint8[1, 8, 9, 11] x) => (y) {
        r = Resize<mode = "linear">(x, none, scales)
        y = QLinearConv(r, s, z, w, s, zero, s, z) }"""
    weights = {
        "none": np.zeros(0, np.float32), "scales": np.array([1, 1, 2, 2], np.float32), "s": np.float32(0.05),
        "z": np.uint8(120), "zero": np.int8(0), "w": RNG.integers(-30, 30, (8, 8, 1, 1)).astype(np.int8),
    }  # fmt: skip
    model = onnx_model(text, weights, opset=17)
    program = fuseline.compile(model, threads=threads)
    assert program.stats["host_ops"] == 0
    x = RNG.integers(0, 256, (1, 8, 9, 11)).astype(np.uint8)
    wanted = fuseline.compile(model, target="interpreter", fusion="none").run({"x": x})["y"]
    np.testing.assert_allclose(program.run({"x": x})["y"].astype(int), wanted, atol=1)


@pytest.mark.parametrize("size", ("h", "w"))
def test_of_sizes_that_the_run_tells(size: str):
    text = f"""(uint8[1, 2, {"h" if size == "h" else 7}, {"w" if size == "w" else 9}] x) => (y) {{
        y = Resize<mode = "linear">(x, none, scales) }}"""
    model = onnx_model(
        text, {"none": np.zeros(0, np.float32), "scales": np.array([1, 1, 1.5, 2.5], np.float32)}, opset=19
    )
    shape = (1, 2, int(RNG.integers(3, 20)) if size == "h" else 7, int(RNG.integers(3, 20)) if size == "w" else 9)
    x = RNG.integers(0, 256, shape).astype(np.uint8)
    program = fuseline.compile(model)
    assert program.stats["host_ops"] == 0
    theirs = onnxruntime.InferenceSession(model.SerializeToString()).run(None, {"x": x})[0]
    off = np.abs(program.run({"x": x})["y"].astype(int) - np.asarray(theirs).astype(int))
    assert off.max() <= 1 and (off != 0).mean() < 0.1
