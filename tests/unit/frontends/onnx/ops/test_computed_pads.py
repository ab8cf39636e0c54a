"""Pads of shape arithmetic: sizes like any others, read in place where they never cut, and never an operator on the
host."""

from __future__ import annotations

from typing import Any

import numpy as np
import onnx
import onnxruntime as ort
import pytest

import fuseline
from fuseline.errors import FuselineError
from tests.draws import RNG
from tests.graphs.onnx_text import onnx_model

NUMBERS = {
    "two": np.array([2], np.int64),
    "none": np.array([0], np.int64),
    "last": np.array([1], np.int64),
    "behind": np.array([3], np.int64),
}
CENTRED = """
    have = Shape<start = 1>(x)  want = Shape<start = 1>(like)
    differ = Sub(want, have)  before = Div(differ, two)  after = Sub(differ, before)
    pads = Concat<axis = 0>(none, before, none, after)
"""
FITS = {"constant": (5, 9), "edge": (5, 9), "reflect": (6, 4)}


def centred(mode: str, element: str) -> onnx.ModelProto:
    """`x` padded or cut to the sizes of `like`, as much before as after."""
    text = f"({element}[2, h, w] x, {element}[2, k, m] like) => (y, z) {{ {CENTRED}"
    text += f'p = Pad<mode = "{mode}">(x, pads)  y = Add(p, like)  z = Identity(p) }}'
    return onnx_model(text, NUMBERS)


def drawn(shape: tuple[int, ...], dtype: str = "float32") -> Any:
    return RNG.standard_normal(shape).astype(dtype)


@pytest.mark.parametrize("dtype", ["float32", "float16"])
@pytest.mark.parametrize("mode", FITS)
@pytest.mark.parametrize("threads", [1, 2])
def test_amounts_of_either_sign_are_sizes(mode: str, dtype: str, threads: int):
    proto = centred(mode, {"float32": "float", "float16": "float16"}[dtype])
    program = fuseline.compile(proto, threads=threads)
    assert not program.record.host_ops
    session = ort.InferenceSession(proto.SerializeToString(), providers=["CPUExecutionProvider"])
    more = FITS[mode]
    for have, want in [((7, 8), (7 + more[0], 8 + more[1])), ((9, 7), (6, 12)), ((30, 41), (11, 41)), ((5, 3), (5, 3))]:
        feeds = {"x": drawn((2, *have), dtype), "like": drawn((2, *want), dtype)}
        for found, expected in zip(program.run(feeds).values(), session.run(None, feeds), strict=True):
            np.testing.assert_array_equal(found, expected)


def test_sizes_that_one_reflection_does_not_reach_are_refused():
    program = fuseline.compile(centred("reflect", "float"), threads=1)
    with pytest.raises(FuselineError) as error:
        program.run({"x": drawn((2, 4, 4)), "like": drawn((2, 12, 4))})
    assert error.value.code == "E0203"


def up_and_beside(element: str) -> onnx.ModelProto:
    """What is left after a pooling, spread again, padded to the size it had and put beside it."""
    text = f"""({element}[b, 4, h, w] x) => (y) {{
        half = MaxPool<kernel_shape = [2, 2], strides = [2, 2]>(x)
        low = Conv<kernel_shape = [3, 3], pads = [1, 1, 1, 1]>(half, inner)
        up = ConvTranspose<kernel_shape = [2, 2], strides = [2, 2]>(low, spread)
        have = Shape<start = 2>(up)  want = Shape<start = 2>(x)
        differ = Sub(want, have)  before = Div(differ, two)  after = Sub(differ, before)
        pads = Concat<axis = 0>(none, none, before, none, none, after)
        padded = Pad(up, pads)
        joined = Concat<axis = 1>(x, padded)
        y = Conv<kernel_shape = [3, 3], pads = [1, 1, 1, 1]>(joined, outer)
    }}"""
    shapes = {"inner": (6, 4, 3, 3), "spread": (6, 4, 2, 2), "outer": (5, 8, 3, 3)}
    kind = {"float": "float32", "float16": "float16"}[element]
    return onnx_model(text, {**NUMBERS, **{name: drawn(shape, kind) / 8 for name, shape in shapes.items()}})


@pytest.mark.parametrize("element", ["float", "float16"])
def test_a_pad_to_the_size_before_a_pooling_is_read_in_place(element: str):
    """It adds 0 or 1 at the end, whatever the size: no cut, and no dispatch of its own."""
    proto = up_and_beside(element)
    program = fuseline.compile(proto, threads=1)
    assert not program.record.host_ops
    assert program.stats["dispatches"] <= 4
    assert not program.stats["copies"] and not program.stats["standalone_transposes"]
    session = ort.InferenceSession(proto.SerializeToString(), providers=["CPUExecutionProvider"])
    for size in [(1, 12, 16), (2, 13, 16), (1, 9, 11), (3, 2, 3)]:
        feeds = {"x": drawn((size[0], 4, *size[1:]), "float32" if element == "float" else "float16")}
        expected = np.asarray(session.run(None, feeds)[0])
        tolerance = 2e-5 if element == "float" else 2e-2
        np.testing.assert_allclose(program.run(feeds)["y"], expected, atol=tolerance * np.abs(expected).max(), rtol=0)


def test_more_cut_than_there_is_is_refused():
    text = """(float[h] x, float[k] like) => (y) {
        n = Shape(like)  cut = Neg(n)  pads = Concat<axis = 0>(cut, cut)  y = Pad(x, pads)
    }"""
    program = fuseline.compile(onnx_model(text), threads=1)
    x = drawn((9,))
    np.testing.assert_array_equal(program.run({"x": x, "like": drawn((3,))})["y"], x[3:6])
    with pytest.raises(FuselineError) as error:
        program.run({"x": x, "like": drawn((5,))})
    assert error.value.code == "E0203"
