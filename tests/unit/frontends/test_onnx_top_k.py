"""TopK along any axis, of any type, against onnxruntime; equals, NaN and zeros in a stated order."""

from __future__ import annotations

from typing import Any

import numpy as np
import onnxruntime as ort
import pytest

import fuseline
from fuseline.errors import FuselineError
from fuseline.frontends.onnx.ops.top_k import MOST_ELEMENTS
from tests.draws import RNG
from tests.graphs.onnx_text import onnx_model

from .test_onnx_operators import Array, on_the_host, one_node, random

TARGETS = pytest.mark.parametrize("target", ["cpu", "interpreter"])


def top(
    x: Array, k: int, target: str, *, sizes: tuple[int | str, ...] | None = None, **options: Any
) -> tuple[Array, Array]:
    """Values and positions; nothing runs on the host."""
    proto = one_node(
        "TopK", {"x": x}, {"k": np.array([k])}, ("x", "k"), 2, shapes={"x": sizes} if sizes else None, **options
    )
    program = fuseline.compile(proto, threads=1, target=target)
    assert not program.record.host_ops
    found = program.run({"x": x})
    return found["y0"], found["y1"]


@TARGETS
@pytest.mark.parametrize("largest", [0, 1])
@pytest.mark.parametrize(("axis", "k"), [(0, 1), (1, 4), (1, 37), (-1, 3), (2, 5)])
@pytest.mark.parametrize("dtype", ["float32", "float64", "int32", "int64"])
def test_any_axis(dtype: str, axis: int, k: int, largest: int, target: str):
    """Small integers, so that many are equal."""
    x = (random(axis + k, 2, 37, 5) * 3).astype(dtype)
    options: dict[str, Any] = {"axis": axis, "largest": largest}
    proto = one_node("TopK", {"x": x}, {"k": np.array([k])}, ("x", "k"), 2, **options)
    wanted: Any = ort.InferenceSession(proto.SerializeToString(), providers=["CPUExecutionProvider"]).run(
        None, {"x": x}
    )  # pyright: ignore
    for found, expected in zip(top(x, k, target, **options), wanted, strict=True):
        np.testing.assert_array_equal(found, np.asarray(expected))


@TARGETS
@pytest.mark.parametrize("largest", [0, 1])
@pytest.mark.parametrize("dtype", ["float16", "int8", "uint8", "int16", "uint16", "uint32", "uint64"])
def test_other_types(dtype: str, largest: int, target: str):
    """The extremes among them; of equals the first comes first."""
    info = np.finfo(dtype) if dtype == "float16" else np.iinfo(dtype)
    x = np.random.default_rng(len(dtype)).integers(0, 50, (3, 41)).astype(dtype)
    x[0, 7], x[1, 9], x[2, 4] = info.max, info.min, info.max
    values, positions = top(x, 11, target, largest=largest)
    order = np.argsort(-x.astype(object) if largest else x.astype(object), axis=1, kind="stable")[:, :11]
    np.testing.assert_array_equal(positions, order)
    np.testing.assert_array_equal(values, np.take_along_axis(x, order, 1))


@TARGETS
@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_nan_is_the_largest_and_zeros_are_equal(dtype: str, target: str):
    nan, inf = np.nan, np.inf
    x = np.array([[1, -0.0, nan, 0.0, -inf, inf, -nan, -2]], dtype)
    assert top(x, 8, target)[1].tolist() == [[2, 6, 5, 0, 1, 3, 7, 4]]
    assert top(x, 8, target, largest=0)[1].tolist() == [[4, 7, 1, 3, 0, 5, 2, 6]]


@TARGETS
def test_rows_of_unknown_length_are_refused_where_they_are_too_short(target: str):
    proto = one_node("TopK", {"x": random(1, 2, 9)}, {"k": np.array([4])}, ("x", "k"), 2, shapes={"x": ("rows", "n")})
    program = fuseline.compile(proto, threads=1, target=target, shapes={"n": (1, 50)})
    assert not program.record.host_ops
    for size in (4, 5, 50):
        x = random(size, 3, size)
        np.testing.assert_array_equal(program.run({"x": x})["y1"], np.argsort(-x, 1)[:, :4])
    with pytest.raises(FuselineError, match="size 3 must be at least 4") as error:
        program.run({"x": random(0, 3, 3)})
    assert error.value.code == "E0203"


def test_more_than_there_are_is_refused():
    with pytest.raises(FuselineError, match="E0107"):
        top(random(1, 2, 3), 4, "interpreter")


def test_rows_that_are_known_to_be_long_stay_on_the_host():
    x = random(2, 1, MOST_ELEMENTS + 1)
    proto = one_node("TopK", {"x": x}, {"k": np.array([2])}, ("x", "k"), 2)
    assert on_the_host(proto, x)[1].tolist() == [np.argsort(-x[0])[:2].tolist()]


LEAST = """n = Shape(x)  both = Concat<axis = 0>(n, most)  few = ReduceMin<keepdims = 0>(both)  k = Reshape(few, one)
    values, at = TopK(x, k)"""
NUMBERS = {"most": np.array([5], np.int64), "one": np.array([1], np.int64)}


@TARGETS
def test_as_many_as_a_size_says(target: str):
    """The five largest, or all where there are fewer."""
    proto = onnx_model(f"(float[n] x) => (values, at) {{ {LEAST} }}", NUMBERS)
    program = fuseline.compile(proto, threads=1, target=target, shapes={"n": (0, 64)})
    assert not program.record.host_ops
    for size in (0, 1, 4, 5, 6, 64):
        x = RNG.permutation(size).astype(np.float32)
        found = program.run({"x": x})
        order = np.argsort(-x)[:5]
        np.testing.assert_array_equal(found["at"], order)
        np.testing.assert_array_equal(found["values"], x[order])


def test_the_best_of_what_passes_a_threshold_are_found_natively():
    """As many places pass as only the values tell, but no more than there are: of a detector's scores only they are
    listed on the host."""
    text = f"""(float[90] scores) => (values, at) {{
        good = Greater(scores, least)  places = NonZero(good)  listed = Squeeze(places, none)
        x = Gather(scores, listed)
        {LEAST}
    }}"""
    proto = onnx_model(text, {**NUMBERS, "none": np.array([0], np.int64), "least": np.float32(0.5)})
    program = fuseline.compile(proto, threads=1)
    assert [op.op_type for op in program.record.host_ops] == ["NonZero"]
    for shift in (-2.0, -0.44, 0.0, 2.0):
        scores = (RNG.permutation(90) / 90 + shift).astype(np.float32)
        found, good = program.run({"scores": scores}), scores[scores > 0.5]
        order = np.argsort(-good)[:5]
        np.testing.assert_array_equal(found["at"], order)
        np.testing.assert_array_equal(found["values"], good[order])


def test_more_than_a_size_says_is_refused():
    text = "(float[n] x, float[m] like) => (values, at) { k = Shape(like)  values, at = TopK(x, k) }"
    program = fuseline.compile(onnx_model(text), threads=1, shapes={"n": (1, 64)})
    assert not program.record.host_ops
    assert program.run({"x": np.arange(9, dtype=np.float32), "like": np.zeros(2, np.float32)})["at"].tolist() == [8, 7]
    with pytest.raises(FuselineError) as error:
        program.run({"x": np.arange(9, dtype=np.float32), "like": np.zeros(10, np.float32)})
    assert error.value.code == "E0203"
